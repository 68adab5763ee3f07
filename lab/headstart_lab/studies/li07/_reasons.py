"""Why a finding differs, where it does: by experiments, whose figures are rows of the item sensitivity."""

from typing import Final

ONE_RAND: Final = (
    "Ours anticipates better than the paper's, whose handlers are threads that no scheduler knows from before: where "
    'it waits 1 ms for a process, not 6, or not at all, CP gains more (sensitivity: "waits 1 ms", "no anticipation")'
)
TWO_RAND: Final = (
    "Our Linux reads the next window ahead of the reader, and what queues is merged beyond 128 KiB: beside Linux 2.6 "
    'as Butt has it, or without anticipation, CP gains more (sensitivity: "Linux as linux-2.6", "no anticipation")'
)
INDEX: Final = (
    "How long lists are is a guess, which decides: the longer, the more CP gains, the shorter, the worse is AP beside "
    'it (sensitivity: "lists"); CP gains more beside "Linux as linux-2.6" and with "no anticipation"'
)
INDEX_ARRAY: Final = (
    "Lists that are long enough for CP to gain on the IBM drive are longer than the array's depth, and those that are "
    'not gain little anywhere (sensitivity: "lists")'
)
BLIND: Final = (
    "What stands below a virtual machine decides: with the drive held to 37.5 MB/s as in Figure 6, or a deadline "
    'scheduler that knows no processes either, CP gains less (sensitivity: "held to 37.5 MB/s", "no anticipation")'
)
CLIPS: Final = (
    "Clips of 152 KB on average are over before the slow start has gone beyond Linux's depth: requests of CP and AP "
    "are hardly longer than Linux's (rows above), those of OPT, which needs no start, twice as long"
)
ARRAY: Final = (
    "The 24 GB of data lie on a twelfth of the array, and seeks are short: where they lie on half of it, or without "
    'anticipation, CP gains more (sensitivity: "36,000 files", "no anticipation"); going as deep as two random places '
    'ask for does not help ("646 kB")'
)
DEEPER: Final = (
    "Where files lie near each other seeks are short, and with them CP's depth; with the depth of two random places AP "
    'adds little (sensitivity: "always")'
)
Q2: Final = (
    "A stand-in: its time to compute hides reads, and where its files lie is a guess. Without the one, and with 4 GiB "
    'between files, it comes near (sensitivity: "no time to compute")'
)
ADMISSION: Final = (
    "Clients that wait bring back most of what 64 lose. The rest is no contention: a single client loses as much, and "
    "Linux too, since less memory keeps fewer files for the next request"
)
SHRINKING: Final = (
    "It shrinks once half as many blocks as are asked for had been evicted unused before and are fetched again: at "
    "this memory fewer are"
)
PARITY: Final = "The controller's work on parity, to which the paper puts it down, is not printed and not modelled"
