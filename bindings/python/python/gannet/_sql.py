"""SQL queries over the logs of captures, executed by DuckDB."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Sequence

from gannet._errors import check
from gannet._read import Reader, _convert_partial, _to_pandas, _RunStream, read
from gannet._sources import Source

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def sql(query: str, paths: Source | Sequence[Source], **options: Any) -> Answer:
    """Prepares a query, in which each log is a table: ``conn``, ``dns``, ``http``.

    DuckDB executes it (``pip install duckdb pyarrow``), with all its functions. Captures are analysed while the query
    runs, once for each log that it names. A column's name with a dot is quoted: ``"id.orig_h"``.

    Args:
        query: A single query: a ``select``, which may begin with ``with`` or ``from``. Other statements, and multiple
        statements, raise ValueError.
        paths: Captures, as for :func:`read`.
        options: Options of :func:`read`, except ``logs``.

    >>> import gannet
    >>> answer = gannet.sql('select "id.resp_p" port, count(*) n from conn group by all order by n desc limit 1', SAMPLE)
    >>> answer.to_arrow().to_pylist()
    [{'port': 53, 'n': 4}]
    """
    if "logs" in options:
        raise TypeError("gannet.sql does not accept 'logs': the query names them")
    return Answer(query, read(paths, logs=["all"], **options))


class Answer:
    """The result of a query. The query runs each time rows are requested."""

    def __init__(self, query: str, reader: Reader) -> None:
        self._query, self._reader = query, reader

    def __repr__(self) -> str:
        return f"<gannet.Answer of {self._query!r}>"

    def _run(self) -> tuple[pyarrow.Table, list]:
        """Runs the query; returns its rows, and the runs of the analysis."""
        try:
            import duckdb
        except ImportError as error:
            raise ImportError("gannet.sql needs DuckDB: pip install duckdb pyarrow") from error
        _check_read_only(duckdb, self._query)
        tables = [
            _Table(self._reader, name)
            for name in self._reader.logs
            if re.search(rf"(?<!\w){name}(?!\w)", self._query, re.IGNORECASE)
        ]
        with duckdb.connect() as connection:
            connection.execute("set TimeZone = 'UTC'")
            for table in tables:
                connection.register(table.name, table)
            try:
                answer = connection.sql(self._query)
                rows = answer.to_arrow_table()
            except Exception:
                # Raises the exception of an analysis instead of DuckDB's one.
                for raised in (run.take_raised() for table in tables for run in table.runs):
                    if raised is not None:
                        raise raised from None
                raise
        return rows, [run for table in tables for run in table.runs]

    def to_arrow(self) -> pyarrow.Table:
        """Returns the rows as a table."""
        rows, runs = self._run()
        reader = self._reader
        # Several runs over the same captures report the same damage.
        reader.damage = runs[0].damage() if runs else []
        check(reader.damage, reader._errors, rows)
        return rows

    def to_polars(self) -> polars.DataFrame:
        """Returns the rows as a Polars data frame."""
        import polars as pl

        try:
            return pl.DataFrame(self.to_arrow())
        except Exception as error:
            _convert_partial(error, pl.DataFrame)
            raise

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas data frame with Arrow types."""
        try:
            return _to_pandas(self.to_arrow())
        except Exception as error:
            _convert_partial(error, _to_pandas)
            raise

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows through Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _check_read_only(duckdb: Any, query: str) -> None:
    """Raises an error unless ``query`` is a single SELECT. Syntax errors are DuckDB's own."""
    statements = duckdb.extract_statements(query)
    if len(statements) != 1:
        raise ValueError(f"expected one statement, not {len(statements)}")
    if statements[0].type != duckdb.StatementType.SELECT:
        name = statements[0].type.name
        raise ValueError(f"only SELECT is supported, not {name}")


class _Table:
    """A log as a table of DuckDB. Each scan is a run of the analysis."""

    def __init__(self, reader: Reader, name: str) -> None:
        self._log = reader[name]
        self.name = name
        #: The runs started so far.
        self.runs: list = []

    def __arrow_c_schema__(self) -> object:
        return self._log.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        run = self._log._reader._run(self.name)
        self.runs.append(run)
        return _RunStream(run, self._log).__arrow_c_stream__(requested_schema)
