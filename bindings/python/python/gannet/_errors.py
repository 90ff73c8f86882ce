"""Exceptions."""

from __future__ import annotations

from typing import Any


class CaptureError(Exception):
    """A capture cannot be read, or not completely.

    If a whole table was requested, :attr:`partial` has the rows of the packets before the damage.
    """

    #: The name of the file, as given by the caller.
    file: str
    #: Number of the packet that cannot be read, from 1; None if the file is not a capture.
    packet: int | None
    #: Offset of the packet's record in the decompressed capture, in bytes.
    offset: int | None
    #: The result up to the damage.
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
        # The partial result is not pickled.
        return (CaptureError, (self.args[0], self.file, self.packet, self.offset))


def check(damage: list, errors: str, partial: Any = None) -> None:
    """Raises the first error of a run, with the partial result."""
    if damage and errors == "raise":
        error = damage[0]
        if isinstance(error, CaptureError):
            error.partial = partial
        raise error


def check_policy(errors: str) -> str:
    """Validates the argument ``errors``."""
    if errors not in ("raise", "keep"):
        raise ValueError(f"errors must be 'raise' or 'keep', not {errors!r}")
    return errors
