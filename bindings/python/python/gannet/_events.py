"""Events of captures as typed objects."""

from __future__ import annotations

import datetime
import fnmatch
import json
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from gannet import _gannet
from gannet._errors import check, check_policy
from gannet._read import settings
from gannet._sources import Source, Sources

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Port(NamedTuple):
    """A port with its transport."""

    port: int
    proto: str


class Record(dict):
    """A record, whose fields are also attributes. Unset fields are None."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            if name.startswith("__"):
                raise AttributeError(name) from None
            return None


class Event:
    """An event, whose arguments are attributes with Zeek's names.

    Strings are str, times are datetime, intervals are timedelta, ports are :class:`Port`, sets of hashable elements are
    frozenset, records are :class:`Record`. Unset arguments are None.
    """

    __slots__ = ("args", "name", "ts")

    def __init__(self, name: str, ts: datetime.datetime, args: Record) -> None:
        #: Name of the event.
        self.name = name
        #: Network time.
        self.ts = ts
        #: The arguments.
        self.args = args

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.args, name)

    def __repr__(self) -> str:
        args = ", ".join(f"{name}={value!r}" for name, value in self.args.items() if name != "c")
        return f"{self.name}({args})"


def _time(seconds: float) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=round(seconds * 1e6))


def _interval(seconds: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


def _port(value: Any) -> Port:
    return Port(value["port"], value["proto"])


def _conn_id(value: Any) -> Any:
    value["orig_p"] = _port(value["orig_p"])
    value["resp_p"] = _port(value["resp_p"])
    return value


def _connection(value: Any) -> Any:
    if value is not None:
        value["id"] = _conn_id(value["id"])
        value["start_time"] = _time(value["start_time"])
        value["duration"] = _interval(value["duration"])
    return value


def _file(value: Any) -> Any:
    if value is not None:
        value["last_active"] = _time(value["last_active"])
        value["timeout_interval"] = _interval(value["timeout_interval"])
    return value


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "time": _time,
    "interval": _interval,
    "port": _port,
    "conn_id": _conn_id,
    "connection": _connection,
    "fa_file": _file,
}


def _converter(ty: str) -> Callable[[Any], Any] | None:
    """Returns the conversion from JSON to Zeek's type; None if the JSON value needs none."""
    if ty.startswith("set["):
        return frozenset if ty[4:-1] in ("string", "addr", "subnet", "count", "int") else None
    if ty.startswith("vector of "):
        convert = _converter(ty[len("vector of ") :])
        return (lambda values: [convert(v) for v in values]) if convert else None
    return _SCALARS.get(ty)


class EventInfo(NamedTuple):
    """An event that gannet can raise."""

    name: str
    #: Description of the event.
    doc: str
    #: Whether it is raised only if ``only`` names it.
    opt_in: bool
    #: Parameters: name, Zeek's type, whether it may be unset, and description.
    params: list[tuple[str, str, bool, str]]


def event_names() -> list[EventInfo]:
    """Returns all events with their parameters.

    >>> import gannet
    >>> any(event.name == "dns_request" for event in gannet.event_names())
    True
    """
    return [EventInfo(*event) for event in _gannet.event_declarations()]


def events(
    paths: Source | Sequence[Source],
    only: str | Sequence[str] | None = None,
    *,
    filter: str | None = None,
    seed: int = 0,
    ignore_checksums: bool = True,
    errors: str = "raise",
) -> Iterator[Event]:
    """Returns an iterator over the events of captures, in packet order.

    ``only`` contains names of events, with the wildcards ``*`` and ``?``; by default all events that Zeek's default
    scripts handle are returned. Checksums are verified only if ``ignore_checksums`` is false, like ``--checksums`` of
    ``gannet events``.

    >>> import gannet
    >>> [event.query for event in gannet.events(SAMPLE, only="dns_request")]
    ['www.example.com', 'www.example.com', 'printer.example.com', 'mail.example.org']
    >>> event = next(gannet.events(SAMPLE, only="http_request"))
    >>> event.method, event.c.id.resp_p.port
    ('GET', 80)
    """
    declared = event_names()
    if only is None:
        names = [event.name for event in declared if not event.opt_in]
    else:
        globs = [only] if isinstance(only, str) else list(only)
        names = []
        for glob in globs:
            if not isinstance(glob, str):
                raise TypeError(f"only must contain names of events, not {glob!r}")
            matching = [e.name for e in declared if fnmatch.fnmatchcase(e.name, glob)]
            if not matching:
                raise ValueError(f"no event is named {glob!r}")
            names.extend(matching)
    converters = {
        event.name: [(p[0], c) for p in event.params if (c := _converter(p[1])) is not None]
        for event in declared
        if event.name in set(names)
    }
    text = settings(filter=filter, seed=seed, ignore_checksums=ignore_checksums)
    run = _gannet.EventRun(Sources(paths).open(), names, text)
    return _iter_events(run, converters, check_policy(errors))


def _iter_events(run: Any, converters: dict, errors: str) -> Iterator[Event]:
    decode = json.JSONDecoder(object_hook=Record).decode
    try:
        while (lines := run.next()) is not None:
            for line in lines.decode("utf-8", "replace").splitlines():
                value = decode(line)
                args = value["args"]
                for name, convert in converters[value["event"]]:
                    if name in args and args[name] is not None:
                        args[name] = convert(args[name])
                yield Event(value["event"], _time(value["ts"]), args)
    finally:
        run.close()
    check(run.damage(), errors)
