"""The data source for Ray, on the local machine."""

import os

import pytest
from conftest import in_order, rotate

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


@pytest.fixture(scope="module")
def rotated(tmp_path_factory):
    return rotate(tmp_path_factory.mktemp("rotated"))


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("log", ["conn", "dns"])
def test_rows_are_those_of_one_run(cluster, rotated, log, tasks):
    import gannet.ray

    source = gannet.ray.Source(str(rotated), log=log)
    assert len(source.get_read_tasks(tasks)) == tasks
    rows = ray.data.read_datasource(source, override_num_blocks=tasks).take_all()
    expected = gannet.read(rotated, logs=[log])[log].to_arrow().to_pylist()
    assert in_order(rows) == in_order(expected)


def test_a_killed_worker_is_run_again(cluster, rotated, tmp_path):
    import gannet.ray

    marker = tmp_path / "killed"

    def die(batch):
        import signal

        # The first worker to reach this is killed during its read task.
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return batch
        os.kill(os.getpid(), signal.SIGKILL)

    data = ray.data.read_datasource(gannet.ray.Source(str(rotated)), override_num_blocks=7)
    rows = data.map_batches(die, batch_format="pyarrow").take_all()
    assert marker.exists()
    expected = gannet.read(rotated, logs=["conn"])["conn"].to_arrow().to_pylist()
    assert in_order(rows) == in_order(expected)
