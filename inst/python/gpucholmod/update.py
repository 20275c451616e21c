"""Modification of a factor in an array."""

from __future__ import annotations

from ctypes import byref
from math import prod
from typing import Any, Optional

import numpy as np

from ._arrays import array, by_either, columns, like, number, pointer, real, spread, square, weights_of
from ._libraries import is_on_gpu, is_tensor
from ._library import LOWER, UPPER, Status, lib, options
from ._update_gpu import cholupdate_on_gpu
from .batch import Batch
from .errors import BadArgument, Error, error_of

_SMALL, _MANY = 32, 8  # up to this order, and from as many factors on, a batch is faster than one after the other


def cholupdate(L: Any, x: Any, weights: Any = None, scale: Any = 1.0, lower: bool = True, out: Any = None,
               downdate: bool = False, threads: Optional[int] = None, verdict: Any = None) -> Any:
    """Returns the Cholesky factor of scale A + x diag(weights) x', for the factor L of A.

    Parameters
    ----------
    L : (n, n) array
        The factor: A = L L', or A = L' L if `lower` is false. The other triangle may hold anything; the result has the
        same there. Or (..., n, n): many factors.
    x : (n,) or (n, k) array
        The columns that are added. For X with a row for each of k observations, x = X.T. Or (..., n) or (..., n, k),
        with the leading dimensions of L.
    weights : number or (k,) array, optional
        Of any sign: negative ones take columns away. Or (..., k). None: all are 1.
    scale : number
        Positive. Or (...): one for each factor, if L has leading dimensions.
    lower : bool
        Which triangle of L is the factor.
    out : (n, n) array, optional
        Where the result is stored. out=L modifies L in place.
    downdate : bool
        Whether all weights are multiplied by -1.
    threads : int, optional
        The most threads that compute. None: as many as are of use.
    verdict : (1,) or () array of int32, optional
        On the GPU of L: the call then only queues its work in the stream of the arrays, and returns. The verdict
        becomes 0, or 1: the result and `out` are lost, L is as it was, and a call without verdict computes it or
        raises why it cannot. For L lower in C order, or upper in Fortran order, x on the GPU, and out another array or
        None.

    Returns
    -------
    (n, n) array of the dtype of L: `out` if it is given; a tensor if L is a tensor of torch; an array of the library of
    L on the same GPU if L is on a GPU.

    Raises
    ------
    NotPositiveDefinite
        The modified matrix is not positive definite; `pivot` tells where.
    BadArgument, NotFinite, BadDiagonal, Overflow
        An array has the wrong shape, or a number that is not finite or too large; or the factor has a zero on its
        diagonal, so that nothing can be taken away.
    TypeError
        An array is neither of float64, float32, integers nor booleans; or x is on a GPU, and L is not.

    After an exception L and `out` are as they were, unless it is HalfModified, which can happen on a GPU with out=L.

    Notes
    -----
    x and weights are converted to the dtype that they need: x to that of L, so a float32 factor stays one. An L of
    integers becomes float64. L may be in C or Fortran order, or a part of a larger array in either. Columns are read
    where they are if the numbers of each follow one another, as for x = X.T with X in C order. Otherwise they are
    copied.

    Many factors up to n = 32 are modified together (1,000 of n = 4, k = 1: 0.2 us each); larger ones, and those with
    zeros on their diagonals, by a call of the library each, which costs about 4 us on top of the work. `Batch` keeps
    many factors in memory of its own, which saves copies. The result is computed apart and then copied to `out`.

    L on a GPU is one factor (n, n); x is on the same GPU, or on the host, and `out` is on that GPU. Work waits for
    the stream of the arrays, and is done when the call returns, unless there is a verdict. The result is a copy of
    L by its library that is changed in place: in C order, if L is lower. Numbers of x that are too large for
    float32 raise NotFinite instead of Overflow. A lower factor in C order, or an upper one in Fortran order, is
    changed where it is; others by way of a copy. The factors of torch.linalg.cholesky(A) are lower in Fortran
    order, those of torch.linalg.cholesky(A, upper=True) upper.
    """
    if is_on_gpu(L):
        return cholupdate_on_gpu(L, x, (weights, scale, downdate), out, (lower, threads, verdict))
    if verdict is not None:
        raise TypeError("a verdict is for L on a GPU")
    factor = real("L", L)
    there = None if out is None else _output(out, factor)
    if factor.ndim > 2:
        result = _each(factor, x, weights, scale, lower, downdate, threads)
    else:
        result = _one(factor, x, weights, scale, lower, downdate, threads, in_place=out is L)
    if out is None:
        return like(result, L)
    if result is not factor:
        there[...] = result
    return out


