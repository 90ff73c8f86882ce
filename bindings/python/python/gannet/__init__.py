"""Packets in, data frames out.

:func:`read` analyses captures and returns Zeek's logs (conn, dns, http, ssl, files, ...) as Arrow data, which
pyarrow, Polars, DuckDB and pandas read without a copy:

>>> import gannet
>>> r = gannet.read(SAMPLE)
>>> r["dns"].to_arrow().num_rows
4
>>> sorted(r.to_arrow())[:3]
['conn', 'dns', 'files']

:func:`events` returns the events of a capture as typed objects, :func:`filter` its packets, :func:`packets` those of
one connection, and :func:`info` its metadata. :func:`sql` runs SQL queries over its logs, and :mod:`gannet.tasks`
divides captures among machines.
"""

from typing import TYPE_CHECKING

from gannet._errors import CaptureError
from gannet._gannet import Batch
from gannet._gannet import version as _version
from gannet._read import Log, Reader, logs, read

__version__ = _version()

__all__ = [
    "Answer",
    "Batch",
    "CaptureError",
    "Event",
    "Log",
    "Packet",
    "Reader",
    "event_names",
    "events",
    "filter",
    "index",
    "info",
    "logs",
    "packets",
    "plan",
    "read",
    "sql",
]

if TYPE_CHECKING:
    from gannet._events import Event, event_names, events
    from gannet._packets import Packet, filter, index, info, packets
    from gannet._sql import Answer, sql
    from gannet.tasks import plan

_LAZY = {
    "Answer": "gannet._sql",
    "sql": "gannet._sql",
    "Event": "gannet._events",
    "event_names": "gannet._events",
    "events": "gannet._events",
    "Packet": "gannet._packets",
    "filter": "gannet._packets",
    "index": "gannet._packets",
    "info": "gannet._packets",
    "packets": "gannet._packets",
    "plan": "gannet.tasks",
}


def __getattr__(name):
    # Modules are loaded on first use, so that the import takes milliseconds.
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'gannet' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
