"""Captures in S3, by a server of moto on this machine."""

import pytest
from conftest import SAMPLE, records

server = pytest.importorskip("moto.server", reason="moto is not installed")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
pa = pytest.importorskip("pyarrow")

import gannet


@pytest.fixture
def bucket(monkeypatch):
    s3 = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    s3.start()
    host, port = s3.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    fs = s3fs.S3FileSystem()
    fs.mkdir("captures")
    yield fs
    s3fs.S3FileSystem.clear_instance_cache()
    s3.stop()


def test_captures_are_read_and_divided(bucket):
    header, packets = records()
    each = len(packets) // 3 + 1
    for i in range(0, len(packets), each):
        with bucket.open(f"captures/{i:04}.pcap", "wb") as file:
            file.write(header + b"".join(packets[i : i + each]))
    expected = gannet.read(SAMPLE).to_arrow()
    assert gannet.read("s3://captures/*.pcap").to_arrow() == expected
    plan = gannet.plan("s3://captures/*.pcap", logs=["conn"])
    assert len(plan) == 3
    uids = [uid for task in plan for uid in task.to_arrow()["conn"]["uid"].to_pylist()]
    assert sorted(uids) == sorted(expected["conn"]["uid"].to_pylist())
