"""Logs of captures as Arrow."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Sequence

from gannet import _gannet
from gannet._errors import check, check_policy
from gannet._sources import Source, Sources

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from gannet._gannet import Batch


def check_range(name: str, value: int | None, minimum: int, maximum: int | None = None) -> None:
    """Raises an error if a number is out of range; None is allowed."""
    if value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if (value >= minimum and (maximum is None or value <= maximum)):
        return
    numbers = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    raise ValueError(f"{name} must be a number {numbers}, not {value}")


def _list(name: str, value: str | Sequence[str] | None) -> list[str] | None:
    """Returns a list of strings; a single string becomes a list of one."""
    if value is None:
        return None
    values = [value] if isinstance(value, str) else list(value)
    for one in values:
        if not isinstance(one, str):
            raise TypeError(f"{name} must be a list of strings, but contains {one!r}")
    return values


def _check_logs(names: list[str] | None) -> None:
    """Raises an error with a hint for a name similar to a log's; the native module rejects other unknown names."""
    known = [log[0] for log in _gannet.log_declarations()] if names else []
    for name in names or []:
        if os.sep in name or "." in name:
            raise ValueError(f"no log is named '{name}'; pass several captures as a list of paths")
        if name not in known and name != "all":
            import difflib

            if close := difflib.get_close_matches(name, known, 1):
                raise ValueError(f"no log is named '{name}': did you mean '{close[0]}'?")


def settings(
    *,
    logs: str | Sequence[str] | None = None,
    filter: str | None = None,
    threads: int | None = None,
    columns: str | Sequence[str] = (),
    seed: int = 0,
    ignore_checksums: bool = False,
    local_nets: str | Sequence[str] | None = None,
    hash_files: bool = False,
    inner_protocols: bool = False,
    community_seed: int = 0,
    time_unit: str = "us",
    batch_rows: int | None = None,
) -> str:
    """Returns the settings of an analysis as JSON, for the native module."""
    logs = _list("logs", logs)
    _check_logs(logs)
    if time_unit not in ("us", "ns"):
        raise ValueError(f"time_unit must be 'us' or 'ns', not {time_unit!r}")
    check_range("threads", threads, 1, 255)
    check_range("seed", seed, 0, 2**64 - 1)
    check_range("community_seed", community_seed, 0, 2**16 - 1)
    check_range("batch_rows", batch_rows, 1)
    return json.dumps(
        {
            "logs": logs,
            "filter": filter,
            "threads": threads,
            "columns": _list("columns", columns),
            "seed": seed,
            "ignore_checksums": ignore_checksums,
            "local_nets": _list("local_nets", local_nets),
            "hash_files": hash_files,
            "inner_protocols": inner_protocols,
            "community_seed": community_seed,
            "nanoseconds": time_unit == "ns",
            "batch_rows": batch_rows,
        }
    )


def read(
    paths: Source | Sequence[Source],
    logs: str | Sequence[str] | None = None,
    *,
    filter: str | None = None,
    threads: int | None = None,
    columns: str | Sequence[str] = (),
    seed: int = 0,
    ignore_checksums: bool = False,
    local_nets: str | Sequence[str] | None = None,
    hash_files: bool = False,
    inner_protocols: bool = False,
    community_seed: int = 0,
    time_unit: str = "us",
    batch_rows: int | None = None,
    errors: str = "raise",
) -> Reader:
    """Returns a reader of the logs of captures. Nothing is read until rows are requested.

    Args:
        paths: A path, a pattern like ``day/*.pcap.zst``, a folder, a URL that fsspec opens (``s3://...``), bytes,
            a binary file object, or a list of these, which are read as one stream ordered by time. The formats are
            pcap and pcapng, optionally compressed with gzip, zstd, xz or lz4.
        logs: Names of logs; by default all that are on by default. :func:`logs` lists them.
        filter: Analyse only packets that match, like ``"tcp port 80 and not net 10.0.0.0/8"``.
        threads: Number of threads; by default one for each core, and one for small captures. The rows do not
        depend on it.
        columns: Optional columns: ``community_id`` in conn; ``ja3``, ``ja3s`` and ``ja4`` in ssl.
        seed: Seed of the uids.
        ignore_checksums: Also analyse packets with wrong checksums, for captures made on hosts with checksum
        offloading.
        local_nets: Local networks, like ``["10.0.0.0/8"]``.
        hash_files: Hash the contents of all files.
        inner_protocols: Analyse protocols within LDAP and PostgreSQL.
        community_seed: Seed of ``community_id``.
        time_unit: ``"us"`` or ``"ns"``.
        batch_rows: Maximum number of rows of a batch, 16,384 by default.
        errors: How damaged or truncated captures are handled: ``"raise"`` raises :class:`CaptureError` after the
        rows of the packets before the damage, ``"keep"`` only records it in :attr:`Reader.damage`.

    >>> import gannet
    >>> r = gannet.read(SAMPLE, logs=["conn", "dns"])
    >>> r
    <gannet.Reader: conn, dns>
    >>> r["conn"].to_arrow().column("service").to_pylist().count("http")
    2
    >>> gannet.read(SAMPLE, filter="udp port 53").to_arrow()["conn"].num_rows
    4
    """
    text = settings(
        logs=logs,
        filter=filter,
        threads=threads,
        columns=columns,
        seed=seed,
        ignore_checksums=ignore_checksums,
        local_nets=local_nets,
        hash_files=hash_files,
        inner_protocols=inner_protocols,
        community_seed=community_seed,
        time_unit=time_unit,
        batch_rows=batch_rows,
    )
    return Reader(Sources(paths), text, check_policy(errors))


