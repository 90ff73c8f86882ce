"""Behaviour of the module in a process: signals, threads, memory, time."""

import contextlib
import multiprocessing
import os
import pathlib
import signal
import sys
import threading
import time

import pytest
from conftest import SAMPLE, python, records

import gannet

pa = pytest.importorskip("pyarrow")


def interrupted(take):
    """Returns the time from a signal to KeyboardInterrupt."""
    # Shells start background programs with SIGINT ignored, which Python keeps.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = []

    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()
    try:
        try:
            take()
        except Exception:
            # Other readers of Arrow raise an error; the interrupt follows immediately.
            pass
        # Gives Python the opportunity to handle the signal.
        for _ in range(100):
            time.sleep(0.01)
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    pytest.fail("no KeyboardInterrupt")


@pytest.mark.parametrize("how", ["arrow", "batches", "pyarrow", "polars", "events"])
def test_an_interrupt_ends_a_run(how, tmp_path):
    pytest.importorskip("polars")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opened for reading and writing, so that opening it for reading does not block.
    hold = os.open(pipe, os.O_RDWR)
    os.write(hold, open(SAMPLE, "rb").read()[:4000])
    r = gannet.read(pipe)
    take = {
        "arrow": lambda: r["conn"].to_arrow(),
        "batches": lambda: list(r),
        "pyarrow": lambda: pa.RecordBatchReader.from_stream(r["conn"]).read_all(),
        "polars": lambda: r["conn"].to_polars(),
        "events": lambda: list(gannet.events(pipe)),
    }[how]
    took = interrupted(take)
    os.close(hold)
    # 200 ms, doubled for busy machines.
    assert took < 0.4, took


def test_an_interrupt_ends_a_capture_that_is_written(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hold = os.open(pipe, os.O_RDWR)
    header, packets = records()
    going = threading.Event()

    def feed():
        # Packets arrive slowly, so that the interrupt occurs while the file is written.
        while not going.wait(0.02):
            os.write(hold, packets[0])

    os.write(hold, header + packets[0])
    feeder = threading.Thread(target=feed)
    feeder.start()
    to = tmp_path / "out.pcap"
    try:
        interrupted(lambda: gannet.filter("", pipe, to))
    finally:
        going.set()
        feeder.join()
        os.close(hold)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.pcap", "pipe"]
    assert gannet.info(to)["packets"] >= 1


def test_threads_read_at_once(large):
    expected = gannet.read(large, threads=1)["conn"].to_arrow().num_rows
    got = []
    ticks = [0]
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.005)

    threads = [
        threading.Thread(target=lambda: got.append(gannet.read(large)["conn"].to_arrow().num_rows))
        for _ in range(2)
    ]
    clock = threading.Thread(target=tick)
    clock.start()
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    done.set()
    clock.join()
    assert got == [expected, expected]
    # The interpreter ran other threads meanwhile.
    assert ticks[0] > took / 0.005 / 10


def _rows(path):
    return gannet.read(path)["conn"].to_arrow().num_rows


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_read_at_once(method, sample):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_rows, [sample] * 4) == [_rows(sample)] * 4


def test_memory_does_not_grow_with_the_capture(large):
    # VmHWM is the peak of this process; ru_maxrss includes that of its parent.
    code = f"""
import gannet
rows = 0
for batch in gannet.read({large!r}):
    rows += len(batch)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, peak // 1024)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    rows, megabytes = map(int, done.stdout.split())
    assert rows > 50_000
    assert megabytes < 300, megabytes


def names_of_threads():
    names = []
    for thread in os.listdir("/proc/self/task"):
        # If a thread ends meanwhile, its file is missing, or reading it fails with "No such process".
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append(pathlib.Path(f"/proc/self/task/{thread}/comm").read_text().strip())
    return names


def test_a_reader_that_stops_early_ends_the_analysis(large):
    for _ in range(3):
        next(iter(gannet.read(large)))
    for _ in range(50):
        if "gannet" not in names_of_threads():
            break
        time.sleep(0.1)
    else:
        pytest.fail("the thread of the analysis goes on")


def test_the_import_is_short():
    # CPU time, because other tests may run at the same time.
    code = "import time; t = time.process_time(); import gannet; print(time.process_time() - t)"
    took = min(float(python(code).stdout) for _ in range(5))
    # A wheel takes a few milliseconds, the unstripped library of a debug build more.
    assert took < 0.1, took


def test_nothing_heavy_is_imported():
    code = "import sys, gannet; print([m for m in ('pyarrow', 'pandas', 'polars', 'numpy') if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="names of threads")
def test_an_exception_of_a_handler_is_raised(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hold = os.open(pipe, os.O_RDWR)

    def handler(*_):
        raise TimeoutError("enough")

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            gannet.read(pipe)["conn"].to_polars()
    finally:
        signal.signal(signal.SIGALRM, old)
        os.close(hold)
