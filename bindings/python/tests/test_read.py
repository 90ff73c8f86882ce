"""Rows as Arrow data equal those of the command, with every reader of Arrow."""

import datetime
import io
import json
import math
import shutil
import subprocess

import pytest
from conftest import records

import gannet

pa = pytest.importorskip("pyarrow")


def command_rows(command, capture, tmp_path):
    """Returns the rows of the command by log; empty if it rejects the capture."""
    out = tmp_path / "logs"
    subprocess.run([command, "analyze", "--quiet", "--json", "-o", out, capture], check=False)
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in out.glob("*.log")
    }


def plain(row):
    """Converts a row to the command's JSON."""
    out = {}
    for name, value in row.items():
        if value is None:
            continue
        if isinstance(value, datetime.datetime):
            value = value.timestamp()
        out[name] = value
    return out


def same(a, b):
    """Compares values; floating-point numbers may differ in the last digit."""
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=2e-6)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def test_rows_are_those_of_the_command(command, sample, tmp_path):
    expected = command_rows(command, sample, tmp_path)
    tables = gannet.read(sample).to_arrow()
    assert sorted(tables) == sorted(expected)
    for name, rows in expected.items():
        got = [plain(row) for row in tables[name].to_pylist()]
        assert len(got) == len(rows), name
        for one, other in zip(got, rows):
            assert same(one, other), (name, one, other)


def test_readers_of_arrow_agree(sample):
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    r = gannet.read(sample)
    for name in r.to_arrow():
        log = r[name]
        table = pa.RecordBatchReader.from_stream(log).read_all()
        assert table.num_rows > 0
        assert pa.table(log) == table == log.to_arrow()
        assert pa.schema(log) == table.schema == log.schema
        rows = table.to_pylist()
        assert polars.DataFrame(log).to_dicts() == rows
        assert log.to_polars().to_dicts() == rows
        frame = pandas.DataFrame.from_arrow(log) if hasattr(pandas.DataFrame, "from_arrow") else None
        assert frame is None or len(frame) == len(rows)
        # Compared as Arrow data, so that unset counts do not become NaN.
        assert pa.Table.from_pandas(log.to_pandas(), table.schema).to_pylist() == rows
        found = duckdb.sql("select * from log").fetchall()
        assert len(found) == len(rows)
        for one, other in zip(found, rows):
            assert list(one) == list(other.values())


def test_a_schema_reads_nothing(tmp_path):
    r = gannet.read(tmp_path / "nothing.pcap")
    assert r["conn"].schema.field("id.resp_p").type == pa.uint16()
    with pytest.raises(FileNotFoundError):
        r["conn"].to_arrow()
    with pytest.raises(FileNotFoundError):
        r["conn"].to_polars()


def test_errors_of_the_system_are_written_once(sample, tmp_path):
    missing = str(tmp_path / "nothing.pcap")
    reads = [
        lambda: gannet.read(missing)["conn"].to_arrow(),
        lambda: gannet.info(missing),
        lambda: gannet.index(missing),
        lambda: gannet.packets("C1", missing),
        lambda: list(gannet.filter("tcp", missing)),
        lambda: gannet.filter("tcp", sample, tmp_path / "no" / "folder.pcap"),
        lambda: gannet.plan(missing),
    ]
    for read in reads:
        with pytest.raises(FileNotFoundError) as raised:
            read()
        assert raised.value.errno == 2 and raised.value.filename
        assert "os error" not in str(raised.value), raised.value
    (tmp_path / "x.pcap.gannet").write_text("no folder")
    shutil.copy(sample, tmp_path / "x.pcap")
    with pytest.raises(NotADirectoryError) as raised:
        gannet.packets("C1", tmp_path / "x.pcap")
    assert "os error" not in str(raised.value), raised.value


@pytest.mark.parametrize(
    "wrong",
    [
        {"threads": 0},
        {"threads": 256},
        {"seed": -1},
        {"seed": 2**64},
        {"community_seed": 2**16},
        {"batch_rows": 0},
    ],
)
def test_numbers_out_of_range_are_refused(sample, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} must be a number"):
        gannet.read(sample, **wrong)


def test_bytes_and_file_objects_are_captures(sample):
    expected = gannet.read(sample).to_arrow()
    data = open(sample, "rb").read()
    assert gannet.read(data).to_arrow() == expected
    assert gannet.read(bytearray(data)).to_arrow() == expected
    with open(sample, "rb") as file:
        r = gannet.read(file)
        assert r.to_arrow() == expected
        # A second read starts at the same position.
        assert r.to_arrow() == expected
    import gzip

    zipped = gzip.compress(data)
    assert gannet.read(io.BytesIO(zipped)).to_arrow() == expected
    with gzip.open(io.BytesIO(zipped)) as file:
        assert gannet.read(file)["conn"].to_polars().shape[0] == expected["conn"].num_rows

    class Once:
        def __init__(self):
            self.file = io.BytesIO(data)

        def read(self, n):
            return self.file.read(n)

    r = gannet.read(Once())
    assert r["dns"].to_arrow() == expected["dns"]
    with pytest.raises(ValueError, match="already read"):
        r["dns"].to_arrow()


