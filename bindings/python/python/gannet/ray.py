"""A data source for Ray.

::

    import gannet.ray, ray
    conn = ray.data.read_datasource(gannet.ray.Source("/captures/2026-11-21/", log="conn"))
    conn.groupby("service").count().show()

Workers need this package, pyarrow, and the files under the same paths, or URLs that fsspec opens.
"""

from __future__ import annotations

import inspect
from typing import Any, Iterator

import pyarrow as pa
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from gannet.tasks import Task, plan

#: Approximate size of a block in bytes.
_BLOCK_BYTES = 64 << 20


class Source(Datasource):
    """A data source with the rows of one log of captures."""

    def __init__(
        self,
        paths: Any,
        log: str = "conn",
        *,
        warm_up: int | None = 600,
        threads: int = 1,
        errors: str = "raise",
        **options: Any,
    ) -> None:
        super().__init__()
        self._paths, self._log, self._warm_up = paths, log, warm_up
        self._threads, self._errors, self._options = threads, errors, options

    def get_name(self) -> str:
        return "Gannet"

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, *args: Any, **kwargs: Any) -> list[ReadTask]:
        tasks = parallelism if parallelism and parallelism > 0 else None
        planned = plan(
            self._paths, tasks, warm_up=self._warm_up, logs=[self._log], **self._options
        )
        return [self._read_task(task) for task in planned]

    def _read_task(self, task: Task) -> ReadTask:
        text, log, threads, errors = task.json(), self._log, self._threads, self._errors
        values = {
            "num_rows": None,
            "size_bytes": task.bytes,
            "schema": None,
            "input_files": task.files,
            "exec_stats": None,
        }
        # The fields of this class differ between versions of Ray.
        known = inspect.signature(BlockMetadata).parameters
        metadata = BlockMetadata(**{k: v for k, v in values.items() if k in known})
        return ReadTask(lambda: _blocks(text, log, threads, errors), metadata)


def _blocks(text: str, log: str, threads: int, errors: str) -> Iterator[pa.Table]:
    task = Task(text)
    batches, size, empty = [], 0, True
    for batch in task.run(threads=threads, errors=errors):
        rows = pa.record_batch(batch)
        batches.append(rows)
        size += rows.nbytes
        if size >= _BLOCK_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size, empty = [], 0, False
    if batches or empty:
        yield pa.Table.from_batches(batches, task.schema(log))
