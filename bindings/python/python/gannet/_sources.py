"""Sources of packets: paths, patterns, URLs, bytes and file objects."""

from __future__ import annotations

import io
import os
from typing import Any, Union

#: Type of captures as arguments.
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Any]

_GLOB_CHARACTERS = frozenset("*?[")


def is_url(path: Any) -> bool:
    """Whether ``path`` is a URL, which fsspec opens."""
    return isinstance(path, str) and "://" in path


def expand(sources: Any) -> list:
    """Returns all sources, with glob patterns expanded."""
    if isinstance(sources, (list, tuple)):
        found = [one for source in sources for one in expand(source)]
        if not found:
            raise ValueError("no captures were given")
        return found
    if isinstance(sources, (bytes, bytearray, memoryview)):
        return [bytes(sources)]
    if hasattr(sources, "read"):
        if isinstance(sources, io.TextIOBase):
            raise TypeError(f"{_name(sources)} is open in text mode; open captures with mode 'rb'")
        return [sources]
    if not isinstance(sources, (str, os.PathLike)):
        what = type(sources).__name__
        raise TypeError(f"captures must be paths, bytes, binary files, or a list of these, not a {what}")
    if is_url(sources):
        return _expand_url(sources)
    path = os.path.expanduser(os.fspath(sources))
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if _GLOB_CHARACTERS.intersection(path) and not os.path.exists(path):
        import glob

        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise FileNotFoundError(f"no file matches {path}")
        return found
    return [path]


def _expand_url(url: str) -> list:
    if not _GLOB_CHARACTERS.intersection(url):
        return [url]
    import fsspec

    fs, path = fsspec.core.url_to_fs(url)
    found = sorted(fs.unstrip_protocol(name) for name in fs.glob(path))
    if not found:
        raise FileNotFoundError(f"no file matches {url}")
    return found


class Sources:
    """Sources that can be read repeatedly if they are seekable."""

    def __init__(self, sources: Any) -> None:
        self._all = expand(sources)
        self._starts = [_position(source) for source in self._all]
        self._opened = 0

    def open(self) -> list:
        """Returns pairs of a source and its name, for one run."""
        again = self._opened > 0
        self._opened += 1
        return [self._open_one(source, start, again) for source, start in zip(self._all, self._starts)]

    @staticmethod
    def _open_one(source: Any, start: int | None, again: bool):
        if isinstance(source, bytes):
            return (source, "bytes")
        if isinstance(source, str):
            if is_url(source):
                import fsspec

                return (fsspec.open(source, "rb").open(), source)
            if source == "-" and again:
                raise ValueError("standard input was already read; it can be read only once")
            return (source, None)
        if again and start is None:
            raise ValueError(f"{_name(source)} was already read and cannot be rewound")
        if again:
            source.seek(start)
        return (source, _name(source))

    def __repr__(self) -> str:
        return ", ".join(s if isinstance(s, str) else _name(s) for s in self._all)


def _position(source: Any) -> int | None:
    if isinstance(source, (bytes, str)):
        return 0
    try:
        return source.tell() if source.seekable() else None
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


def _name(source: Any) -> str:
    if isinstance(source, bytes):
        return "bytes"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else type(source).__name__
