"""Modification of a factor in an array in the memory of a GPU."""

from __future__ import annotations

from ctypes import byref
from typing import Any, Optional

from ._arrays import columns, number, pointer, square, weights_of
from ._gpu import GpuArray, columns_on_gpu, copy_of, either_on_gpu, real_on_gpu, view
from ._handle import gpu_turn
from ._libraries import is_on_gpu, library_of
from ._library import ANY_GPU, LOWER, UPPER, Matrix, Status, lib, options
from .errors import BadArgument, error_of


def cholupdate_on_gpu(L: Any, x: Any, weights: Any, scale: Any, lower: bool, out: Any, downdate: bool,
                      threads: Optional[int]) -> Any:
    """Returns what cholupdate() does, for L on a GPU."""
    factor = real_on_gpu("L", L)
    if factor.ndim > 2:
        raise TypeError("L on a GPU must be one factor (n, n). Batch(L, device='gpu') has many, from the host")
    square("L", factor)
    if out is not None:
        _require_out(out, factor)
    R, turned = either_on_gpu(factor)
    if factor.owner is L and (out is not L or R is None):  # of integers there is a copy already
        factor = view("L", copy_of(factor, R), factor.stream)
        R, turned = either_on_gpu(factor)
    chosen = options(UPPER if bool(lower) == turned else LOWER, threads, ANY_GPU, factor.queue)
    _modify(factor, R, turned, x, (weights, scale, downdate), chosen)
    if out is None:
        return factor.owner
    if factor.owner is not out:
        out[...] = factor.owner
    return out


def _modify(factor: GpuArray, R: Matrix, turned: bool, x: Any, what: tuple, chosen: Any) -> None:
    """Modifies the factor R. what: (weights, scale, downdate)."""
    weights, scale, downdate = what
    if is_on_gpu(x):
        x, V = columns_on_gpu("x", x, R.rows, factor.dtype, factor.stream)
    else:
        x, V = columns("x", x, R.rows, factor.dtype)
    weights = weights_of(weights, V.cols, downdate)
    scale = number("scale", scale)
    status = Status()
    with gpu_turn:
        code = lib.update(R, V, pointer(weights), scale, None, chosen, byref(status))
    if code:
        raise error_of(status, turned)


def _require_out(out: Any, factor: GpuArray) -> None:
    """Raises TypeError and BadArgument unless the result can be stored in `out`."""
    if not is_on_gpu(out) or library_of(out) is not library_of(factor.owner):
        raise TypeError(f"out must be an array of the library of L on its GPU, not {type(out).__name__}")
    there = view("out", out, factor.stream)
    if there.shape != factor.shape or there.dtype != factor.dtype:
        raise BadArgument(f"out must have shape {factor.shape} and dtype {factor.dtype}, as the result has, not "
                          f"{there.shape} and {there.dtype}")
    if there.readonly:
        raise BadArgument("out is read-only")
