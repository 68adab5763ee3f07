"""Every trace format, through the command and through Python."""

import json
import struct
from pathlib import Path

import pytest

import headstart
from tests.conftest import Run


def recording() -> bytes:
    """Return a recording as docs/hints-format.md has it: pages 0 and 2 of a file, half a second apart."""
    about = {"command": ["x"], "folder": "/", "recorded_at_s": 1, "elapsed_ns": 1, "exit_status": 0, "kernel": "6"}
    about |= {"page_bytes": 4096, "cold": False, "lost_events": 0, "recordings": 1}
    counts = {"processes": 1, "files": 1, "reads": 2}
    half_second = b"\x80\xca\xb5\xee\x01"
    tables = b"\x07\x01x" + b"\x00\x08\x00\x0c\x09\x00\x02/f"
    body = tables + b"\x00\x00" + b"\x00" + half_second + bytes(6) + b"\x00\x02" + bytes(2)
    # A frame of one block that is not compressed (RFC 8878).
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(body)]) + (len(body) << 3 | 1).to_bytes(3, "little") + body
    return b"headstart-hints 1 " + json.dumps(about | counts).encode() + b"\n" + frame


FORMATS = {entry["name"]: entry for entry in headstart.catalog()["formats"]}
# Two requests of each format, 4096 bytes from 0 and from 8192 bytes; for objects, two different ones.
TRACES: dict[str, str | bytes] = {
    "headstart": "time,op,pid,file,offset,size,dur_us\n0,R,1,0,0,4096,35\n0.5,W,1,0,8192,4096,7\n",
    "hints": recording(),
    "msr": "128166372003061629,hm,1,Read,0,4096,413\n128166372008061629,hm,1,Write,8192,4096,413\n",
    "alibaba": "64,R,0,4096,1577808000000046\n64,W,8192,4096,1577808000500046\n",
    "tencent": "1538323199,0,8,0,1063\n1538323200,16,8,1,1063\n",
    "systor17": "Timestamp,Response,IOType,LUN,Offset,Size\n5.013,0.1,R,4,0,4096\n5.513,0.1,W,4,8192,4096\n",
    "dbench": 'OPEN "/f" 0x1c SUCCESS\nREAD "/f" 0 4096 SUCCESS\nWRITE "/f" 8192 4096 SUCCESS\n',
    "biosnoop": "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.5 a 7 sda R 0 4096 1\n1.0 a 7 sda W 16 4096 1\n",
    "thesios": "filename,file_offset,op_type,request_io_size_bytes,start_time\n"
    "f,0,READ,4096,5.5\nf,8192,WRITE,4096,6\n",
    "baleen": "7 0 4096 1570000000.5 1 9 5 6\n7 8192 4096 1570000001 3 9 5 6\n",
    "twitter": "5,a,6,90,3,get,0\n5,b,6,30,4,set,86400\n",
    "meta-kv": "key,op,size,op_count\na,GET,90,1\nb,SET,30,1\n",
    "meta-cdn": "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd\n"
    "1678838400000,a,1,9999,4196,100,0,4095\n1678838400500,a,1,12288,4196,100,8192,-1\n",
    "rocksdb": "".join(f"{1567000000000000 + at},{at},9,4096,0,default,{'0,' * 13}0\n" for at in (0, 500000)),
    "procmon": '"Time of Day","Operation","Path","Detail"\n'
    '"9:00:00.5 AM","ReadFile","C:\\x","Offset: 0, Length: 4,096"\n'
    '"9:00:01.0 AM","WriteFile","C:\\x","Offset: 8,192, Length: 4,096"\n',
    "etw": "DiskRead, 1100, a (7), 7, 0xf, 0x0, 0x1000, 100, 0\n"
    "DiskWrite, 501100, a (7), 7, 0xf, 0x2000, 4096, 100, 0\n",
    "dftracer": "".join(
        json.dumps({"name": name, "cat": "POSIX", "pid": 7, "ts": ts, "dur": 9, "args": args}, separators=(",", ":"))
        + "\n"
        for name, ts, args in (
            ("pread", 5, {"fhash": "a", "ret": 4096, "offset": 0}),
            ("pwrite", 500_005, {"fhash": "a", "ret": 4096, "offset": 8192}),
        )
    ),
    "darshan": "# DXT, file_id: 1, file_name: /x\n"
    "X_POSIX 0 read 0 0 4096 0.1 0.2\nX_POSIX 0 write 0 8192 4096 0.6 0.7\n",
    "ftrace": "a-7 [000] 1.0: block_rq_issue: 8,0 R 4096 () 0 + 8 [a]\n"
    "a-7 [000] 1.5: block_rq_issue: 8,0 W 4096 () 16 + 8 [a]\n",
    "fiu": "1000000000 7 a 0 8 R 8 0 ff\n1500000000 7 a 16 8 W 8 0 ff\n",
    "ibm-cos": "1000 REST.PUT.OBJECT a 4096\n1500 REST.GET.OBJECT a 12288 8192 12287\n",
    "s3-log": "".join(
        f'o b [27/Nov/2026:10:00:00 +0000] 1.2.3.4 r id REST.{verb}.OBJECT {key} "-" 200 - 4096 4096 3 2 "-"\n'
        for verb, key in (("GET", "k"), ("PUT", "l"))
    ),
    "cloudfront": "#Version: 1.0\n"
    "#Fields: date time sc-bytes cs-method cs-uri-stem sc-status cs-bytes time-taken sc-range-start sc-range-end\n"
    "2026-11-27\t10:00:00\t4196\tGET\t/k\t206\t9\t0.5\t8192\t12287\n"
    "2026-11-27\t10:00:00\t9\tPUT\t/l\t200\t4096\t0\t-\t-\n",
    "csv": "lba,nsect,op\n0,8,R\n16,8,W\n",
    "strace": '7 0.5 read(3</f>, ""..., 4096) = 4096 <0.1>\n7 0.5 pwrite64(3</f>, ""..., 4096, 8192) = 4096 <0.1>\n',
    "perf-trace": " 0.1 ( 0.1 ms): a/7 read(fd: 3</f>) = 4096\n"
    " 500.1 ( 0.1 ms): a/7 pwrite64(fd: 3</f>, pos: 8192) = 4096\n",
    "fio": "fio version 3 iolog\n2 /f add\n9 /f read 0 4096\n500009 /f write 8192 4096\n",
    "fio-lat": "7, 1000000, 0, 4096, 0, 0\n507, 1000000, 1, 4096, 8192, 0\n",
    "blkparse": "8,0 3 1 0.0 697 Q R 0 + 8 [x]\n8,0 3 2 0.5 697 Q W 16 + 8 [x]\n8,0 3 2 0.6 0 C W 16 + 8 [0]\n",
    "spc": "0,0,4096,R,0.25\n0,16,4096,w,0.75\n",
    "disksim": "0.5 0 0 8 1\n500.5 0 16 8 0\n",
    "replayer": "0.5 0 0 4096 1\n500.5 0 8192 4096 0\n",
    "mqsim": "1000 0 0 8 1\n500001000 0 16 8 0\n",
    "measured": "R Hit 0 8 400000 100000\nW Miss 16 8 500 100\n",
    "webcachesim": "1 1 120\n2 2 64\n",
    "lis": "0 8 0 0\n16 8 0 1\n",
    "lirs": "0\n2\n",
    "vscsi": struct.pack("<IIIHHQQ", 1, 4096, 1, 0x28, 256, 0, 5)
    + struct.pack("<IIIHHQQ", 2, 4096, 1, 0x2A, 256, 16, 9),
    "oracleGeneral": struct.pack("<IQIq", 1, 0, 4096, -1) + struct.pack("<IQIq", 2, 2, 4096, -1),
    "u32": struct.pack("<64I", *([1000, 2000] * 32)),
}


