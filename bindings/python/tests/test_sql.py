"""SQL queries over captures with DuckDB."""

import pytest
from conftest import SAMPLE

import gannet

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")


def test_a_query_has_the_rows_of_a_log(sample):
    table = gannet.read(sample)["conn"].to_arrow()
    answer = gannet.sql("select * from conn", sample)
    got = answer.to_arrow()
    assert got.column_names == table.column_names
    assert got.cast(table.schema).to_pylist() == table.to_pylist()
    # The query runs each time.
    assert pa.RecordBatchReader.from_stream(answer).read_all() == got


def test_logs_are_joined():
    pytest.importorskip("polars")
    query = """
        select conn.uid, dns.query from conn join dns using (uid)
        where conn."id.resp_p" = 53 order by conn.ts, dns.query
    """
    frame = gannet.sql(query, SAMPLE, threads=1).to_polars()
    uids = set(gannet.read(SAMPLE)["conn"].to_polars()["uid"])
    assert frame.height == 4 and set(frame["uid"]) <= uids
    assert gannet.sql(query, SAMPLE).to_pandas()["query"].tolist() == frame["query"].to_list()


def test_logs_that_are_off_by_default_can_be_asked():
    assert gannet.sql("select count(*) n from known_hosts", SAMPLE).to_arrow()["n"].to_pylist() == [
        gannet.read(SAMPLE, logs=["known_hosts"])["known_hosts"].to_arrow().num_rows
    ]


def test_options_are_those_of_read(sample):
    got = gannet.sql("select distinct proto from conn", sample, filter="udp").to_arrow()
    assert got["proto"].to_pylist() == ["udp"]
    with pytest.raises(TypeError, match="the query names them"):
        gannet.sql("select 1", sample, logs=["conn"])


def test_a_wrong_query_is_an_error(sample):
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(duckdb.Error, match="nothing"):
        gannet.sql("select nothing from conn", sample).to_arrow()
    with pytest.raises(duckdb.Error):
        gannet.sql("select * from con", sample).to_arrow()


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1) to 'made.csv'",
        "create table t (i int)",
        "explain analyze copy (select 1) to 'made.csv'",
        "select 1; select 2",
        "attach 'made.db'",
        "set threads = 1",
        "",
    ],
)
def test_only_one_query_that_reads_is_taken(query, sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError):
        gannet.sql(query, sample).to_arrow()
    assert not list(tmp_path.iterdir())


def test_queries_may_begin_with_from_and_with(sample):
    for query in ("from conn", "with c as (from conn) select * from c", "select * from conn;"):
        rows = gannet.read(sample)["conn"].to_arrow().num_rows
        assert gannet.sql(query, sample).to_arrow().num_rows == rows


def test_damage_is_an_error_after_the_rows(sample, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(open(sample, "rb").read()[:-5])
    query = "select count(*) n from conn"
    with pytest.raises(gannet.CaptureError) as caught:
        gannet.sql(query, cut).to_arrow()
    assert caught.value.file == str(cut) and caught.value.packet
    partial = caught.value.partial["n"].to_pylist()
    assert partial == [gannet.read(cut, errors="keep")["conn"].to_arrow().num_rows]
    assert gannet.sql(query, cut, errors="keep").to_arrow()["n"].to_pylist() == partial
    with pytest.raises((gannet.CaptureError, OSError)):
        gannet.sql(query, tmp_path / "none.pcap").to_arrow()
