"""The exceptions of the package.

Nothing of the caller's is changed by a call that raises an exception, except by one that raises HalfModified.
"""

from __future__ import annotations

import re
from typing import Dict, Optional, Type

import numpy as np

__all__ = ["Error", "NotPositiveDefinite", "BadArgument", "NotFinite", "BadDiagonal", "Overflow", "BackendUnavailable",
           "OutOfMemory", "CudaFailure", "InternalError", "NotBuilt", "HalfModified", "LibraryNotFound"]


class Error(Exception):
    """An error of the library. All numbers count from 0; None means that a field does not apply.

    code: the number that the C interface has for the error.
    pivot: the first row and column at which the matrix is not positive definite: its leading minor of order pivot + 1
        is not positive.
    row, col: the place of the number that is wrong.
    member: the matrix among the leading dimensions, or the modification, that failed.
    """

    code: int = 0

    def __init__(self, message: str, pivot: Optional[int] = None, row: Optional[int] = None, col: Optional[int] = None,
                 member: Optional[int] = None):
        super().__init__(message)
        self.pivot = pivot
        self.row = row
        self.col = col
        self.member = member


class NotPositiveDefinite(Error, np.linalg.LinAlgError):
    """The modified matrix is not positive definite. `pivot` tells where."""

    code = 1


class BadArgument(Error, ValueError):
    """An argument has a wrong value or shape. (One of a wrong type raises TypeError.)"""

    code = 2


class NotFinite(Error, ValueError):
    """A number is NaN or infinite. `row` and `col` tell where."""

    code = 3


class BadDiagonal(Error, np.linalg.LinAlgError):
    """An entry of the factor's diagonal is zero or too small. `row` tells which."""

    code = 4


class Overflow(Error, OverflowError):
    """A number is too large for the type of the factor, or of the result."""

    code = 5


class BackendUnavailable(Error, RuntimeError):
    """A GPU was asked for, and none can be used."""

    code = 6


class OutOfMemory(Error, MemoryError):
    """There is not enough memory, of the host or of the GPU."""

    code = 7


class CudaFailure(Error, RuntimeError):
    """CUDA has reported an error."""

    code = 8


class InternalError(Error, RuntimeError):
    """The library is at fault."""

    code = 9


class NotBuilt(BackendUnavailable):
    """A GPU was asked for, and the library was built without code for GPUs."""

    code = 10


class HalfModified(Error, RuntimeError):
    """A call failed while it was changing the factor, whose numbers are lost.

    Can happen to factors on a GPU, and to a Batch if memory runs out.
    """

    code = 11


class LibraryNotFound(Error, ImportError):
    """libgpucholmod was not found, or is of another version. `import gpucholmod` works without it; calls raise this."""


_CLASSES: Dict[int, Type[Error]] = {
    kind.code: kind
    for kind in (NotPositiveDefinite, BadArgument, NotFinite, BadDiagonal, Overflow, BackendUnavailable, OutOfMemory,
                 CudaFailure, InternalError, NotBuilt, HalfModified)
}

# What the C interface calls arguments and members of its structs, where Python has another name.
_NAMES = {"R": "L", "V": "x", "B": "b", "Y": "y"}


def _from_zero(number: int) -> Optional[int]:
    return number - 1 if number > 0 else None


def _name(argument: str) -> str:
    """Returns the name that Python has for an argument of the C interface: "y" for "sides->Y"."""
    last = argument.rpartition("->")[2]
    return _NAMES.get(last, last)


def _worded(kind: Type[Error], message: str, matrix: str) -> str:
    """Returns the message of the library with the names of Python's arguments, and numbers that count from 0."""
    if kind is NotPositiveDefinite:
        return f"{matrix} is not positive definite"
    message = re.sub(r"'([\w>-]+)'", lambda found: _name(found.group(1)), message)
    return re.sub(r"(diagonal entry|entry|member) (\d+)",
                  lambda found: f"{found.group(1)} {int(found.group(2)) - 1}", message)


def error_of(status, turned: bool = False, matrix: str = "the modified matrix") -> Error:
    """Returns the exception for a gpucholmod_status.

    turned: whether the library was given the transpose of L or A, so that its rows are columns of that.
    matrix: what may not be positive definite.
    """
    kind = _CLASSES.get(status.code, InternalError)
    message = status.message.decode("utf-8", "replace")
    pivot, row, col, member = (_from_zero(getattr(status, field)) for field in ("pivot", "row", "col", "member"))
    argument = status.argument.decode() or "R"  # the factor, where none is named
    if turned and argument in ("R", "A") and row is not None and col is not None:
        row, col = col, row
    text = _worded(kind, message, matrix)
    if kind is NotPositiveDefinite and pivot is not None:
        text += f": its leading minor of order {pivot + 1} is not positive"
    if kind is NotFinite and row is not None and col is not None:
        text = f"{_name(argument)}[{row}, {col}] is not finite"
    return kind(text, pivot, row, col, member)
