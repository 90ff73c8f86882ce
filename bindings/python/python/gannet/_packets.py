"""Packets that match a filter, packets of a connection, and metadata of captures."""

from __future__ import annotations

import datetime
import json
import os
from typing import Any, Iterator, NamedTuple, Sequence, overload

from gannet import _gannet
from gannet._errors import check, check_policy
from gannet._read import settings
from gannet._sources import Source, Sources


class Packet(NamedTuple):
    """A packet."""

    #: Capture time in nanoseconds since 1970.
    time_ns: int
    #: Length on the wire in bytes; ``data`` is shorter if the capture truncated the packet.
    wire_len: int
    #: Link type (LINKTYPE_ number).
    link_type: int
    #: Number of the packet in the stream, from 1.
    number: int
    #: Captured bytes.
    data: bytes

    @property
    def time(self) -> datetime.datetime:
        """Capture time in UTC, truncated to microseconds."""
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
    """Returns an iterator over the matching packets; with ``to``, writes them to a capture and returns their number.

    A filter that supports no packet's link type (``inbound`` on Ethernet) raises ValueError at the end; one that does
    not support some of them warns. After an interrupt, ``to`` is a valid capture of the packets up to that point.

    The suffix of ``to`` selects the format (``.pcap``, ``.pcapng``) and the compression (``.gz``, ``.zst``, ``.xz``,
    ``.lz4``).

    >>> import gannet
    >>> sum(1 for packet in gannet.filter("udp port 53", SAMPLE))
    8
    """
    sources = Sources(paths).open()
    check_policy(errors)
    if to is None:
        return _iter_packets(_gannet.PacketRun(sources, expression), errors)
    _, written, damage = _gannet.filter_to(sources, expression, os.fspath(to))
    check(damage, errors, written)
    return written


def _iter_packets(run: Any, errors: str) -> Iterator[Packet]:
    while (chunk := run.next()) is not None:
        for packet in chunk:
            yield Packet(*packet)
    check(run.damage(), errors)


def index(
    path: str | os.PathLike[str], *, seed: int = 0, ignore_checksums: bool = False
) -> tuple[int, int]:
    """Writes an index of the packets of each connection to ``PATH.gannet``; returns the numbers of packets and of
    uids. ``seed`` and ``ignore_checksums`` must be those of the logs that the uids come from."""
    text = settings(seed=seed, ignore_checksums=ignore_checksums)
    return _gannet.index(os.fspath(path), text)


def packets(
    uid: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    ignore_checksums: bool = False,
) -> list[Packet]:
    """Returns the packets of one or more connections, given their uids.

    Only these packets are read, using the index of the capture (``PATH.gannet``), which is created if it does not
    exist.

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
    """Returns the metadata of a capture: format, packets, times, interfaces. Only packet headers are read.

    >>> import gannet
    >>> gannet.info(SAMPLE)["format"]
    'pcap'
    """
    found = [json.loads(text) for text in _gannet.info(Sources(path).open())]
    if len(found) != 1:
        raise ValueError("info takes one capture")
    return found[0]
