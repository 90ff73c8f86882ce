"""Packets: by a filter, of one connection, and what a capture holds."""

from __future__ import annotations

import datetime
import json
import os
from typing import Any, Iterator, NamedTuple, Sequence, overload

from gannet import _gannet
from gannet._errors import check, policy
from gannet._read import settings
from gannet._sources import Source, Sources


class Packet(NamedTuple):
    """A packet."""

    #: When it was captured, in nanoseconds since 1970.
    time_ns: int
    #: Bytes that it had on the wire: ``data`` has fewer where the capture kept less.
    wire_len: int
    #: Number of the link type, as in capture files.
    link_type: int
    #: Its number in the stream, from 1.
    number: int
    #: What was captured.
    data: bytes

    @property
    def time(self) -> datetime.datetime:
        """When it was captured, in UTC, to the microsecond."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return epoch + datetime.timedelta(microseconds=self.time_ns // 1000)


@overload
def filter(
    expression: str,
    paths: Source | Sequence[Source],
    to: None = None,
    *,
    errors: str = "raise",
) -> Iterator[Packet]: ...


@overload
def filter(
    expression: str,
    paths: Source | Sequence[Source],
    to: str | os.PathLike[str],
    *,
    errors: str = "raise",
) -> int: ...


def filter(
    expression: str,
    paths: Source | Sequence[Source],
    to: str | os.PathLike[str] | None = None,
    *,
    errors: str = "raise",
) -> Iterator[Packet] | int:
    """The packets that match, one by one; with ``to``, writes them to a capture and returns their number.

    A filter that applies to no packet's link type (``inbound`` on Ethernet) raises ValueError at the end; one that does not apply
    to some warns. An interrupt leaves ``to`` complete up to that point.

    The suffix of ``to`` says format and compression: ``.pcap``, ``.pcapng``, and ``.gz``, ``.zst``, ``.xz``, ``.lz4``.

    >>> import gannet
    >>> sum(1 for packet in gannet.filter("udp port 53", SAMPLE))
    8
    """
    sources = Sources(paths).open()
    policy(errors)
    if to is None:
        return _matching(_gannet.PacketRun(sources, expression), errors)
    _, written, damage = _gannet.filter_to(sources, expression, os.fspath(to))
    check(damage, errors, written)
    return written


def _matching(run: Any, errors: str) -> Iterator[Packet]:
    while (some := run.next()) is not None:
        for packet in some:
            yield Packet(*packet)
    check(run.damage(), errors)


def index(
    path: str | os.PathLike[str], *, seed: int = 0, ignore_checksums: bool = False
) -> tuple[int, int]:
    """Notes which packets of a capture belong to which connection, in ``PATH.gannet``; returns the numbers of
    packets and of uids. ``seed`` and ``ignore_checksums`` are those of the logs whose uids are looked for."""
    text = settings(seed=seed, ignore_checksums=ignore_checksums)
    return _gannet.index(os.fspath(path), text)


def packets(
    uid: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    ignore_checksums: bool = False,
) -> list[Packet]:
    """The packets of a connection, or of several, by their uids.

    Only those are read: by the index of the capture (``PATH.gannet``), which is made where there is none.

    >>> import gannet, shutil
    >>> capture = shutil.copy(SAMPLE, TMP)
    >>> conn = gannet.read(capture)["conn"].to_polars()
    >>> first = conn.row(0, named=True)
    >>> len(gannet.packets(first["uid"], capture)) == first["orig_pkts"] + first["resp_pkts"]
    True
    """
    uids = [uid] if isinstance(uid, str) else list(uid)
    path = os.fspath(path)
    if not os.path.exists(path + ".gannet"):
        index(path, seed=seed, ignore_checksums=ignore_checksums)
    return [Packet(*packet) for packet in _gannet.packets_of(path, uids)]


def info(path: Source) -> dict[str, Any]:
    """What a capture holds: format, packets, times, interfaces; from the headers of its packets alone.

    >>> import gannet
    >>> gannet.info(SAMPLE)["format"]
    'pcap'
    """
    found = [json.loads(text) for text in _gannet.info(Sources(path).open())]
    if len(found) != 1:
        raise ValueError("info takes one capture")
    return found[0]
