"""The data source of Spark 4, on this machine."""

import os
import shutil
import sys

import pytest
from conftest import SAMPLE, records

pytest.importorskip("pyspark", minversion="4.0", reason="pyspark is not installed")
if not shutil.which("java"):
    pytest.skip("no Java for Spark", allow_module_level=True)

import pyarrow as pa

import gannet


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from gannet.spark import GannetDataSource

    spark = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    spark.dataSource.register(GannetDataSource)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def rotated(tmp_path_factory):
    path = tmp_path_factory.mktemp("rotated")
    header, packets = records()
    each = len(packets) // 3 + 1
    for i in range(0, len(packets), each):
        (path / f"{i:04}.pcap").write_bytes(header + b"".join(packets[i : i + each]))
    return path


def test_rows_are_those_of_one_run(spark, rotated):
    frame = spark.read.format("gannet").option("log", "conn").load(str(rotated))
    expected = gannet.read(rotated, logs=["conn"])["conn"].to_arrow()
    got = {row["uid"]: row.asDict() for row in frame.collect()}
    assert len(got) == expected.num_rows
    for row in expected.to_pylist():
        other = got[row["uid"]]
        assert other["id.resp_p"] == row["id.resp_p"]
        assert other["service"] == row["service"]
        assert other["duration"] == row["duration"]


def test_every_log_has_a_schema_that_spark_takes(spark, rotated):
    for log in ("dns", "http", "ssl", "files", "smtp"):
        frame = spark.read.format("gannet").option("log", log).load(str(rotated))
        assert frame.count() == gannet.read(rotated, logs=[log])[log].to_arrow().num_rows


def test_filters_are_pushed_down(spark, rotated):
    frame = spark.read.format("gannet").option("log", "conn").load(str(rotated))
    some = frame.filter("`id.resp_p` = 53 and service is not null")
    rows = gannet.read(rotated)["conn"].to_arrow().to_pylist()
    expected = [r for r in rows if r["id.resp_p"] == 53 and r["service"] is not None]
    assert expected and some.count() == len(expected)
    none = frame.filter("not (service in ('dns', 'http'))").count()
    assert none == len([r for r in rows if r["service"] not in (None, "dns", "http")])


def test_a_killed_worker_is_run_again(spark, rotated, tmp_path, monkeypatch):
    # The first worker that reads the second task kills itself.
    marker = tmp_path / "killed"

    def die(iterator):
        import os
        import signal

        for batch in iterator:
            if not marker.exists():
                marker.write_text("x")
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    frame = spark.read.format("gannet").option("log", "conn").load(str(rotated))
    uids = frame.select("uid").mapInArrow(die, "uid string").collect()
    assert marker.exists()
    assert len(uids) == gannet.read(rotated)["conn"].to_arrow().num_rows
