"""The data source of Ray, on this machine."""

import os

import pytest
from conftest import records

pytest.importorskip("ray.data", reason="ray is not installed")

import ray

import gannet


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        object_store_memory=200 << 20,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


def test_rows_are_those_of_one_run(cluster, tmp_path):
    import gannet.ray

    header, packets = records()
    each = len(packets) // 3 + 1
    for i in range(0, len(packets), each):
        (tmp_path / f"{i:04}.pcap").write_bytes(header + b"".join(packets[i : i + each]))
    data = ray.data.read_datasource(gannet.ray.Source(str(tmp_path), log="conn"))
    rows = data.take_all()
    expected = gannet.read(tmp_path)["conn"].to_arrow().to_pylist()
    assert sorted(row["uid"] for row in rows) == sorted(row["uid"] for row in expected)
    by_uid = {row["uid"]: row for row in rows}
    for row in expected:
        assert by_uid[row["uid"]]["id.resp_p"] == row["id.resp_p"]
        assert by_uid[row["uid"]]["history"] == row["history"]
