"""Parquet and Arrow files of the command, read by common libraries: they have the rows of the text logs, and the types
listed in docs/columns.md."""

import subprocess

import pytest
from conftest import SAMPLE, SHARED

pa = pytest.importorskip("pyarrow")

import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

# Types of each reader for Zeek's types.
DUCKDB = {
    "time": "TIMESTAMP WITH TIME ZONE",
    "interval": "DOUBLE",
    "double": "DOUBLE",
    "count": "BIGINT",
    "int": "BIGINT",
    "port": "USMALLINT",
    "addr": "VARCHAR",
    "string": "VARCHAR",
    "enum": "VARCHAR",
    "bool": "BOOLEAN",
}
ARROW = {
    "time": pa.timestamp("us", "UTC"),
    "interval": pa.float64(),
    "double": pa.float64(),
    "count": pa.int64(),
    "int": pa.int64(),
    "port": pa.uint16(),
    "addr": pa.string(),
    "string": pa.string(),
    "enum": pa.string(),
    "bool": pa.bool_(),
}
SPARK = {
    "time": "timestamp",
    "interval": "double",
    "double": "double",
    "count": "bigint",
    "int": "bigint",
    "port": "int",
    "addr": "string",
    "string": "string",
    "enum": "string",
    "bool": "boolean",
}


@pytest.fixture(scope="module")
def logs(command, tmp_path_factory):
    """A folder with the logs of the sample or of the conformance corpus in all formats."""
    out = tmp_path_factory.mktemp("files")
    folder = SHARED / "conformance" / "captures" / "zeek"
    captures = folder if folder.is_dir() else SAMPLE
    args = ["--quiet", "-C", "--logs", "all", "--format", "tsv,parquet,arrow", "-o", out, captures]
    # Some captures of the corpus are damaged; packets before the damage have rows.
    subprocess.run([command, "analyze", *args], check=False, stderr=subprocess.DEVNULL)
    names = sorted(path.stem for path in out.glob("*.log"))
    assert "conn" in names and "dns" in names
    return out, names


def types(path):
    """Returns Zeek's type of each column of a log."""
    found = {}
    for field in pa.parquet.read_schema(path):
        zeek = (field.metadata or {}).get(b"zeek.type")
        if zeek:
            found[field.name] = zeek.decode()
    return found


def expected(zeek, names, to_list):
    """Returns a reader's name of a type; `to_list` converts the name of an element's type to that of a list."""
    for kind in ("set", "vector"):
        if zeek.startswith(kind + "["):
            return to_list(names[zeek[len(kind) + 1 : -1]])
    return names[zeek]