def test_what_a_file_object_raises_is_raised():
    class Broken:
        def read(self, n):
            raise RuntimeError("the line is dead")

    with pytest.raises(RuntimeError, match="the line is dead"):
        gannet.read(Broken())["conn"].to_arrow()


def test_urls_are_opened_by_fsspec(sample):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://captures/a.pcap", "wb") as file:
        file.write(open(sample, "rb").read())
    expected = gannet.read(sample).to_arrow()
    assert gannet.read("memory://captures/a.pcap").to_arrow() == expected
    assert gannet.read("memory://captures/*.pcap").to_arrow() == expected
    with pytest.raises(FileNotFoundError):
        gannet.read("memory://captures/*.pcapng")


def test_patterns_and_several_files(sample, tmp_path):
    header, packets = records()
    (tmp_path / "1.pcap").write_bytes(header + b"".join(packets[:20]))
    (tmp_path / "2.pcap").write_bytes(header + b"".join(packets[20:]))
    expected = gannet.read(sample).to_arrow()
    assert gannet.read(str(tmp_path / "*.pcap")).to_arrow() == expected
    assert gannet.read([tmp_path / "2.pcap", tmp_path / "1.pcap"]).to_arrow() == expected
    assert gannet.read(tmp_path).to_arrow() == expected
    with pytest.raises(FileNotFoundError, match="no file matches"):
        gannet.read(str(tmp_path / "*.cap"))


def test_damage_is_raised_with_the_rows_before_it(sample, tmp_path):
    polars = pytest.importorskip("polars")
    header, packets = records()
    path = tmp_path / "cut.pcap"
    path.write_bytes(header + b"".join(packets[:30])[:-5])
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(header + b"".join(packets[:29]))
    expected = gannet.read(whole)["conn"].to_arrow()
    r = gannet.read(path)
    for convert, kind in (("to_arrow", pa.Table), ("to_polars", polars.DataFrame)):
        with pytest.raises(gannet.CaptureError) as caught:
            getattr(r["conn"], convert)()
        error = caught.value
        assert error.file == str(path)
        assert error.packet == 30
        assert error.offset == len(header) + sum(map(len, packets[:29]))
        assert isinstance(error.partial, kind)
        assert len(error.partial) == expected.num_rows
    with pytest.raises(gannet.CaptureError) as caught:
        r.to_arrow()
    assert caught.value.partial["conn"] == expected
    rows = 0
    with pytest.raises(gannet.CaptureError):
        for batch in r["conn"]:
            rows += len(batch)
    assert rows == expected.num_rows
    # Other readers of Arrow receive the message.
    with pytest.raises(Exception, match="packet 30"):
        pa.RecordBatchReader.from_stream(r["conn"]).read_all()
    kept = gannet.read(path, errors="keep")
    assert kept["conn"].to_arrow() == expected
    assert [error.packet for error in kept.damage] == [30]
    with pytest.raises(gannet.CaptureError) as caught:
        gannet.read(b"this is no capture at all, is it?")["conn"].to_arrow()
    assert caught.value.packet is None


def test_wrong_arguments_are_errors(sample):
    with pytest.raises(ValueError, match="no log is named 'connn': did you mean 'conn'"):
        gannet.read(sample, logs=["connn"])
    with pytest.raises(TypeError, match="threads must be an integer"):
        gannet.read(sample, threads="2")
    with pytest.raises(TypeError, match="logs must be a list of strings"):
        gannet.read(sample, logs=[5])
    with pytest.raises(ValueError, match="pass several captures as a list"):
        gannet.read(sample, sample)
    with pytest.raises(TypeError, match="text mode"):
        with open(sample, encoding="latin-1") as text:
            gannet.read(text)
    with pytest.raises(TypeError, match="not a generator"):
        gannet.read(path for path in [sample])
    # A string is accepted as a list of one.
    assert gannet.read(sample, logs="conn", local_nets="10.0.0.0/8", columns="community_id").logs == ["conn"]
    with pytest.raises(ValueError, match="no log is named 'con'"):
        gannet.read(sample, logs=["con"])
    with pytest.raises(ValueError, match="filter"):
        gannet.read(sample, filter="tcp port")
    with pytest.raises(ValueError, match="no optional column"):
        gannet.read(sample, columns=["ja5"])
    with pytest.raises(KeyError):
        gannet.read(sample, logs=["dns"])["conn"]
    with pytest.raises(ValueError, match="threads"):
        gannet.read(sample, threads=0)
    with pytest.raises(ValueError, match="no captures"):
        gannet.read([])


def test_options_reach_the_analysis(sample):
    conn = gannet.read(sample, columns=["community_id"], logs="conn")["conn"].to_arrow()
    assert conn.column("community_id")[0].as_py().startswith("1:")
    assert gannet.read(sample, seed=1)["conn"].to_arrow()["uid"] != conn["uid"]
    ns = gannet.read(sample, time_unit="ns")["conn"].to_arrow()
    assert ns.schema.field("ts").type == pa.timestamp("ns", "UTC")
    few = list(gannet.read(sample, batch_rows=2)["conn"])
    assert max(map(len, few)) == 2 and sum(map(len, few)) == conn.num_rows
    r = gannet.read(sample)
    r.to_arrow()
    assert r.statistics["packets"] == gannet.info(sample)["packets"]
