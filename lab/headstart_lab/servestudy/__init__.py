"""zhang-pfc's two levels live: two block servers in a chain before an emulated disk, beside the simulator.

docs/serve-study.md has the results.

    make serve-study

`workloads` are the stand-ins of `reproduce zhang-pfc`, shortened to seconds; `cases` the scenarios, which the simulator
and the servers both read; `live` runs one; `study` runs them all and judges.
"""