class Column(NamedTuple):
    """A column of a log."""

    name: str
    #: Zeek's type.
    type: str
    #: Description of the column.
    doc: str
    #: Whether the log has it only if ``columns`` names it.
    optional: bool


class LogInfo(NamedTuple):
    """A log that gannet can write."""

    name: str
    #: Description of a row.
    doc: str
    #: Whether it is written only if ``logs`` names it.
    opt_in: bool
    columns: list[Column]


def logs() -> list[LogInfo]:
    """Returns all logs with their columns.

    >>> import gannet
    >>> conn = next(log for log in gannet.logs() if log.name == "conn")
    >>> conn.columns[1].name, conn.columns[1].type
    ('uid', 'string')
    """
    return [
        LogInfo(name, doc, opt_in, [Column(*column) for column in columns])
        for name, doc, opt_in, columns in _gannet.log_declarations()
    ]


class Reader:
    """Reads the logs of captures; a mapping from names to :class:`Log`.

    A reader runs the analysis each time rows are requested: ``r["conn"]`` for a single log; iterating over the reader
    itself, and its ``to_...`` methods, for all logs in one run.
    """

    def __init__(self, sources: Sources, settings: str, errors: str) -> None:
        self._sources = sources
        self._settings = settings
        self._errors = errors
        self._logs = _gannet.log_names(settings)
        #: Exceptions for the captures that the latest run could not read completely.
        self.damage: list[Exception] = []
        #: Statistics of the latest complete run: packets, bytes, filtered, connections, wrong_checksums.
        self.statistics: dict[str, int] = {}

    @property
    def logs(self) -> list[str]:
        """Names of the logs."""
        return list(self._logs)

    def __getitem__(self, log: str) -> Log:
        if log not in self._logs:
            raise KeyError(f"{log} is not one of the logs that are read: {', '.join(self._logs)}")
        return Log(self, log)

    def __contains__(self, log: object) -> bool:
        return log in self._logs

    def keys(self) -> list[str]:
        """Names of the logs."""
        return list(self._logs)

    def __repr__(self) -> str:
        shown = ", ".join(self._logs) if len(self._logs) < 10 else f"{len(self._logs)} logs"
        return f"<gannet.Reader: {shown}>"

    def __iter__(self) -> Iterator[Batch]:
        """Runs the analysis; returns an iterator over batches of all logs. ``batch.log`` is the name of the log.

        At most two batches are queued, each of up to ``batch_rows`` rows and about four megabytes; then the analysis
        waits for the caller.

        >>> import gannet
        >>> rows = {}
        >>> for batch in gannet.read(SAMPLE):
        ...     rows[batch.log] = rows.get(batch.log, 0) + len(batch)
        >>> rows["dns"]
        4
        """
        return self._batches(self._run(None))

    def _run(self, log: str | None) -> Any:
        text = self._settings
        if log is not None:
            values = json.loads(text)
            values["logs"] = [log]
            text = json.dumps(values)
        return _gannet.Run(self._sources.open(), text)

    def _batches(self, run: Any, partial: Any = None) -> Iterator[Batch]:
        try:
            while (batch := run.next()) is not None:
                yield batch
        finally:
            self._store_outcome(run)
            run.close()
        check(self.damage, self._errors, partial() if partial else None)

    def _store_outcome(self, run: Any) -> None:
        self.damage = run.damage()
        self.statistics = run.statistics()

    def _tables(self, run: Any, names: list[str]) -> dict[str, pyarrow.Table]:
        import pyarrow as pa

        batches: dict[str, list] = {}

        def tables():
            return {
                name: pa.Table.from_batches(batches[name], _schema(name, self._settings))
                for name in sorted(batches)
            }

        # Requested logs have a table even if they have no rows.
        if json.loads(self._settings)["logs"] is not None:
            batches = {name: [] for name in names}
        for batch in self._batches(run, tables):
            batches.setdefault(batch.log, []).append(pa.record_batch(batch))
        return tables()

    def to_arrow(self) -> dict[str, pyarrow.Table]:
        """Returns every log that has rows as a table, in one run."""
        return self._tables(self._run(None), self._logs)

    def to_polars(self) -> dict[str, polars.DataFrame]:
        """Returns every log that has rows as a Polars data frame, in one run."""
        import polars as pl

        try:
            tables = self.to_arrow()
        except Exception as error:
            _convert_partial(error, lambda some: {name: pl.DataFrame(t) for name, t in some.items()})
            raise
        return {name: pl.DataFrame(table) for name, table in tables.items()}

    def to_pandas(self) -> dict[str, pandas.DataFrame]:
        """Returns every log that has rows as a pandas data frame with Arrow types, in one run."""
        try:
            tables = self.to_arrow()
        except Exception as error:
            _convert_partial(error, lambda some: {name: _to_pandas(t) for name, t in some.items()})
            raise
        return {name: _to_pandas(table) for name, table in tables.items()}


