"""A stock kernel on an emulated disk, measured beside the simulator's prediction (docs/live-study.md). Linux, root.

    headstart reproduce li07-live --html study.html

`image` makes the disk's file system, `platform` sets it up and takes it down, `workloads` says what is read, `measure`
reads it, `predict` simulates it, `study` does so for each workload and depth and judges, `report` shows it. `pages` and
`patterns` are apart: the pages that the kernel reads ahead, read by read (`python -m headstart_lab.livestudy`).
"""
