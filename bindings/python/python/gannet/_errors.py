"""Exceptions."""

from __future__ import annotations

from typing import Any


class CaptureError(Exception):
    """A capture that cannot be read, or not to its end.

    The rows of the packets before the damage are in :attr:`partial`, where a whole table was asked for.
    """

    #: The file, as it was named.
    file: str
    #: Number of the packet that cannot be read, from 1; None where it is no capture at all.
    packet: int | None
    #: Where its record begins, in bytes of the capture after decompression.
    offset: int | None
    #: What was read before the damage.
    partial: Any

    def __init__(
        self, message: str, file: str, packet: int | None = None, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.packet = packet
        self.offset = offset
        self.partial = None

    def __reduce__(self):
        # What was read does not go to other processes.
        return (CaptureError, (self.args[0], self.file, self.packet, self.offset))


def check(damage: list, errors: str, partial: Any = None) -> None:
    """Raises the first error of a run, with what was read."""
    if damage and errors == "raise":
        error = damage[0]
        if isinstance(error, CaptureError):
            error.partial = partial
        raise error


def policy(errors: str) -> str:
    """Checks what is to be done about damage."""
    if errors not in ("raise", "keep"):
        raise ValueError(f"errors is 'raise' or 'keep', not {errors!r}")
    return errors
