"""The laboratory of headstart: recomputes the papers' published numbers, and studies real kernels and disks."""
