"""file-system: what Shriver, Small and Smith left open of prefetching in a file system.

Source: E. Shriver, C. Small and K. A. Smith, Why does file system prefetching work?, USENIX 1999: the drive that reads
ahead only where requests "suggest that a sequential access pattern is present" (section 2.2), the file system that sets
the number of cache segments to "the number of files being concurrently accessed" (section 6), and the arrival processes
and run lengths of Table 2, which no equation of theirs has. They print results of none of it. What they say of their
equations is the measure of ours: "typically within 4 % of measured values, and differed at most by 9 %" (abstract);
here the simulation is what is measured. Machines, costs and drive are those of shriver99, and nothing was tuned.

The criteria, written before the first results:

sequence, a drive that reads ahead behind the second request of a sequence instead of behind every one:

- tables: with it the simulation is no further from the measured columns of Tables 3 and 4, in the mean of the
  relative errors, than with the drive that always reads ahead: the paper says that its drive is of this kind.
- wait: reading a file of 64 KB by itself takes longer with it, by half a turn to a whole turn: the second request finds
  its place just gone by.
- single: files of one block, eight at once, take no longer with it, since nothing is ever read ahead for them.
- typical, greatest: over 80 scenarios the median of the equations' errors is below 4 %, and the greatest at most 9 %.

open-files, `device.cache_segments = "open-files"`, on a drive that reads 56 KB ahead whatever comes, without which the
number of segments gains nothing here (shriver99, proposals):

- steady: eight files at once take as long as with eight segments from the start, within 2 %.
- gain: they take less time than with the drive's three segments by as much as eight segments do, within 2 points.
- changing: where the number of open files falls from 15 to 1, because files are of four sizes, the mean response is
  no more than 2 % above that with the best fixed number of 1 to 16 segments.
- alone: one file after another takes no more than 2 % longer than with the drive's three segments.

arrivals, runs of requests that arrive at a disk at given times, over 216 scenarios (two drives, requests of 8 and
64 KB, three mean run lengths, three loads, reading ahead always or on a sequence, three kinds of arrivals):

- typical, greatest: as above, of the mean response, with Poisson arrivals and with bursts together, whose queue is
  exact for independent service times.
- constant: as above, with constant intervals, whose queue is an approximation.
- service: the median error of the mean service time is below 4 %, and the greatest at most 9 %.

The item sensitivity has no verdicts. It was added after the first results, to find why open-files came out as it did.
"""

from headstart_lab.studies._study import Study
from headstart_lab.studies.file_system import _arrivals, _open_files, _sequence
from headstart_lab.studies.shriver99._runs import Lab

STUDY = Study(
    name="file-system",
    title="What Shriver, Small and Smith left open of prefetching in a file system",
    seeds="1; of several files 1 to 200, of four sizes 1 to 50, in sensitivity 1 to 40, on the grid 1 to 20; "
    "of arrivals 1 to 5",
    lab=Lab,
    input="paper",
    steps={
        "sequence": _sequence.sequence,
        "open-files": _open_files.open_files,
        "arrivals": _arrivals.arrivals,
        "sensitivity": _open_files.sensitivity,
        "quick": _arrivals.quick,
    },
)
