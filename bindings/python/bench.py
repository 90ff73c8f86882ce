"""Benchmarks of the Python module, compared with the command.

    python bench.py packets mix.pcap        packets per second of the module and the command
    python bench.py polars syn200k.pcap     connections to a Polars data frame
    python bench.py memory mix.pcap         peak memory while streaming 1 GB
    python bench.py files                   10,000 files of 100 kB, one read each
    python bench.py import                  time of the import
    python bench.py interrupt mix.pcap      time from SIGINT to KeyboardInterrupt
    python bench.py nfstream mix.pcap       packets per second of NFStream and gannet

`--command` is the path of the command gannet, by default the one in PATH. Times are CPU times (user and system, of all
threads and children), which depend less on other load of the machine; wall times are in brackets. Each is the best of
`--runs`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap

#: Code at the end of every measured process, which reports its times and memory.
REPORT = """
import json as _json, resource as _resource
_all = [_resource.getrusage(who) for who in (_resource.RUSAGE_SELF, _resource.RUSAGE_CHILDREN)]
_cpu = sum(one.ru_utime + one.ru_stime for one in _all)
# Not ru_maxrss, which a new process inherits from its parent.
_peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(_json.dumps({
    "cpu": _cpu - _cpu_before, "wall": _time.perf_counter() - _wall_before,
    "memory": _peak, "result": result,
}))
"""
BEGIN = """
import resource as _resource, time as _time
_all = [_resource.getrusage(who) for who in (_resource.RUSAGE_SELF, _resource.RUSAGE_CHILDREN)]
_cpu_before = sum(one.ru_utime + one.ru_stime for one in _all)
_wall_before = _time.perf_counter()
"""


def measure(code: str, runs: int, setup: str = "import gannet") -> dict:
    """Runs Python code several times in new processes, and returns the best run. The code sets `result` to a number."""
    text = "\n".join([textwrap.dedent(setup), BEGIN, textwrap.dedent(code), REPORT])
    found = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return min(found, key=lambda one: one["cpu"])


def command(args: list, runs: int) -> dict:
    """Runs the command several times, and returns the best run, including its start."""
    setup = "import subprocess"
    code = f"subprocess.run({args!r}, check=True, stdout=subprocess.DEVNULL); result = 0"
    return measure(code, runs, setup)


def show(what: str, one: dict, count: int, unit: str) -> float:
    """Prints a line, and returns the rate per second of CPU time."""
    rate = count / one["cpu"]
    print(f"{what:<40} {one['cpu']:8.3f} s ({one['wall']:.3f} s) {rate / 1e6:8.3f} M {unit}/s", flush=True)
    return rate


def packets_of(path: str) -> int:
    import gannet

    return gannet.info(path)["packets"]


def bench_packets(args: argparse.Namespace) -> None:
    """All default logs, with one thread."""
    count = packets_of(args.capture)
    with tempfile.TemporaryDirectory() as out:
        own = [args.command, "analyze", "-C", "--quiet", "-t", "1", "-o", out, args.capture]
        theirs = show("command, TSV", command(own, args.runs), count, "packets")
        columns = [*own[:-1], "--format", "arrow", args.capture]
        show("command, Arrow files", command(columns, args.runs), count, "packets")
    code = f"""
        result = 0
        for batch in gannet.read({args.capture!r}, threads=1, ignore_checksums=True):
            result += len(batch)
    """
    ours = show("module, batches of all logs", measure(code, args.runs), count, "packets")
    print(f"module / command: {ours / theirs:.1%}")


def bench_polars(args: argparse.Namespace) -> None:
    """conn.log to a data frame; the analysis alone is measured with a log that has no rows."""
    read = f"gannet.read({args.capture!r}, logs=['conn'], threads=1, ignore_checksums=True)"
    frame = measure(
        f"frame = {read}['conn'].to_polars(); result = frame.height",
        args.runs,
        "import gannet, polars",
    )
    rows = frame["result"]
    # A log without rows: the same analysis without the conversion of rows.
    alone = measure(
        f"""
        for batch in gannet.read({args.capture!r}, logs=['radius'], threads=1, ignore_checksums=True):
            pass
        result = 0
        """,
        args.runs,
        "import gannet, polars",
    )
    # From batches to a data frame: the cost of Arrow's C interface and Polars.
    over = measure(
        "frame = polars.concat([polars.DataFrame(batch) for batch in batches]); result = frame.height",
        args.runs,
        f"import gannet, polars\nbatches = list({read}['conn'])",
    )
    show("capture to frame, one thread", frame, rows, "rows")
    show("analysis without rows", alone, rows, "rows")
    handed = {key: max(frame[key] - alone[key], 1e-9) for key in ("cpu", "wall")}
    show("rows, columns and frame: the difference", handed, rows, "rows")
    show("batches to frame", over, rows, "rows")


def bench_memory(args: argparse.Namespace) -> None:
    """A capture repeated up to one gigabyte."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.pcap")
        repeat(args.capture, path, 1_000_000_000)
        size = os.path.getsize(path)
        code = f"""
            result = 0
            for batch in gannet.read({path!r}, ignore_checksums=True, threads={args.threads}):
                result += len(batch)
        """
        one = measure(code, 1)
        print(
            f"{size / 1e6:.0f} MB streamed by {args.threads} threads: {one['result']:,} rows,"
            f" {one['cpu']:.2f} s ({one['wall']:.2f} s), peak {one['memory'] / 1e6:.0f} MB"
        )


