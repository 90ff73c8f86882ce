"""Analyses that are distributed over machines.

:func:`plan` divides consecutive captures into tasks. A task returns the rows of the connections that begin in its
files; all tasks together return the rows of a single run. A task is a small picklable value, and returns the same
rows each time it runs.

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
from gannet._errors import check, check_policy
from gannet._read import _schema, check_range, settings
from gannet._sources import expand, is_url

if TYPE_CHECKING:
    import pyarrow

    from gannet._gannet import Batch


class Task:
    """A task of a plan: picklable, and deterministic."""

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
        """The number of the task, from 0."""
        return self._value["index"]

    @property
    def logs(self) -> list[str]:
        """The logs that the task returns."""
        return list(self._value["settings"]["logs"])

    @property
    def files(self) -> list[str]:
        """The files whose connections the task returns."""
        return [file["path"] for file in self._value["files"] if file["own"]]

    @property
    def bytes(self) -> int:
        """The size of those files in bytes."""
        return sum(file["bytes"] for file in self._value["files"] if file["own"])

    def json(self) -> str:
        """Returns the task as JSON, which ``gannet run-task`` also accepts."""
        return json.dumps(self._value, sort_keys=True)

    def only(self, log: str) -> Task:
        """Returns the same task with only one log."""
        value = json.loads(self.json())
        value["settings"]["logs"] = [log]
        return Task(value)

    def schema(self, log: str) -> pyarrow.Schema:
        """Returns the schema of a log."""
        return _schema(log, json.dumps(self._value["settings"]))

    def run(
        self, *, threads: int = 1, batch_rows: int | None = None, errors: str = "raise"
    ) -> Iterator[Batch]:
        """Runs the task; returns an iterator over batches of rows of all its logs."""
        check_policy(errors)
        check_range("threads", threads, 1, 255)
        check_range("batch_rows", batch_rows, 1)
        with contextlib.ExitStack() as stack:
            value = _with_local_files(self._value, stack)
            run = _gannet.Run.task(json.dumps(value), threads, batch_rows)
            try:
                while (batch := run.next()) is not None:
                    yield batch
            finally:
                run.close()
            check(run.damage(), errors)

    def to_arrow(self, *, threads: int = 1, errors: str = "raise") -> dict[str, pyarrow.Table]:
        """Runs the task; returns a table for each of its logs."""
        import pyarrow as pa

        batches: dict[str, list] = {log: [] for log in self.logs}
        for batch in self.run(threads=threads, errors=errors):
            batches[batch.log].append(pa.record_batch(batch))
        return {
            log: pa.Table.from_batches(some, self.schema(log)) for log, some in batches.items()
        }


class Plan(list):
    """Tasks, ordered by time."""

    #: Logs that a single run writes, but tasks cannot, with the reason.
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
        tasks: Maximum number of tasks; by default one for each file. Files that overlap in time are not separated.
        warm_up: Seconds of packet time that a task reads before its own files; None reads everything before them.
            Ten minutes suffice except for tunnels and FTP sessions that began earlier.
        planners: Number of threads that read headers; by default one for each core.
        options: ``logs``, ``filter``, ``columns`` and so on, as for :func:`gannet.read`. If a log cannot be divided,
            it raises ValueError if it is named in ``logs``, and otherwise is listed in the plan's ``left_out``.
    """
    for name in ("threads", "batch_rows"):
        if options.pop(name, None) is not None:
            raise TypeError(f"{name} is an option of Task.run, since plans are the same for any value of it")
    check_range("tasks", tasks, 1, 2**32 - 1)
    check_range("warm_up", warm_up, 0, 2**32 - 1)
    check_range("planners", planners, 1)
    sources = expand(paths)
    if not all(isinstance(source, str) for source in sources):
        raise TypeError("tasks are planned of paths and URLs, which other machines can open")
    with contextlib.ExitStack() as stack:
        local, names = [], {}
        for source in sources:
            path = _download(source, stack) if is_url(source) else os.path.abspath(source)
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


def _with_local_files(task: dict, stack: contextlib.ExitStack) -> dict:
    """Returns the task with URLs replaced by local copies."""
    if not any(is_url(file["path"]) for file in task["files"]):
        return task
    value = json.loads(json.dumps(task))
    for file in value["files"]:
        if is_url(file["path"]):
            file["path"] = _download(file["path"], stack)
    return value


def _download(url: str, stack: contextlib.ExitStack) -> str:
    """Downloads a URL to a local file, which is removed when the stack is closed."""
    import fsspec

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gannet-"))
    path = os.path.join(folder, os.path.basename(url.rstrip("/")) or "capture")
    with fsspec.open(url, "rb") as source, open(path, "wb") as to:
        shutil.copyfileobj(source, to, 1 << 20)
    return path
