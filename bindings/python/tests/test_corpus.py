"""All captures of the conformance corpus: the rows of the module are those of the command, through every reader.

The captures are in the folder `shared` next to the project, or where GANNET_SHARED says. Comparing stops after
GANNET_SECONDS (120 by default), and the test says how many captures were left; 0 stands for no limit.
"""

import functools
import math
import multiprocessing
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from conftest import captures
from test_read import command_rows, plain, same

import gannet

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")


def ordered():
    """All captures, so that those that are compared first are of all kinds."""
    all_captures = captures()
    random.Random(1).shuffle(all_captures)
    return all_captures


@functools.cache
def database():
    """A connection of DuckDB: opening one takes longer than most queries."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    return connection


def by_readers(log, schema):
    """The rows of a log by each reader of Arrow, as tables."""
    import pandas
    import polars

    yield "pyarrow", pa.RecordBatchReader.from_stream(log).read_all()
    yield "polars", polars.DataFrame(log).to_arrow().cast(schema)
    found = database().sql("from log")
    # In one batch, so that the order is that of the rows.
    yield "duckdb", pa.table(found.to_arrow_table()).cast(schema)
    yield "pandas", pa.Table.from_pandas(log.to_pandas(), schema, preserve_index=False)
    if hasattr(pandas.DataFrame, "from_arrow"):
        # pandas' own types turn unset values into NaN, and counts among them into floats: uids are compared.
        frame = pandas.DataFrame.from_arrow(log)
        assert list(frame.columns) == schema.names
        uids = frame["uid"].tolist() if "uid" in schema.names else []
        uids = [None if pandas.isna(uid) else uid for uid in uids]
        yield "pandas' own types", (len(frame), uids)


def readable(value):
    """Texts as JSON logs have them: columns also say which backslashes before `xNN` were in the packet."""
    if isinstance(value, str):
        return value.replace("\\x5cx", "\\x")
    if isinstance(value, list):
        return [readable(one) for one in value]
    if isinstance(value, dict):
        return {name: readable(one) for name, one in value.items()}
    return value


def alone(name, table):
    """The rows that a log has where no other is read: weirds about rows of logs need these logs."""
    if name != "weird":
        return table
    return table.filter(pc.invert(pc.starts_with(table["name"], "log_")))


def compared(command, capture, tmp_path):
    """Compares one capture; returns how many rows it has."""
    expected = command_rows(command, capture, tmp_path)
    reader = gannet.read(capture, errors="keep")
    try:
        tables = reader.to_arrow()
    except gannet.CaptureError:
        assert not expected
        return 0
    assert sorted(tables) == sorted(expected)
    for name, rows in expected.items():
        table = tables[name]
        got = [plain(row) for row in table.to_pylist()]
        assert len(got) == len(rows), name
        for one, other in zip(got, rows):
            assert same(readable(one), other), (name, one, other)
        table = alone(name, table)
        for library, other in by_readers(reader[name], table.schema):
            if isinstance(other, tuple):
                uids = table["uid"].to_pylist() if "uid" in table.schema.names else []
                assert other == (table.num_rows, uids), (library, name)
            else:
                assert other.combine_chunks().equals(table.combine_chunks()), (library, name)
    return sum(map(len, expected.values()))


def compared_until(deadline, command, some, folder):
    """Compares captures until a point of monotonic time; returns how many, and how many rows they have."""
    rows = 0
    for done, capture in enumerate(some):
        if time.monotonic() > deadline:
            return done, rows
        try:
            rows += compared(command, capture, folder / str(done))
        except AssertionError as error:
            raise AssertionError(f"{capture}: {error}") from error
    return len(some), rows


def test_rows_of_all_captures_are_those_of_the_command(command, tmp_path, capsys):
    for library in ("polars", "duckdb", "pandas"):
        pytest.importorskip(library)
    all_captures = ordered()
    if not all_captures:
        pytest.skip("no captures: GANNET_SHARED names their folder")
    limit = float(os.environ.get("GANNET_SECONDS", "120"))
    deadline = time.monotonic() + limit if limit else math.inf
    # A process for each processor: most of the time goes into the rows in Python.
    n = min(os.cpu_count() or 1, len(all_captures))
    with ProcessPoolExecutor(n, multiprocessing.get_context("spawn")) as pool:
        parts = [
            pool.submit(compared_until, deadline, command, all_captures[i::n], tmp_path / str(i))
            for i in range(n)
        ]
        found = [part.result() for part in parts]
    done, rows = (sum(column) for column in zip(*found))
    with capsys.disabled():
        print(f"\n{done} of {len(all_captures)} captures have the command's rows, {rows} in all")
    assert done >= min(len(all_captures), 20)
    assert rows > 100
