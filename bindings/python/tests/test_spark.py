"""The data source for Spark 4, on the local machine."""

import pytest
from conftest import in_order, rotate

import gannet


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    from gannet.spark import GannetDataSource

    spark.dataSource.register(GannetDataSource)


@pytest.fixture(scope="module")
def rotated(tmp_path_factory):
    return rotate(tmp_path_factory.mktemp("rotated"))


def rows_of(frame):
    """Returns the rows of a Spark data frame, with pyarrow's values."""
    return in_order(frame.toArrow().to_pylist())


def expected_rows(rotated, log):
    from gannet.spark import spark_schema

    table = gannet.read(rotated, logs=[log])[log].to_arrow()
    return in_order(table.cast(spark_schema(table.schema)).to_pylist())


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("log", ["conn", "dns"])
def test_rows_are_those_of_one_run(spark, rotated, log, tasks):
    frame = spark.read.format("gannet").option("log", log).option("tasks", tasks).load(str(rotated))
    assert frame.rdd.getNumPartitions() == tasks
    assert rows_of(frame) == expected_rows(rotated, log)


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
    # The first worker that has read rows is killed.
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
    # All columns pass through the workers, including the killed one. mapInArrow does not support names with dots.
    plain = frame.toDF(*(name.replace(".", "_") for name in frame.columns))
    rows = rows_of(plain.mapInArrow(die, plain.schema))
    assert marker.exists()
    expected = expected_rows(rotated, "conn")
    assert rows == [{name.replace(".", "_"): v for name, v in row.items()} for row in expected]
