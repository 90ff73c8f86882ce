"""Packets, events, and metadata of captures."""

import datetime
import json
import shutil
import struct
import subprocess

import pytest
from conftest import records

import gannet


def test_filter_gives_and_writes_packets(sample, tmp_path):
    _, all_packets = records()
    packets = list(gannet.filter("tcp", sample))
    assert 0 < len(packets) < len(all_packets)
    first = packets[0]
    assert all_packets[first.number - 1].endswith(first.data)
    assert first.time.tzinfo is datetime.timezone.utc
    to = tmp_path / "tcp.pcapng.zst"
    assert gannet.filter("tcp", sample, to) == len(packets)
    assert [p.data for p in gannet.filter("", to)] == [p.data for p in packets]
    with pytest.raises(ValueError, match="filter"):
        gannet.filter("tcp port", sample)
    copy = shutil.copy(sample, tmp_path / "copy.pcap")
    with pytest.raises(ValueError, match="is an input"):
        gannet.filter("tcp", copy, copy)


def test_a_filter_without_an_answer_for_the_link_type_is_refused(sample, tmp_path):
    to = tmp_path / "out.pcap"
    with pytest.raises(ValueError, match="Ethernet"):
        list(gannet.filter("inbound", sample))
    with pytest.raises(ValueError, match="Ethernet"):
        gannet.filter("arp and ip", sample, to)
    assert not to.exists() and not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="Ethernet"):
        list(gannet.events(sample, filter="inbound"))
    for batches in (gannet.read(sample, filter="inbound")["conn"], gannet.read(sample, filter="inbound")):
        with pytest.raises(ValueError, match="Ethernet"):
            list(batches)
    task = gannet.plan(sample, logs=["conn"], filter="inbound")[0]
    with pytest.raises(ValueError, match="Ethernet"):
        list(task.run())


def test_a_filter_with_an_answer_for_some_packets_warns(sample, tmp_path):
    cooked = tmp_path / "cooked.pcap"
    header, packets = records()
    cooked.write_bytes(header[:20] + struct.pack("<I", 113) + packets[0])
    with pytest.warns(RuntimeWarning, match="does not apply to .* packets .Ethernet"):
        list(gannet.filter("inbound", [sample, str(cooked)]))
    with pytest.warns(RuntimeWarning, match="does not apply to .* packets .Ethernet"):
        list(gannet.read([sample, str(cooked)], filter="inbound"))


def test_packets_of_a_connection(sample, tmp_path):
    capture = shutil.copy(sample, tmp_path / "copy.pcap")
    for batch in gannet.read(capture)["conn"]:
        pa = pytest.importorskip("pyarrow")
        for row in pa.record_batch(batch).to_pylist():
            assert len(gannet.packets(row["uid"], capture)) == row["orig_pkts"] + row["resp_pkts"]
    with pytest.raises(LookupError):
        gannet.packets("CNothing", capture)


def test_events_are_those_of_the_command(command, sample, tmp_path):
    # A packet with a wrong checksum, and one with a correct one.
    wrong = tmp_path / "wrong.pcap"
    header, packets = records()
    udp = next(i for i, p in enumerate(packets) if p[16 + 23] == 17)
    packets[udp] = packets[udp][:-1] + bytes([packets[udp][-1] ^ 1])
    wrong.write_bytes(header + b"".join(packets))
    for option, verifies in [([], False), (["--checksums"], True)]:
        for path in (sample, str(wrong)):
            args = [command, "events", *option, path]
            lines = subprocess.run(args, capture_output=True, check=True).stdout.splitlines()
            options = {"ignore_checksums": False} if verifies else {}
            events = list(gannet.events(path, **options))
            assert [json.loads(line)["event"] for line in lines] == [event.name for event in events]
    events = list(gannet.events(sample))
    http = [event for event in events if event.name == "http_request"]
    assert http and isinstance(http[0].c.start_time, datetime.datetime)
    assert isinstance(http[0].c.duration, datetime.timedelta)
    assert http[0].c.id.resp_p == (80, "tcp")
    assert http[0].nothing_of_that_name is None
    with pytest.raises(ValueError, match="no event is named"):
        gannet.events(sample, only="nothing_*")
    with pytest.raises(TypeError, match="names of events, not 5"):
        gannet.events(sample, only=[5])


def test_info_is_that_of_the_command(command, sample):
    line = subprocess.run([command, "info", "--json", sample], capture_output=True, check=True)
    assert gannet.info(sample) == json.loads(line.stdout)
    assert gannet.info(open(sample, "rb").read())["packets"] == gannet.info(sample)["packets"]


def test_the_command_is_of_the_same_version(command):
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert gannet.__version__ in done.stdout