def header(log):
    """Returns the columns of a TSV log with their types, and its number of rows."""
    names, kinds, rows = [], [], 0
    with open(log, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for line in lines:
            if line.startswith("#fields\t"):
                names = line.rstrip("\n").split("\t")[1:]
            elif line.startswith("#types\t"):
                kinds = line.rstrip("\n").split("\t")[1:]
            elif not line.startswith("#"):
                rows += 1
    return dict(zip(names, kinds)), rows


def test_files_have_the_columns_and_rows_of_the_text_logs(logs):
    out, names = logs
    for name in names:
        columns, rows = header(out / f"{name}.log")
        parquet = pa.parquet.read_table(out / f"{name}.parquet")
        arrow = pa.feather.read_table(out / f"{name}.arrow")
        assert types(out / f"{name}.parquet") == columns, name
        assert parquet.num_rows == arrow.num_rows == rows > 0, name
        # `_row` numbers the rows in the order of the log.
        assert parquet.sort_by("_row").drop_columns("_row") == arrow, name
        for column, zeek in columns.items():
            wanted = expected(zeek, ARROW, pa.list_)
            found = arrow.schema.field(column).type
            if pa.types.is_list(wanted):
                assert pa.types.is_list(found) and found.value_type == wanted.value_type, (name, column)
            else:
                assert found == wanted, (name, column)


def test_duckdb_reads_the_files(logs):
    duckdb = pytest.importorskip("duckdb")
    out, names = logs
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in names:
        path = out / f"{name}.parquet"
        described = connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
        found = {row[0]: row[1] for row in described if row[0] != "_row"}
        wanted = {c: expected(z, DUCKDB, lambda e: e + "[]") for c, z in types(path).items()}
        assert found == wanted, name
        _, rows = header(out / f"{name}.log")
        assert connection.execute(f"SELECT count(*) FROM '{path}'").fetchall() == [(rows,)]
        # The values equal those of pyarrow.
        columns = ", ".join(f'"{column}"' for column in found)
        table = connection.sql(f"SELECT {columns} FROM '{path}' ORDER BY _row").to_arrow_table()
        arrow = pa.feather.read_table(out / f"{name}.arrow")
        assert table.to_pylist() == arrow.to_pylist(), name


def test_polars_reads_the_files(logs):
    polars = pytest.importorskip("polars")
    of = {
        pa.timestamp("us", "UTC"): polars.Datetime("us", "UTC"),
        pa.float64(): polars.Float64(),
        pa.int64(): polars.Int64(),
        pa.uint16(): polars.UInt16(),
        pa.string(): polars.String(),
        pa.bool_(): polars.Boolean(),
    }
    out, names = logs
    for name in names:
        path = out / f"{name}.parquet"
        frame = polars.read_parquet(path)
        wanted = {
            c: expected(z, {k: of[v] for k, v in ARROW.items()}, polars.List)
            for c, z in types(path).items()
        }
        assert dict(frame.drop("_row").schema) == wanted, name
        arrow = polars.read_ipc(out / f"{name}.arrow")
        assert dict(arrow.schema) == wanted, name
        assert frame.sort("_row").drop("_row").to_dicts() == arrow.to_dicts(), name
        assert polars.scan_parquet(path).select(polars.len()).collect().item() == len(arrow)
        assert len(arrow) == header(out / f"{name}.log")[1]


def test_pandas_reads_the_files(logs):
    pandas = pytest.importorskip("pandas")
    out, names = logs
    for name in names:
        path = out / f"{name}.parquet"
        _, rows = header(out / f"{name}.log")
        frame = pandas.read_parquet(path, dtype_backend="pyarrow")
        assert len(frame) == rows, name
        for column, zeek in types(path).items():
            found = frame[column].dtype.pyarrow_dtype
            wanted = expected(zeek, ARROW, pa.list_)
            assert getattr(found, "value_type", found) == getattr(wanted, "value_type", wanted)
        # Without Arrow types, numbers that may be unset are floating-point numbers.
        plain = pandas.read_parquet(path)
        assert len(plain) == rows
        if "ts" in plain and types(path)["ts"] == "time":
            assert str(plain["ts"].dtype) == "datetime64[us, UTC]", name
        assert len(pandas.read_feather(out / f"{name}.arrow")) == rows


def test_spark_reads_the_files(logs, spark):
    out, names = logs
    for name in names:
        path = out / f"{name}.parquet"
        frame = spark.read.parquet(str(path))
        found = {column: kind for column, kind in frame.dtypes if column != "_row"}
        wanted = {c: expected(z, SPARK, "array<{}>".format) for c, z in types(path).items()}
        assert found == wanted, name
        assert frame.count() == header(out / f"{name}.log")[1], name
    # Every value, of a log with times, addresses, ports, numbers, intervals and sets.
    rows = spark.read.parquet(str(out / "conn.parquet")).orderBy("_row").drop("_row").toArrow()
    arrow = pa.feather.read_table(out / "conn.arrow")
    same = rows.select(arrow.column_names).to_pylist()
    assert [plain(row) for row in same] == [plain(row) for row in arrow.to_pylist()]


def plain(row):
    """Converts times of a row to numbers, because the names of the time zone differ."""
    return {k: v.timestamp() if hasattr(v, "timestamp") else v for k, v in row.items()}
