"""Captures in S3, with a local moto server."""

import pytest
from conftest import SAMPLE, in_order, rotate

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
    # The state of a moto server is global to the process.
    fs.makedirs("captures", exist_ok=True)
    yield fs
    s3fs.S3FileSystem.clear_instance_cache()
    s3.stop()


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_captures_are_read_and_divided(bucket, tmp_path, tasks):
    for path in rotate(tmp_path).iterdir():
        bucket.put(str(path), f"captures/{path.name}")
    expected = gannet.read(SAMPLE).to_arrow()
    assert gannet.read("s3://captures/*.pcap").to_arrow() == expected
    plan = gannet.plan("s3://captures/*.pcap", tasks, logs=["conn", "dns"])
    assert len(plan) == tasks
    for log in ("conn", "dns"):
        rows = [row for task in plan for row in task.to_arrow()[log].to_pylist()]
        assert in_order(rows) == in_order(expected[log].to_pylist())
