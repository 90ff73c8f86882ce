"""All captures of the conformance corpus: the module returns the rows of the command, with every reader of Arrow.

The captures are in the folder `shared` next to the project, or in the folder GANNET_SHARED. The comparison stops after
GANNET_SECONDS (120 by default, 0 for no limit), and the test prints how many captures were compared.
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
    """Returns all captures in a fixed random order, so that a limited comparison covers all kinds."""
    all_captures = captures()
    random.Random(1).shuffle(all_captures)
    return all_captures


@functools.cache
def database():
    """Returns a cached connection to DuckDB, because opening one takes longer than most queries."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    return connection


def by_readers(log, schema):
    """Yields the rows of a log from each reader of Arrow, as tables."""
    import pandas
    import polars

    yield "pyarrow", pa.RecordBatchReader.from_stream(log).read_all()
    yield "polars", polars.DataFrame(log).to_arrow().cast(schema)
    found = database().sql("from log")
    # Read as one batch, which keeps the order of rows.
    yield "duckdb", pa.table(found.to_arrow_table()).cast(schema)
    yield "pandas", pa.Table.from_pandas(log.to_pandas(), schema, preserve_index=False)
    if hasattr(pandas.DataFrame, "from_arrow"):
        # With pandas' own types, unset values become NaN and their columns floats, so only uids are compared.
        frame = pandas.DataFrame.from_arrow(log)
        assert list(frame.columns) == schema.names
        uids = frame["uid"].tolist() if "uid" in schema.names else []
        uids = [None if pandas.isna(uid) else uid for uid in uids]
        yield "pandas' own types", (len(frame), uids)


def readable(value):
    """Converts strings to those of JSON logs, which do not escape backslashes of the packet before `xNN`."""
    if isinstance(value, str):
        return value.replace("\\x5cx", "\\x")
    if isinstance(value, list):
        return [readable(one) for one in value]
    if isinstance(value, dict):
        return {name: readable(one) for name, one in value.items()}
    return value


def alone(name, table):
    """Returns the rows that a log has if it is read alone: weirds about rows of logs require those logs."""
    if name != "weird":
        return table
    return table.filter(pc.invert(pc.starts_with(table["name"], "log_")))


def compared(command, capture, tmp_path):
    """Compares one capture; returns its number of rows."""
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
    """Compares captures until a deadline (monotonic time); returns their number and that of their rows."""
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
    # One process per CPU, because most of the time is spent on rows in Python.
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
