"""What objects of the library with memory of their own share."""

from __future__ import annotations

from ctypes import byref, c_int, c_void_p
from operator import index as as_integer
from typing import Any, Iterable, Optional, Union

import numpy as np

from ._arrays import array, real
from ._gpu import GpuArray, real_on_gpu
from ._libraries import is_on_gpu
from ._library import ANY_GPU, HOST, UPPER, Status, integer, lib, options
from .errors import BadArgument, error_of

_BOOLEANS = (bool, np.bool_)
_SYSTEMS = {"A": 0, "forward": 1, "back": 2}


def device_number(device: Union[str, int]) -> int:
    """Returns options->device. Raises BadArgument, and TypeError."""
    if isinstance(device, str):
        numbers = {"host": HOST, "gpu": ANY_GPU}
        if device not in numbers:
            raise BadArgument(f"device must be 'host', 'gpu' or the number of a GPU, not {device!r}")
        return numbers[device]
    return integer("device", device, 0, c_int)


def system_number(system: str) -> int:
    """Returns the gpucholmod_system of a name. Raises BadArgument."""
    if system not in _SYSTEMS:
        raise BadArgument(f"system must be 'A', 'forward' or 'back', not {system!r}")
    return _SYSTEMS[system]


class Handle:
    """Owns an object of the library. Subclasses say in `_kind` how its functions begin."""

    _kind: str

    def _prepare(self, dtype: np.dtype, number: int, threads: Optional[int]) -> None:
        self._handle: Optional[int] = None
        self._destroy = self._function("destroy")
        self._dtype = dtype
        self._number = number
        self._threads = threads
        self._options = options(UPPER, threads)

    @classmethod
    def _function(cls, name: str) -> Any:
        return getattr(lib, f"{cls._kind}_{name}")

    def _call(self, function: Any, *arguments: Any, turned: bool = False) -> None:
        """Calls a function of the library. turned: as of error_of()."""
        status = Status()
        if function(*arguments, byref(status)):
            raise error_of(status, turned)

    def _make(self, name: str, *arguments: Any, turned: bool = False) -> None:
        """Calls a function of the library that makes the object."""
        made = c_void_p()
        self._call(self._function(name), *arguments, byref(made), turned=turned)
        self._handle = made.value

    def _given(self, name: str, x: Any, stream: Optional[int] = None) -> Union[np.ndarray, GpuArray]:
        """Returns an array of numbers in either memory. stream: as of view(). Raises TypeError if x is on a GPU and
        the object is not."""
        if not is_on_gpu(x):
            return real(name, x)
        self._require_gpu(name)
        return real_on_gpu(name, x, stream=stream)

    def _require_gpu(self, name: str) -> None:
        if self._number == HOST:
            raise TypeError(f"{name} is on a GPU, and the {self._kind} is not: copy it, as by {name}.cpu() of torch")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._destroy(self._handle)

    def _device(self) -> Union[str, int]:
        """Returns the device as it was asked for."""
        return {HOST: "host", ANY_GPU: "gpu"}.get(self._number, self._number)

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self._dtype

    @property
    def device(self) -> str:
        """"host" or "gpu"."""
        return "gpu" if self._function("on_gpu")(self._handle) else "host"

    def copy(self) -> Any:
        """Returns a copy, in the same kind of memory."""
        other = type(self).__new__(type(self))
        other._prepare(self._dtype, self._number, self._threads)
        other._make("copy", self._handle)
        return other

    @classmethod
    def _places(cls, rows: Union[int, Iterable[int]], n: int) -> np.ndarray:
        """Returns the numbers of rows, from 0, in ascending order and each once. rows: as of delete()."""
        if hasattr(rows, "ndim"):
            rows = array("rows", rows)
            if rows.dtype == bool and rows.shape != (n,):
                raise TypeError(f"a mask must have shape ({n},), not {rows.shape}")
            single = rows.ndim == 0
        else:
            single = isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable)
        rows = [rows] if single else list(rows)
        if not single and len(rows) == n and all(isinstance(row, _BOOLEANS) for row in rows):
            return np.flatnonzero(rows)
        return np.unique(np.array([cls._place(row, n) for row in rows], np.intp))

    @staticmethod
    def _place(row: int, n: int) -> int:
        """Returns the number of a row from 0. Raises IndexError, and TypeError."""
        if isinstance(row, _BOOLEANS):
            raise TypeError(f"a row has a number, not {row}; a mask has a boolean for each of the {n} rows")
        row = as_integer(row)
        if not -n <= row < n:
            raise IndexError(f"there is no row {row} of {n}")
        return row + n if row < 0 else row

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()
