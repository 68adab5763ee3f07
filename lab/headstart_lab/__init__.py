"""The laboratory of headstart: the papers' published numbers computed anew, and studies on real kernels and disks."""
