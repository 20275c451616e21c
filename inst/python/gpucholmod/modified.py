"""Many modifications of one matrix, or one of each of many."""

from __future__ import annotations

from ctypes import byref
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._arrays import FLOAT64, by_either, members, packed, pointer, real, spread, square
from ._library import DOUBLE, LOWER, UPPER, BatchSystems, Matrix, Modifications, Status, lib, options
from .batch import Batch
from .errors import BadArgument, NotPositiveDefinite, error_of
from .factor import Factor

_NO_MATRIX = Matrix(None, 0, 0, 0, DOUBLE)


class ModifiedResults(NamedTuple):
    """What solve_modified() returns, for c modifications."""

    solution: Optional[np.ndarray]  # (c, n) or (c, n, m): A_j^-1 b
    quadratic: Optional[np.ndarray]  # (c,) or (c, m): the diagonal of b' A_j^-1 b
    logdet: np.ndarray  # (c,): the logarithm of the determinant of A_j
    pivot: np.ndarray  # (c,): -1, or the first row and column, from 0, at which A_j is not positive definite


def solve_modified(L: Union[Factor, Batch, Any], x: Any, b: Any = None, weights: Any = None, scale: Any = 1.0,
                   lower: bool = True, check: bool = True, threads: Optional[int] = None) -> ModifiedResults:
    """Solves with c modifications A_j = scale_j A + x_j diag(weights_j) x_j' of one matrix A, which stays as it is.

    Parameters
    ----------
    L : Factor, or (n, n) array; or Batch
        The factor of A, as of cholupdate(). A Batch has c members, and A_j is a modification of the matrix of member j
        instead; the batch does not change. On a GPU there must be memory for a second batch, and x may be there.
    x : (c, n) or (c, n, k) array
        The columns of each modification. For X (c, k, n) with a row for each observation, x = X.swapaxes(1, 2), which
        is not copied. For a Batch, as of Batch.update().
    b : (n,), (n, m) or (c, n, m) array, optional
        The right-hand sides: the same for all modifications, or those of each. None: only determinants are computed.
    weights : number, (k,) or (c, k) array, optional
        Of any sign. None: 1.
    scale : number or (c,) array
        Positive.
    lower : bool
        Which triangle of L is the factor, if it is an array.
    check : bool
        Whether a modification that is not positive definite raises NotPositiveDefinite, whose `member` is its number.
        If false, its results are NaN, and its `pivot` is not -1.
    threads : int, optional
        The most threads that compute. None: as many as are of use.

    All is computed in float64, whatever the dtype of x and b is; for a Batch, the factors of all A_j in its dtype.
    """
    if isinstance(L, Batch):
        return _by_members(L, x, b, weights, scale, check, threads)
    if not isinstance(L, Factor):
        L = real("L", L)
    n = L.order if isinstance(L, Factor) else square("L", L)
    rows = members("x", x, n, FLOAT64)
    count, k = rows.shape[:2]
    columns = np.full(count, k, np.intp)
    weights = None if weights is None else spread("weights", weights, (count, k))
    scale = spread("scale", scale, (count,))
    given = Modifications(count=count, columns=pointer(columns), V=Matrix(pointer(rows), n, count * k, n, DOUBLE),
                          weights=pointer(weights), scales=pointer(scale), m=0, b=_NO_MATRIX, solution=_NO_MATRIX)
    solution, quadratic, b = (None, None, None) if b is None else _right_sides(given, b, n, count)
    logdet, pivot = np.empty(count), np.empty(count, np.intp)
    given.logdet, given.pivots = pointer(logdet), pointer(pivot)
    _call(L, given, lower, check, threads)
    return ModifiedResults(solution, quadratic, logdet, pivot - 1)


def _by_members(batch: Batch, x: Any, b: Any, weights: Any, scale: Any, check: bool,
                threads: Optional[int]) -> ModifiedResults:
    """Solves with a modification of each member."""
    what, stream, arrays = batch._modification(x, weights, scale, check)
    count = len(batch)
    given = BatchSystems(m=0, b=_NO_MATRIX, solution=_NO_MATRIX)
    solution, quadratic, b = (None, None, None) if b is None else _right_sides(given, b, batch.order, count)
    logdet, pivot = np.empty(count), np.zeros(count, np.intp)
    given.logdet, given.pivots = pointer(logdet), pointer(pivot)
    try:
        batch._call(lib.batch_solve_modified, batch._handle, byref(what), byref(given),
                    options(UPPER, threads, stream=stream))
    except NotPositiveDefinite:
        if check:
            raise
    return ModifiedResults(solution, quadratic, logdet, pivot - 1)


def _right_sides(given: Union[Modifications, BatchSystems], b: Any, n: int, count: int) -> tuple:
    """Enters right-hand sides, and memory for the results. Returns the arrays of the results, and that of the
    right-hand sides, which has to exist until the call."""
    b = real("b", b, FLOAT64)
    own = b.ndim == 3
    if b.ndim not in (1, 2, 3) or b.shape[own] != n or own and len(b) != count:
        raise BadArgument(f"b must have shape ({n},), ({n}, m) or ({count}, {n}, m), not {b.shape}")
    m = 1 if b.ndim == 1 else b.shape[-1]
    rows = packed(b if b.ndim == 1 else b.swapaxes(-1, -2))
    solution, quadratic = np.empty((count, m, n)), np.empty((count, m))
    given.m = m
    given.b = Matrix(pointer(rows), n, m * count if own else m, n, DOUBLE)
    given.solution = Matrix(pointer(solution), n, m * count, n, DOUBLE)
    given.quadratic = pointer(quadratic)
    if b.ndim == 1:
        return solution[:, 0], quadratic[:, 0], rows
    return solution.swapaxes(1, 2), quadratic, rows


def _call(L: Union[Factor, np.ndarray], given: Modifications, lower: bool, check: bool, threads: Optional[int]) -> None:
    turned = False
    try:
        if isinstance(L, Factor):
            L._call(lib.factor_solve_modified, L._handle, byref(given), options(UPPER, threads))
            return
        R, turned = by_either(L)
        if R is None:
            L = L.copy("K")
            R, turned = by_either(L)
        status = Status()
        triangle = UPPER if bool(lower) == turned else LOWER
        if lib.solve_modified(R, byref(given), options(triangle, threads), byref(status)):
            raise error_of(status, turned)
    except NotPositiveDefinite:
        if check:
            raise