def test_every_format_has_a_trace() -> None:
    # For offsets the user gives the size.
    assert [name for name in FORMATS if name != "offsets"] == list(TRACES)


def test_bare_offsets_need_a_size(run: Run, tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("0x0\n8192\n", encoding="utf-8")
    found = headstart.trace_info(tmp_path / "trace", request_size="4KiB")
    assert (found["requests"], found["bytes"], found["carries"]["addresses"]) == (2, 8192, True)
    done = run("trace", "info", "trace")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("allowed: with a size, --request-size 4KiB (workload.request_size)\n")
    (tmp_path / "scenario.toml").write_text('workload = {trace = "trace"}\ndevice = "nvme"\n', encoding="utf-8")
    for words in (("simulate", "scenario.toml"), ("device", "replay", "nvme", "trace")):
        done = run(*words, "--request-size", "4KiB", "--json", "-")
        assert (done.returncode, done.stderr, json.loads(done.stdout)["requests"]) == (0, "", 2), words
        assert "--request-size 4KiB" in run(*words).stderr
    for size, problem in (("0B", "is 0"), ("4", "4"), ('a"b', 'a"b')):
        done = run("simulate", "scenario.toml", "--request-size", size)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "request_size" in done.stderr and problem in done.stderr, done.stderr


@pytest.mark.parametrize("name", TRACES)
def test_info_of_every_format(run: Run, tmp_path: Path, name: str) -> None:
    content = TRACES[name]
    (tmp_path / "trace").write_bytes(content.encode() if isinstance(content, str) else content)
    done = run("trace", "info", "trace", "--block-size", "4KiB", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found == headstart.trace_info(tmp_path / "trace", format=name, block_size="4KiB"), "recognised"
    requests = 64 if name == "u32" else 2
    assert (found["requests"], found["distinct_blocks"]) == (requests, 2)
    carries = FORMATS[name]["carries"]
    assert all(carries[key] for key, carried in found["carries"].items() if carried), "no more than the format says"
    assert found["writes"] == (1 if found["carries"]["writes"] else 0)
    if found["carries"]["time"] and name not in ("tencent", "vscsi", "oracleGeneral", "twitter", "s3-log"):
        assert found["time_span_ns"] == 500_000_000
    if not found["carries"]["objects"]:
        assert found["bytes"] == 8192


def test_devices_of_a_trace_lie_one_after_another(tmp_path: Path) -> None:
    # Both units request their sectors 0 to 15: blocks 0 and 1 of unit 3, followed by 2 and 3 of unit 7.
    lines = [f"{unit},{sector},4096,R,0\n" for unit in (7, 3) for sector in (0, 8)]
    (tmp_path / "two.spc").write_text("".join(lines))
    scenario = {
        "workload": {"trace": str(tmp_path / "two.spc"), "block_size": "4KiB"},
        "cache": {"blocks": 4},
        "policy": "demand",
        "device": {"model": "uniform", "fetch_time": "1ms"},
    }
    result = headstart.simulate(scenario)
    assert (result.references, result.misses) == (4, 4)
    assert result.scenario["workload"]["placement"] == "table-order"
