"""A data source for Spark 4.

::

    from gannet.spark import GannetDataSource
    spark.dataSource.register(GannetDataSource)
    conn = spark.read.format("gannet").option("log", "conn").load("/captures/2026-11-21/")
    conn.groupBy("service").count().show()

Options: ``log`` (one log, conn by default), ``filter`` (a packet filter), ``columns`` (optional columns, separated by
commas), ``tasks`` (the number of partitions, by default one per file), ``warm_up``, ``seed``, ``ignore_checksums``,
``errors`` (``raise`` or ``keep``). The path may be a folder, a pattern, a URL that fsspec opens, or several of these,
separated by commas.

If ``spark.sql.python.filterPushdown.enabled`` is set, rows are filtered before they are transferred to Spark.
Executors need this package, pyarrow, and the files under the same paths.
"""

from __future__ import annotations

from typing import Any, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql.pandas.types import from_arrow_schema

from gannet._read import _schema, settings
from gannet.tasks import Task, plan


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Converts a schema to types that Spark supports: ports become int32."""
    fields = []
    for field in schema:
        ty = field.type
        if ty == pa.uint16():
            ty = pa.int32()
        elif pa.types.is_list(ty):
            element = pa.int32() if ty.value_type == pa.uint16() else ty.value_type
            ty = pa.list_(pa.field("element", element))
        fields.append(pa.field(field.name, ty, True))
    return pa.schema(fields)


class GannetDataSource(ds.DataSource):
    """A data source with a log of captures."""

    @classmethod
    def name(cls) -> str:
        return "gannet"

    def _log(self) -> str:
        logs = [log.strip() for log in self.options.get("log", self.options.get("logs", "conn")).split(",")]
        if len(logs) != 1:
            raise ValueError("a data frame holds the rows of one log; name it with .option('log', 'conn')")
        return logs[0]

    def _settings(self) -> dict[str, Any]:
        columns = [c.strip() for c in self.options.get("columns", "").split(",") if c.strip()]
        return {
            "logs": [self._log()],
            "filter": self.options.get("filter"),
            "columns": columns,
            "seed": int(self.options.get("seed", "0")),
            "ignore_checksums": self.options.get("ignore_checksums", "false").lower() == "true",
        }

    def _arrow(self) -> pa.Schema:
        return spark_schema(_schema(self._log(), settings(**self._settings())))

    def schema(self):
        return from_arrow_schema(self._arrow())

    def reader(self, schema) -> GannetReader:
        path = self.options.get("path")
        if not path:
            raise ValueError("load() needs the path of captures")
        paths = [p.strip() for p in path.split(",")]
        tasks = self.options.get("tasks")
        warm_up = self.options.get("warm_up", "600")
        return GannetReader(
            paths,
            int(tasks) if tasks else None,
            None if warm_up == "all" else int(warm_up),
            self._log(),
            self._settings(),
            self._arrow(),
            self.options.get("errors", "raise"),
        )


class Partition(ds.InputPartition):
    """A partition: one task."""

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.task = task


class GannetReader(ds.DataSourceReader):
    """Reads the tasks of a plan."""

    def __init__(
        self,
        paths: list[str],
        tasks: int | None,
        warm_up: int | None,
        log: str,
        options: dict[str, Any],
        schema: pa.Schema,
        errors: str,
    ) -> None:
        self._paths, self._tasks, self._warm_up = paths, tasks, warm_up
        self._log, self._options, self._schema, self._errors = log, options, schema, errors
        self._filters: list[tuple] = []

    def pushFilters(self, filters: list) -> Iterator:
        """Accepts the filters that can be applied to rows, and returns the others."""
        for filter in filters:
            pushed = _pushable_filter(filter, self._schema)
            if pushed is None:
                yield filter
            else:
                self._filters.append(pushed)

    def partitions(self) -> list[Partition]:
        planned = plan(self._paths, self._tasks, warm_up=self._warm_up, **self._options)
        return [Partition(task.json()) for task in planned]

    def read(self, partition: Partition) -> Iterator[pa.RecordBatch]:
        for batch in Task(partition.task).run(errors=self._errors):
            rows = pa.Table.from_batches([pa.record_batch(batch)]).cast(self._schema)
            if self._filters:
                mask = None
                for filter in self._filters:
                    one = pc.fill_null(_mask(rows, filter), False)
                    mask = one if mask is None else pc.and_(mask, one)
                rows = rows.filter(mask)
            yield from rows.to_batches()


_COMPARISONS = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
    "StringStartsWith": "starts_with",
    "StringEndsWith": "ends_with",
    "StringContains": "match_substring",
}


def _pushable_filter(filter: Any, schema: pa.Schema) -> tuple | None:
    """Converts a filter to a tuple that ``_mask`` evaluates; None if it cannot be applied to rows."""
    kind = type(filter).__name__
    if kind == "Not":
        inner = _pushable_filter(filter.child, schema)
        return None if inner is None else ("not", inner)
    column = ".".join(getattr(filter, "attribute", ()))
    if column not in schema.names or pa.types.is_nested(schema.field(column).type):
        return None
    if kind in ("IsNull", "IsNotNull"):
        return (kind, column)
    if kind == "In":
        return ("In", column, list(filter.value))
    if kind in _COMPARISONS:
        return (_COMPARISONS[kind], column, filter.value)
    return None


def _mask(rows: pa.Table, filter: tuple) -> Any:
    if filter[0] == "not":
        return pc.invert(_mask(rows, filter[1]))
    column = rows.column(filter[1])
    if filter[0] == "IsNull":
        return pc.is_null(column)
    if filter[0] == "IsNotNull":
        return pc.is_valid(column)
    if filter[0] == "In":
        # For an unset value the result is null, as in SQL.
        known = pc.is_in(column, value_set=pa.array(filter[2], column.type))
        return pc.if_else(pc.is_valid(column), known, pa.scalar(None, pa.bool_()))
    if filter[0] in ("starts_with", "ends_with", "match_substring"):
        return getattr(pc, filter[0])(column, pattern=filter[2])
    return getattr(pc, filter[0])(column, pa.scalar(filter[2], column.type))