def repeat(capture: str, path: str, size: int) -> None:
    """Writes the packets of a pcap file repeatedly; each repetition is shifted by its duration and an hour."""
    import numpy as np

    data = np.fromfile(capture, dtype=np.uint8)
    assert bytes(data[:4]) == b"\xd4\xc3\xb2\xa1", "a pcap file of microseconds is needed"
    at, found = 24, []
    whole = data.tobytes()
    while at + 16 <= len(whole):
        found.append(at)
        at += 16 + struct.unpack_from("<I", whole, at + 8)[0]
    at = np.array(found)
    seconds = sum(data[at + i].astype(np.int64) << 8 * i for i in range(4))
    step = int(seconds.max() - seconds.min()) + 3600
    with open(path, "wb") as file:
        file.write(whole[:24])
        for n in range(-(-size // len(whole))):
            for i in range(4):
                data[at + i] = (seconds + n * step) >> 8 * i & 0xFF
            file.write(data[24:].data)


def bench_files(args: argparse.Namespace) -> None:
    """Small files one by one: the cost of a call beyond the analysis, which is measured with the command."""
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, "one.pcap")
        sample = pathlib.Path(__file__).resolve().parents[2] / "examples" / "sample.pcap"
        repeat(str(sample), one, 100_000)
        files = os.path.join(folder, "files")
        os.mkdir(files)
        for n in range(args.files):
            shutil.copyfile(one, os.path.join(files, f"{n:05}.pcap"))
        print(f"{args.files} files of {os.path.getsize(one)} bytes")
        out = os.path.join(folder, "out")
        run = [args.command, "analyze", "--each", "-t", "1", "--logs", "conn", "--quiet", "-o", out, files]
        analysis = command(run, 1)
        code = f"""
            result = 0
            for name in sorted(os.listdir({files!r})):
                result += gannet.read(os.path.join({files!r}, name))["conn"].to_arrow().num_rows
        """
        calls = measure(code, 1, "import os, gannet, pyarrow")
        above = {key: (calls[key] - analysis[key]) / args.files * 1e3 for key in ("cpu", "wall")}
        print(f"command --each: {analysis['cpu']:.2f} s ({analysis['wall']:.2f} s)")
        print(f"one read a file: {calls['cpu']:.2f} s ({calls['wall']:.2f} s), {calls['result']} rows")
        print(f"above the analysis, a file: {above['cpu']:.3f} ms ({above['wall']:.3f} ms)")


def bench_import(args: argparse.Namespace) -> None:
    one = measure("import gannet; result = 0", max(args.runs, 10), "pass")
    print(f"import gannet: {one['cpu'] * 1e3:.1f} ms ({one['wall'] * 1e3:.1f} ms)")


def bench_interrupt(args: argparse.Namespace) -> None:
    """SIGINT during a long analysis."""
    code = """
        import signal, threading
        sent = []
        def send():
            _time.sleep(0.5)
            sent.append(_time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            reader = gannet.read([path] * 40, threads=threads)
            how(reader)
            raise SystemExit("the run ended before the signal")
        except KeyboardInterrupt:
            result = _time.monotonic() - sent[0]
    """
    takes = {
        "to_arrow": "lambda r: r['conn'].to_arrow()",
        "to_polars": "lambda r: r['conn'].to_polars()",
        "batches": "lambda r: [len(batch) for batch in r]",
    }
    for name, take in takes.items():
        for threads in (1, 2):
            setup = f"import os, gannet, pyarrow, polars\npath, threads = {args.capture!r}, {threads}\nhow = {take}"
            found = [measure(code, 1, setup)["result"] for _ in range(args.runs)]
            print(f"{name}, {threads} threads: {max(found) * 1e3:.0f} ms at the most of {len(found)} runs")


def bench_nfstream(args: argparse.Namespace) -> None:
    """Flows with the applications that nDPI detects, compared with connections and services, and all default logs.

    Rates are per CPU time, which does not depend on the number of threads; the ratios in brackets are of wall times.
    """
    count = packets_of(args.capture)
    theirs = {}
    for name, code in {
        "NFStream, flows one by one": f"result = sum(1 for flow in {{}}(source={args.capture!r}, n_meters=1))",
        "NFStream, to_pandas": f"result = len({{}}(source={args.capture!r}, n_meters=1).to_pandas())",
    }.items():
        theirs[name] = measure(code.format("nfstream.NFStreamer"), max(args.runs // 2, 1), "import nfstream")
        show(name, theirs[name], count, "packets")
    flows, frame = theirs.values()
    for threads in (1, 2):
        read = f"gannet.read({args.capture!r}, threads={threads}, ignore_checksums=True"
        for name, code, other in (
            ("conn one by one", f"result = sum(len(batch) for batch in {read}, logs=['conn']))", flows),
            ("conn as a frame of pandas", f"result = len({read})['conn'].to_pandas())", frame),
            ("all usual logs as batches", f"result = sum(len(batch) for batch in {read}))", flows),
        ):
            one = measure(code, args.runs, "import gannet, pyarrow, pandas")
            show(f"gannet -t {threads}, {name}", one, count, "packets")
            ratios = [other[key] / one[key] for key in ("cpu", "wall")]
            print(f"  times NFStream's: {ratios[0]:.1f} ({ratios[1]:.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    benches = {name[6:]: bench for name, bench in globals().items() if name.startswith("bench_")}
    parser.add_argument("bench", choices=sorted(benches))
    parser.add_argument("capture", nargs="?", default="mix.pcap")
    parser.add_argument("--command", default=os.environ.get("GANNET_COMMAND") or shutil.which("gannet"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--files", type=int, default=10_000)
    args = parser.parse_args()
    benches[args.bench](args)


if __name__ == "__main__":
    main()
