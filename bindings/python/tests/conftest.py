"""Fixtures and helpers of the tests: the sample capture, captures made from it, and the command."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLE = str(ROOT / "examples" / "sample.pcap")
SHARED = pathlib.Path(os.environ.get("GANNET_SHARED", ROOT.parent / "shared"))


@pytest.fixture
def sample():
    return SAMPLE


@pytest.fixture(scope="session")
def command():
    """The command `gannet` of the same build, if it exists."""
    found = os.environ.get("GANNET_COMMAND") or shutil.which("gannet")
    if not found:
        pytest.skip("no command gannet: GANNET_COMMAND names it")
    return found


def captures():
    """Returns all captures of the conformance corpus, sorted by name."""
    folder = SHARED / "conformance" / "captures"
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """The sample repeated half a minute apart: two hundred thousand packets of connections that end."""
    path = tmp_path_factory.mktemp("large") / "large.pcap"
    header, packets = records()
    with open(path, "wb") as file:
        file.write(header)
        for i in range(3_000):
            for packet in packets:
                seconds = struct.unpack_from("<I", packet)[0] + 30 * i
                file.write(struct.pack("<I", seconds) + packet[4:])
    return str(path)


@pytest.fixture(scope="session")
def spark():
    """A local Spark session. A process has only one, with the settings of the first test that creates it."""
    pytest.importorskip("pyspark", minversion="4.0", reason="pyspark is not installed")
    if not shutil.which("java"):
        pytest.skip("no Java for Spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        # Two threads; a task may fail twice.
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()


def rotate(folder, files=7):
    """Writes the sample as consecutive files, so that connections span several of them."""
    header, packets = records()
    for i in range(files):
        some = packets[len(packets) * i // files : len(packets) * (i + 1) // files]
        (folder / f"{i:04}.pcap").write_bytes(header + b"".join(some))
    return folder


def in_order(rows):
    """Returns the rows sorted by time, uid, and all other values."""
    return sorted(rows, key=lambda row: (row["ts"], row["uid"], repr(row)))


def records(path=SAMPLE):
    """The header of a pcap file, and its records."""
    data = pathlib.Path(path).read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    at, found = 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + 16 + length])
        at += 16 + length
    return data[:24], found


def python(code, **kwargs):
    """Runs Python code in a new process."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **kwargs
    )