class Log:
    """A log, which exports an Arrow stream.

    ``pyarrow.RecordBatchReader.from_stream(log)``, ``polars.DataFrame(log)``, ``duckdb.sql("from log")`` and
    ``pandas.DataFrame.from_arrow(log)`` read it directly.

    >>> import gannet, pyarrow as pa
    >>> dns = gannet.read(SAMPLE)["dns"]
    >>> pa.RecordBatchReader.from_stream(dns).read_all().column("query").to_pylist()
    ['www.example.com', 'www.example.com', 'printer.example.com', 'mail.example.org']
    """

    def __init__(self, reader: Reader, name: str) -> None:
        self._reader = reader
        #: Name of the log.
        self.name = name

    def __repr__(self) -> str:
        return f"<gannet.Log {self.name}>"

    def __arrow_c_schema__(self) -> object:
        """The schema through Arrow's C data interface. Nothing is read."""
        return _gannet.schema_capsule(self.name, self._reader._settings)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows through Arrow's C stream interface. The analysis starts when the first rows are requested."""
        strict = self._reader._errors == "raise"
        return self._reader._run(self.name).stream(self.name, strict)

    @property
    def schema(self) -> pyarrow.Schema:
        """The schema, as a pyarrow schema."""
        return _schema(self.name, self._reader._settings)

    def __iter__(self) -> Iterator[Batch]:
        """Runs the analysis; returns batches, which ``pyarrow.record_batch`` converts without a copy."""
        return self._reader._batches(self._reader._run(self.name))

    def to_arrow(self) -> pyarrow.Table:
        """Returns all rows as a table."""
        reader = self._reader
        try:
            return reader._tables(reader._run(self.name), [self.name]).get(self.name, self._empty())
        except Exception as error:
            _convert_partial(error, lambda some: some.get(self.name, self._empty()))
            raise

    def _empty(self) -> pyarrow.Table:
        return self.schema.empty_table()

    def to_polars(self) -> polars.DataFrame:
        """Returns all rows as a Polars data frame, without pyarrow.

        >>> import gannet
        >>> gannet.read(SAMPLE)["dns"].to_polars().shape[0]
        4
        """
        import polars as pl

        reader = self._reader
        run = reader._run(self.name)
        try:
            frame = pl.DataFrame(_RunStream(run, self))
        except Exception:
            # Raises the exception of the analysis itself instead of Polars' one.
            raised = run.take_raised()
            if raised is not None:
                raise raised from None
            raise
        finally:
            reader._store_outcome(run)
            run.close()
        check(reader.damage, reader._errors, frame)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """Returns all rows as a pandas data frame with Arrow types, so that counts with unset values stay integers."""
        try:
            return _to_pandas(self.to_arrow())
        except Exception as error:
            _convert_partial(error, _to_pandas)
            raise


class _RunStream:
    """The Arrow stream of one log of a run."""

    def __init__(self, run: Any, log: Log) -> None:
        self._run = run
        self._log = log

    def __arrow_c_schema__(self) -> object:
        return self._log.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._run.stream(self._log.name, False)


class _Schema:
    def __init__(self, log: str, settings: str) -> None:
        self._log_and_settings = (log, settings)

    def __arrow_c_schema__(self) -> object:
        return _gannet.schema_capsule(*self._log_and_settings)


def _schema(log: str, settings: str) -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema(_Schema(log, settings))


def _to_pandas(table: pyarrow.Table) -> pandas.DataFrame:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _convert_partial(error: Any, convert: Any) -> None:
    """Converts the partial result of an error to the requested type."""
    if getattr(error, "partial", None) is not None:
        error.partial = convert(error.partial)
