"""Modification of a factor in an array in the memory of a GPU."""

from __future__ import annotations

from ctypes import byref
from math import prod
from typing import Any, Optional, Tuple

import numpy as np

from ._arrays import columns, number, pointer, square, weights_of
from ._gpu import GpuArray, columns_on_gpu, copy_of, either_on_gpu, packed_columns, queue, real_on_gpu, view
from ._libraries import is_on_gpu, library_of
from ._library import ANY_GPU, DOUBLE, LOWER, UPPER, Matrix, Status, lib, options
from .errors import BadArgument, error_of


def cholupdate_on_gpu(L: Any, x: Any, what: tuple, out: Any, how: tuple) -> Any:
    """Returns what cholupdate() does, for L on a GPU. what: (weights, scale, downdate). how: (lower, threads,
    verdict)."""
    lower, _, verdict = how
    factor = real_on_gpu("L", L)
    if factor.ndim > 2:
        raise TypeError("L on a GPU must be one factor (n, n). Batch(L, device='gpu') has many, from the host")
    square("L", factor)
    R, turned = either_on_gpu(factor)
    result, to = factor, (R, turned)
    if out is not None:
        _require_out(out, factor)
    if verdict is not None and out is not None:
        result = view("out", out, factor.stream)  # which may be lost
        to = either_on_gpu(result)
    elif factor.owner is L and (out is not L or R is None):  # of integers there is a copy already
        result = view("L", copy_of(factor, lower), factor.stream)
        to = either_on_gpu(result)
    apart = R is not None and to[0] is not None and not _overlap(R, to[0])
    into = apart and (R.ld, turned) == (to[0].ld, to[1])
    if verdict is not None and not into:
        raise BadArgument("with a verdict, L is lower in C order, or upper in Fortran order, and out is another array "
                          "that lies as L does, or None")
    _modify(result, *to, R if into else None, x, what, how)
    if out is None:
        return result.owner
    if result.owner is not out:
        out[...] = result.owner
    return out


def _modify(result: GpuArray, to: Matrix, turned: bool, R: Optional[Matrix], x: Any, what: tuple, how: tuple) -> None:
    """Replaces the result, a factor in the matrix `to`, by the modified factor. R: a matrix with the same factor, which
    is read instead, as that takes less time; or None. what, how: as above."""
    weights, scale, downdate = what
    lower, threads, verdict = how
    stream = result.stream
    x, V = _columns(x, result.dtype, stream, to)
    if stream is None and isinstance(x, GpuArray):
        stream = x.stream
    weights = weights_of(weights, V.cols, downdate)
    word = None if verdict is None else _word(verdict, x, result)
    chosen = options(UPPER if bool(lower) == turned else LOWER, threads, ANY_GPU, queue(stream), word)
    status = Status()
    end = V, pointer(weights), number("scale", scale), None, chosen, byref(status)
    if lib.update(to, *end) if R is None else lib.update_into(R, to, *end):
        raise error_of(status, turned)


def _columns(x: Any, dtype: np.dtype, stream: Optional[int], to: Matrix) -> Tuple[Any, Matrix]:
    """Returns x, and the matrix of its columns, which is not a part of the one that changes."""
    if not is_on_gpu(x):
        return columns("x", x, to.rows, dtype)
    there, V = columns_on_gpu("x", x, to.rows, dtype, stream)
    return packed_columns("x", there, dtype, stream) if _overlap(V, to) else (there, V)


def _word(verdict: Any, x: Any, result: GpuArray) -> int:
    """Returns where the one int32 of the verdict is. Raises BadArgument unless it, and x, are arrays of the library of
    the result: another one would not wait for its stream."""
    library = library_of(result.owner)
    owner = x.owner if isinstance(x, GpuArray) else x
    if not all(is_on_gpu(array) and library_of(array) is library for array in (verdict, owner)):
        raise BadArgument("with a verdict, it and x are arrays of the library of L, on its GPU")
    there = view("verdict", verdict, result.stream)
    if there.dtype != np.int32 or prod(there.shape) != 1 or there.readonly:
        raise BadArgument(f"verdict must be one int32 that can be written, not {there.dtype} of shape {there.shape}")
    return there.data


def _overlap(A: Matrix, B: Matrix) -> bool:
    """Returns whether two matrices of one type may have memory in common."""
    size = 8 if A.type == DOUBLE else 4
    (a, a_end), (b, b_end) = ((M.data or 0, (M.data or 0) + size * (M.ld * (M.cols - 1) + M.rows)) for M in (A, B))
    return a < b_end and b < a_end


def _require_out(out: Any, factor: GpuArray) -> None:
    """Raises TypeError and BadArgument unless the result can be stored in `out`."""
    if out is factor.owner:
        there = factor
    elif not is_on_gpu(out) or library_of(out) is not library_of(factor.owner):
        raise TypeError(f"out must be an array of the library of L on its GPU, not {type(out).__name__}")
    else:
        there = view("out", out, factor.stream)
    if there.shape != factor.shape or there.dtype != factor.dtype:
        raise BadArgument(f"out must have shape {factor.shape} and dtype {factor.dtype}, as the result has, not "
                          f"{there.shape} and {there.dtype}")
    if there.readonly:
        raise BadArgument("out is read-only")
