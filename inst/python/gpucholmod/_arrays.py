"""Arrays of callers as the matrices of the C interface, which are column-major.

A lower factor in C order is an upper one by columns, and the rows of observations X (k x n, C order) are the columns of
X.T: neither is copied.
"""

from __future__ import annotations

import sys
from ctypes import addressof, c_char
from functools import lru_cache
from typing import Any, Optional, Tuple

import numpy as np

from ._libraries import is_on_gpu, is_tensor, on_host
from ._library import DOUBLE, FLOAT, Matrix
from .errors import BadArgument, Overflow

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
TYPES = {FLOAT64: DOUBLE, FLOAT32: FLOAT}


def like(result: np.ndarray, given: Any) -> Any:
    """Returns the result as a tensor, in the same memory, if a tensor was given."""
    return sys.modules["torch"].from_numpy(result) if is_tensor(given) else result


def _require_host(name: str, x: Any) -> None:
    if is_on_gpu(x):
        raise TypeError(f"{name} is on a GPU, and must be on the host here: copy it, as by {name}.cpu() of torch or "
                        f"cupy.asnumpy({name})")


def array(name: str, x: Any) -> np.ndarray:
    """Returns x as an array, in the same memory if x is an array of any library. Raises TypeError if it is on a GPU."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: its masked values would count")
    if not isinstance(x, np.ndarray):
        _require_host(name, x)
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.from_dlpack(x)
    return np.asarray(x)


def real(name: str, x: Any, dtype: Optional[np.dtype] = None) -> np.ndarray:
    """Returns x as an array of float64 or float32; of `dtype`, if it is given. Integers and booleans become float64.

    Raises TypeError if x has another dtype, and Overflow if a number is too large for `dtype`."""
    if type(x) is not np.ndarray:
        x = array(name, x)
    own = x.dtype
    if own is dtype or own in TYPES and (dtype is None or own == dtype):
        return x
    native = own.newbyteorder("=")
    if native not in TYPES and own.kind not in "biu":
        raise TypeError(f"{name} must be float64 or float32, or integers, not {own}")
    to = dtype or (native if native in TYPES else FLOAT64)
    with np.errstate(over="ignore"):
        converted = x.astype(to)
    too_large = np.isfinite(x) & ~np.isfinite(converted)
    if too_large.any():
        raise Overflow(f"{name} has a number that is too large for {to}")
    return converted


def number(name: str, x: Any) -> float:
    """Returns a number as a float. Raises TypeError and BadArgument if it is none."""
    if type(x) is float:
        return x
    x = real(name, x)
    if x.ndim != 0:
        raise BadArgument(f"{name} must be one number, not of shape {x.shape}")
    return float(x)


def address(x: np.ndarray) -> int:
    """Returns the address of the first element. The first way is the quicker one (0.3 us, 0.9 us)."""
    if x.flags.carray and x.size:
        return addressof(c_char.from_buffer(x))
    return x.ctypes.data


def by_columns(x: np.ndarray) -> Optional[Matrix]:
    """Returns x (2-D) as a matrix, or None if it would have to be copied."""
    rows, cols = x.shape
    if x.flags.f_contiguous and x.flags.aligned:
        return Matrix(address(x.T), rows, cols, rows, TYPES[x.dtype])
    down, across = x.strides
    size = x.itemsize
    if down != size or across % size or across < rows * size or not x.flags.aligned:
        return None
    return Matrix(x.ctypes.data, rows, cols, across // size, TYPES[x.dtype])


def columns(name: str, x: Any, n: int, dtype: Optional[np.dtype] = None) -> Tuple[np.ndarray, Matrix]:
    """Returns x, (n,) or (n, k), and the matrix of its k columns. They are copied only if the numbers of a column do
    not follow one another.

    Raises BadArgument if x has another shape, and what real() does."""
    x = real(name, x, dtype)
    if x.ndim == 1 and len(x) == n:
        if not (x.flags.c_contiguous and x.flags.aligned):
            x = x.copy()
        return x, Matrix(address(x), n, 1, n, TYPES[x.dtype])
    if x.ndim != 2 or x.shape[0] != n:
        raise wrong_columns(name, x.shape, n)
    matrix = by_columns(x)
    if matrix is None:
        x = np.array(x, order="F")
        matrix = by_columns(x)
    return x, matrix


def wrong_columns(name: str, shape: Tuple[int, ...], n: int) -> BadArgument:
    turned = ": was its transpose meant?" if len(shape) == 2 and shape[1] == n else ""
    return BadArgument(f"{name} must have shape ({n},) or ({n}, k), not {shape}{turned}")


def square(name: str, L: np.ndarray) -> int:
    """Returns n for L of shape (n, n). Raises BadArgument."""
    if L.ndim != 2 or L.shape[0] != L.shape[1]:
        raise BadArgument(f"{name} must be square, not of shape {L.shape}")
    return L.shape[0]


def by_either(L: np.ndarray) -> Tuple[Optional[Matrix], bool]:
    """Returns L or, if its rows are without gaps, L.T as a matrix, or None if both would have to be copied; and whether
    it is L.T."""
    if L.flags.c_contiguous and L.flags.aligned:
        n = len(L)
        return Matrix(address(L), n, n, n, TYPES[L.dtype]), True
    matrix = by_columns(L)
    return (matrix, False) if matrix is not None else (by_columns(L.T), True)


def packed(x: np.ndarray) -> np.ndarray:
    """Returns x in C order and aligned; it is copied only if it is not."""
    return np.require(x, requirements="CA")


def weights_of(weights: Any, k: int, downdate: bool) -> Optional[np.ndarray]:
    """Returns the weights (k,) as float64, or None if all are 1; a copy of those on a GPU.

    Raises BadArgument, and TypeError."""
    if weights is None:
        return _minus_ones(k) if downdate else None
    if type(weights) in (float, int):
        return np.full(k, -weights if downdate else weights, np.float64)
    weights = real("weights", on_host(weights), FLOAT64)
    if weights.ndim > 1 or weights.ndim == 1 and len(weights) != k:
        raise BadArgument(f"weights must be a number or have shape ({k},), not {weights.shape}")
    return packed(np.broadcast_to(-weights if downdate else weights, (k,)))


def spread(name: str, numbers: Any, shape: Tuple[int, ...]) -> np.ndarray:
    """Returns numbers as float64 of this shape, by NumPy's rules of broadcasting. Raises BadArgument, and TypeError."""
    numbers = real(name, numbers, FLOAT64)
    try:
        return packed(np.broadcast_to(numbers, shape))
    except ValueError:
        raise BadArgument(f"{name} must be a number or have shape {shape}, not {numbers.shape}") from None


def members(name: str, x: Any, n: int, dtype: Optional[np.dtype] = None) -> np.ndarray:
    """Returns x, (c, n) or (c, n, k), as an array (c, k, n) in C order: n x k c numbers by columns. It is copied unless
    x was made from such an array by swapaxes(1, 2). Raises BadArgument, and what real() does."""
    x = real(name, x, dtype)
    require_members(name, x.shape, n)
    return packed(x[:, np.newaxis] if x.ndim == 2 else x.swapaxes(1, 2))


def require_members(name: str, shape: Tuple[int, ...], n: int) -> None:
    """Raises BadArgument unless the shape is (c, n) or (c, n, k)."""
    if len(shape) not in (2, 3) or shape[1] != n:
        raise BadArgument(f"{name} must have shape (c, {n}) or (c, {n}, k), not {shape}")


@lru_cache(maxsize=64)
def _minus_ones(k: int) -> np.ndarray:
    return np.full(k, -1.0)


def pointer(x: Optional[np.ndarray]) -> Optional[int]:
    """Returns the address of the first element, or None of None."""
    return None if x is None else address(x)
