"""A stock kernel on an emulated disk, measured beside the simulator's prediction (docs/live-study.md). Linux, root.

    headstart reproduce li07-live --html study.html

`image` makes the disk's file system, `platform` sets it up and takes it down, `workloads` defines the reads, `measure`
performs them, `predict` simulates them, `study` does so for each workload and depth and judges, `report` shows the
results.
`pages` and `patterns` are separate: they study the kernel's read-ahead page by page (`python -m
headstart_lab.livestudy`).
"""
