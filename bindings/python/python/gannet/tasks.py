"""Analyses that many machines share.

:func:`plan` divides captures that follow each other into tasks, and a task returns the rows of the connections that
begin in its files. The rows of all tasks together are those of one run. A task is a small picklable value, and
returns the same rows each time that it runs.

>>> import gannet, gannet.tasks
>>> plan = gannet.plan(SAMPLE, logs=["conn", "dns"])
>>> [table.num_rows for table in (task.to_arrow()["dns"] for task in plan)]
[4]
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from gannet import _gannet
from gannet._errors import check, policy
from gannet._read import _schema, settings, within
from gannet._sources import expand, is_url

if TYPE_CHECKING:
    import pyarrow

    from gannet._gannet import Batch


class Task:
    """One of several: picklable, and the same rows each time."""

    def __init__(self, text: str | dict) -> None:
        self._value = json.loads(text) if isinstance(text, str) else text

    def __repr__(self) -> str:
        own = [file["path"] for file in self._value["files"] if file["own"]]
        return f"<gannet.tasks.Task {self.index + 1} of {self._value['of']}: {', '.join(own)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self.json())

    def __reduce__(self):
        return (Task, (self.json(),))

    @property
    def index(self) -> int:
        """Its number, from 0."""
        return self._value["index"]

    @property
    def logs(self) -> list[str]:
        """The logs that it returns."""
        return list(self._value["settings"]["logs"])

    @property
    def files(self) -> list[str]:
        """The files whose connections it returns."""
        return [file["path"] for file in self._value["files"] if file["own"]]

    @property
    def bytes(self) -> int:
        """Bytes of those files."""
        return sum(file["bytes"] for file in self._value["files"] if file["own"])

    def json(self) -> str:
        """The task as JSON, which ``gannet run-task`` takes, too."""
        return json.dumps(self._value, sort_keys=True)

    def only(self, log: str) -> Task:
        """The same with one log alone."""
        value = json.loads(self.json())
        value["settings"]["logs"] = [log]
        return Task(value)

    def schema(self, log: str) -> pyarrow.Schema:
        """The schema of a log's rows."""
        return _schema(log, json.dumps(self._value["settings"]))

    def run(
        self, *, threads: int = 1, batch_rows: int | None = None, errors: str = "raise"
    ) -> Iterator[Batch]:
        """Batches of rows of all its logs as they come."""
        policy(errors)
        within("threads", threads, 1, 255)
        within("batch_rows", batch_rows, 1)
        with contextlib.ExitStack() as stack:
            value = _local(self._value, stack)
            run = _gannet.Run.task(json.dumps(value), threads, batch_rows)
            try:
                while (batch := run.next()) is not None:
                    yield batch
            finally:
                run.close()
            check(run.damage(), errors)

    def to_arrow(self, *, threads: int = 1, errors: str = "raise") -> dict[str, pyarrow.Table]:
        """All rows, as a table for each of its logs."""
        import pyarrow as pa

        batches: dict[str, list] = {log: [] for log in self.logs}
        for batch in self.run(threads=threads, errors=errors):
            batches[batch.log].append(pa.record_batch(batch))
        return {
            log: pa.Table.from_batches(some, self.schema(log)) for log, some in batches.items()
        }


class Plan(list):
    """Tasks, in the order of time."""

    #: Logs that one run writes and tasks do not, with the reason.
    left_out: dict[str, str]

    def __init__(self, tasks: Sequence[Task], left_out: dict[str, str]) -> None:
        super().__init__(tasks)
        self.left_out = left_out

    def __reduce__(self):
        return (Plan, (list(self), self.left_out))


def plan(
    paths: Any,
    tasks: int | None = None,
    *,
    warm_up: int | None = 600,
    planners: int | None = None,
    **options: Any,
) -> Plan:
    """Divides captures into tasks.

    Args:
        paths: Paths, patterns, folders or URLs. The headers of all packets are read.
        tasks: Tasks at the most; without it one for each file. Files that overlap in time are never separated.
        warm_up: Seconds of packet time that a task reads before its own files; None reads all before them. Ten
            minutes are enough for everything but tunnels and FTP sessions that are older.
        planners: Threads that read headers; by default one for each core.
        options: ``logs``, ``filter``, ``columns`` and so on, as for :func:`gannet.read`. A log that cannot be divided
            raises ValueError where it is named, and is in ``left_out`` of the plan where it is not.
    """
    for name in ("threads", "batch_rows"):
        if options.pop(name, None) is not None:
            raise TypeError(f"{name} is an option of Task.run, since plans are the same for any value of it")
    within("tasks", tasks, 1, 2**32 - 1)
    within("warm_up", warm_up, 0, 2**32 - 1)
    within("planners", planners, 1)
    sources = expand(paths)
    if not all(isinstance(source, str) for source in sources):
        raise TypeError("tasks are planned of paths and URLs, which other machines can open")
    with contextlib.ExitStack() as stack:
        local, names = [], {}
        for source in sources:
            path = _spool(source, stack) if is_url(source) else os.path.abspath(source)
            names[path] = source
            local.append(path)
        planners = planners or os.cpu_count() or 1
        text = _gannet.plan(local, settings(**options), tasks, warm_up, planners)
        value = json.loads(text)
        for task in value["tasks"]:
            for file in task["files"]:
                if is_url(names.get(file["path"])):
                    file["path"] = names[file["path"]]
    left_out = {one["log"]: one["why"] for one in value["left_out"]}
    return Plan([Task(task) for task in value["tasks"]], left_out)


def _local(task: dict, stack: contextlib.ExitStack) -> dict:
    """The task with files of this machine instead of URLs."""
    if not any(is_url(file["path"]) for file in task["files"]):
        return task
    value = json.loads(json.dumps(task))
    for file in value["files"]:
        if is_url(file["path"]):
            file["path"] = _spool(file["path"], stack)
    return value


def _spool(url: str, stack: contextlib.ExitStack) -> str:
    """A copy on this machine, for as long as the stack is open."""
    import fsspec

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gannet-"))
    path = os.path.join(folder, os.path.basename(url.rstrip("/")) or "capture")
    with fsspec.open(url, "rb") as source, open(path, "wb") as to:
        shutil.copyfileobj(source, to, 1 << 20)
    return path