def _output(out: Any, factor: np.ndarray) -> np.ndarray:
    """Returns `out` as an array that the result can be stored in. Raises TypeError and BadArgument if it is none."""
    if not (isinstance(out, np.ndarray) or is_tensor(out)):
        raise TypeError(f"out must be an array of NumPy or a tensor of torch, not {type(out).__name__}")
    there = array("out", out)
    if there.shape != factor.shape or there.dtype != factor.dtype:
        raise BadArgument(f"out must have shape {factor.shape} and dtype {factor.dtype}, as the result has, not "
                          f"{there.shape} and {there.dtype}")
    if not there.flags.writeable:
        raise BadArgument("out is read-only")
    return there


def _one(L: np.ndarray, x: Any, weights: Any, scale: Any, lower: bool, downdate: bool, threads: Optional[int],
         in_place: bool) -> np.ndarray:
    """Returns the modified factor: L itself if it is to be modified in place and can be."""
    n = square("L", L)
    x, V = columns("x", x, n, L.dtype)
    weights = weights_of(weights, V.cols, downdate)
    R, turned = by_either(L) if in_place and not _overlap(L, x) else (None, False)
    if R is None:
        L = L.copy("K")
        R, turned = by_either(L)
    status = Status()
    triangle = UPPER if bool(lower) == turned else LOWER
    if lib.update(R, V, pointer(weights), number("scale", scale), None, options(triangle, threads), byref(status)):
        raise error_of(status, turned)
    return L


def _overlap(L: np.ndarray, x: np.ndarray) -> bool:
    return (L.base is not None or x.base is not None) and np.may_share_memory(L, x)


def _each(L: np.ndarray, x: Any, weights: Any, scale: Any, lower: bool, downdate: bool,
          threads: Optional[int]) -> np.ndarray:
    """Returns the modified factors L (..., n, n)."""
    leading, n = L.shape[:-2], L.shape[-1]
    x = real("x", x, L.dtype)
    if x.ndim not in (L.ndim - 1, L.ndim) or x.shape[:L.ndim - 1] != L.shape[:-1]:
        shape = L.shape[:-1]
        raise BadArgument(f"x must have shape {shape} or {shape + ('k',)}, not {x.shape}")
    count = prod(leading)
    L, x = L.reshape(count, n, n), x.reshape(count, *x.shape[len(leading):])
    if weights is not None or downdate:
        k = 1 if x.ndim == 2 else x.shape[-1]
        weights = spread("weights", 1.0 if weights is None else weights, (*leading, k)).reshape(count, k)
        weights = -weights if downdate else weights
    scale = spread("scale", scale, leading).reshape(count)
    together = n <= _SMALL and count >= _MANY and L.diagonal(axis1=1, axis2=2).all()
    result = (_together if together else _one_by_one)(L, x, weights, scale, lower, threads)
    return result.reshape(*leading, n, n)


def _together(L: np.ndarray, x: np.ndarray, weights: Optional[np.ndarray], scale: np.ndarray, lower: bool,
              threads: Optional[int]) -> np.ndarray:
    """Returns the modified factors L (c, n, n), whose diagonals have no zeros."""
    batch = Batch(L, lower, threads=threads)
    batch.update(x, weights, scale)
    triangle = np.tri(L.shape[-1], dtype=bool)
    return np.where(triangle if lower else triangle.T, batch.to_array(lower), L)


def _one_by_one(L: np.ndarray, x: np.ndarray, weights: Optional[np.ndarray], scale: np.ndarray, lower: bool,
                threads: Optional[int]) -> np.ndarray:
    """Returns the modified factors L (c, n, n)."""
    result = L.copy()
    for member in range(len(L)):
        try:
            own = None if weights is None else weights[member]
            _one(result[member], x[member], own, float(scale[member]), lower, False, threads, in_place=True)
        except Error as error:
            error.member = member
            raise
    return result
