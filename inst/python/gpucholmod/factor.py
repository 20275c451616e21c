"""A factor with memory of its own."""

from __future__ import annotations

from ctypes import byref, c_double, c_ssize_t
from math import prod
from operator import index as as_integer
from typing import Any, Iterable, Optional, Tuple, Union

import numpy as np

from ._arrays import address, array, by_columns, by_either, columns, number, pointer, real, square, weights_of
from ._gpu import LEGACY, GpuArray, columns_of, copy_of, either_on_gpu, packed_columns, queue, real_on_gpu, view
from ._handle import Handle, device_number, system_number
from ._libraries import Maker, is_on_gpu, library_of
from ._library import ANY_GPU, HOST, LOWER, UPPER, Matrix, Status, integer, lib, options
from .errors import BadArgument, error_of


class Factor(Handle):
    """The Cholesky factor of a matrix A = L L' (n x n), which changes in place.

    Parameters
    ----------
    L : (n, n) array
        The factor, which is copied. float32 or float64 decides what is computed in; integers become float64.
    lower : bool
        Which triangle of L is the factor: A = L L', or A = L' L if false. The other triangle is not read.
    capacity : int, optional
        The rows and columns that there is room for before the factor is moved to larger memory.
    device : "host", "gpu" or int, optional
        Where the factor is stored: on the host, on the first GPU that can be used, or on the GPU of this number. None:
        where L is.
    threads : int, optional
        The most threads that compute. None: as many as are of use.

    L on a GPU is copied on that GPU. If it is of torch, CuPy or JAX, to_array() and inverse() return arrays of that
    library on that GPU. A factor on a GPU takes x, X and b from either memory; solve() returns an array of the library
    of b, where b is.

    After an exception the factor is as it was, unless the exception is HalfModified. Several threads may use different
    factors at the same time; they take turns for factors on a GPU. A factor can be copied and pickled.
    """

    _kind = "factor"

    def __init__(self, L: Any, lower: bool = True, capacity: Optional[int] = None,
                 device: Union[None, str, int] = None, threads: Optional[int] = None):
        self._empty: Optional[Maker] = None  # makes arrays on a GPU, if L is on one
        number, stream = HOST if device is None else device_number(device), None
        if is_on_gpu(L):
            L, R, turned = self._on_gpu(L)
            number, stream = self._number_on_gpu(L, number, device), queue(L.stream)
        else:
            L = real("L", L)
            square("L", L)
            R, turned = by_either(L)
        if R is None:
            L = L.copy("K")
            R, turned = by_either(L)
        self._prepare(L.dtype, number, threads)
        self._make("create", R, R.rows if capacity is None else integer("capacity", capacity, 0, c_ssize_t),
                   options(UPPER if bool(lower) == turned else LOWER, threads, number, stream), turned=turned)

    def _on_gpu(self, L: Any) -> Tuple[GpuArray, Matrix, bool]:
        """Returns L, which is on a GPU, as a matrix, and whether that is its transpose."""
        self._empty = library_of(L).maker(L)
        there = real_on_gpu("L", L)
        square("L", there)
        if either_on_gpu(there)[0] is None:
            there = view("L", copy_of(there, lower=True), there.stream)
        return (there, *either_on_gpu(there))

    @staticmethod
    def _number_on_gpu(L: GpuArray, number: int, device: Union[None, str, int]) -> int:
        """Returns options->device for L on a GPU. Raises TypeError if `device` is the host."""
        if device is not None and number == HOST:
            raise TypeError("L is on a GPU, and device is 'host': copy L to the host, as by L.cpu() of torch")
        return number if number >= 0 else ANY_GPU if L.device is None else L.device

    @classmethod
    def from_matrix(cls, A: Any, lower: bool = True, capacity: Optional[int] = None,
                    device: Union[str, int] = "host", threads: Optional[int] = None) -> Factor:
        """Returns the factor of A (n, n), symmetric, on the host. Only its lower triangle is read, or the upper
        one if `lower` is false. Raises NotPositiveDefinite."""
        A = real("A", A)
        square("A", A)
        L = A.copy("K")
        R, turned = by_either(L)
        status = Status()
        if lib.factorise(R, options(UPPER if bool(lower) == turned else LOWER), byref(status)):
            raise error_of(status, turned, "the matrix")
        return cls(L, lower, capacity, device, threads)

    # ---- What it is ----

    @property
    def order(self) -> int:
        """n, the number of rows and columns."""
        return lib.factor_order(self._handle)

    @property
    def shape(self) -> Tuple[int, int]:
        """(n, n)."""
        return self.order, self.order

    @property
    def capacity(self) -> int:
        """The rows and columns that there is room for."""
        return lib.factor_capacity(self._handle)

    def __repr__(self) -> str:
        return f"<gpucholmod.Factor of order {self.order}, {self.dtype}, on {self.device}>"

    def to_array(self, lower: bool = True) -> Any:
        """Returns the factor as an array (n, n) whose other triangle is 0: L with A = L L', or its transpose if
        `lower` is false."""
        if self._empty is None:
            return self._on_host(lower)
        L = self._empty(self.shape, self._dtype)
        there = view("L", L)
        R, turned = either_on_gpu(there)
        self._call(lib.factor_get, self._handle, R,
                   options(UPPER if bool(lower) == turned else LOWER, stream=queue(there.stream)))
        return L

    def _on_host(self, lower: bool = True) -> np.ndarray:
        """Returns the same as an array of NumPy."""
        n = self.order
        L = np.empty((n, n), self._dtype)
        R, _ = by_either(L)
        self._call(lib.factor_get, self._handle, R, options(UPPER if lower else LOWER))
        return L

    def copy(self) -> Factor:
        """Returns a copy, in the same kind of memory."""
        other = super().copy()
        other._empty = self._empty
        return other

    def diagonal(self) -> np.ndarray:
        """Returns the diagonal (n,) of the factor, as float64."""
        out = np.empty(self.order)
        self._call(lib.factor_diagonal, self._handle, address(out))
        return out

    def logdet(self) -> float:
        """Returns the logarithm of the determinant of A; -inf if the diagonal of the factor has a zero."""
        return self._number_of(lib.factor_logdet)

    def rcond(self) -> float:
        """Returns an estimate of 1 / (||A|| ||A^-1||) in the 1-norm."""
        return self._number_of(lib.factor_rcond)

    def _number_of(self, function: Any) -> float:
        out = c_double()
        self._call(function, self._handle, byref(out))
        return out.value

    # ---- What changes it ----

    def update(self, x: Any, weights: Any = None, scale: float = 1.0) -> None:
        """A becomes scale A + x diag(weights) x'.

        x: (n,) or (n, k); for X with a row for each observation, x = X.T. weights: a number or (k,), of any sign, or
        None: 1."""
        self._update(x, weights, scale, False, None)

    def downdate(self, x: Any, weights: Any = None, scale: float = 1.0) -> None:
        """A becomes scale A - x diag(weights) x'. Raises NotPositiveDefinite."""
        self._update(x, weights, scale, True, None)

    def _update(self, x: Any, weights: Any, scale: float, downdate: bool, sides: Any) -> None:
        """sides: a pointer to RightSides, or None."""
        x, V, chosen = self._columns("x", x, self.order)
        weights = weights_of(weights, V.cols, downdate)
        self._call(lib.factor_update, self._handle, V, pointer(weights), number("scale", scale), sides, chosen)

    def _columns(self, name: str, x: Any, n: int) -> Tuple[Any, Matrix, Any]:
        """Returns x, (n,) or (n, k), the matrix of its columns, and options for a call that reads them. x may be what
        _given() has returned."""
        if not isinstance(x, GpuArray):
            if not is_on_gpu(x):
                return (*columns(name, x, n), self._options)
            x = self._given(name, x)
        x, matrix = columns_of(name, x, n)
        return x, matrix, options(UPPER, self._threads, stream=queue(x.stream))

    def append(self, X: Any) -> None:
        """Adds p rows and columns to the end of A. X: (n + p, p), the new columns of A, or (n + 1,) for one."""
        self.insert(self.order, X)

    def insert(self, at: int, X: Any) -> None:
        """Adds p rows and columns to A; the first of them gets number `at`, which counts as in list.insert(). X:
        (n + p, p), the new columns of the new A, or (n + 1,) for one. Raises NotPositiveDefinite."""
        n = self.order
        X = self._given("X", X)
        if X.ndim not in (1, 2) or X.shape[0] != n + (1 if X.ndim == 1 else X.shape[1]):
            raise BadArgument(f"X must have shape ({n} + p, p) or ({n + 1},), not {X.shape}")
        X, matrix, chosen = self._columns("X", X, X.shape[0])
        at = as_integer(at)
        at = max(at + n, 0) if at < 0 else min(at, n)
        self._call(lib.factor_insert, self._handle, at, matrix, None, chosen)

    def delete(self, rows: Union[int, Iterable[int]]) -> None:
        """Deletes rows and columns of A: one number, or several, or those that are true in a mask (n,) of booleans.
        Negative numbers count from the end. Raises IndexError, and TypeError."""
        deleted = self._places(rows, self.order)
        self._call(lib.factor_delete, self._handle, pointer(deleted), len(deleted), None, self._options)

    def move(self, source: int, to: int) -> None:
        """Moves row and column `source` of A, so that it becomes number `to`; those between move by one place. Negative
        numbers count from the end. Raises IndexError."""
        n = self.order
        self._call(lib.factor_shift, self._handle, self._place(source, n), self._place(to, n), None, self._options)

    # ---- What it is good for ----

    def solve(self, b: Any, system: str = "A") -> Any:
        """Returns the solution of A x = b; of L x = b, if system is "forward"; of L' x = b, if it is "back".

        b: (n,) or (n, m). The result has its shape, and float64 unless b and the factor are float32. Raises BadDiagonal
        if the diagonal of the factor has a zero."""
        n = self.order
        b = self._given("b", b)
        if b.ndim not in (1, 2) or b.shape[0] != n:
            raise BadArgument(f"b must have shape ({n},) or ({n}, m), not {b.shape}")
        if isinstance(b, GpuArray):
            return self._solve_on_gpu(b, system_number(system))
        x = np.array(b, np.result_type(b, self._dtype), order="F")
        self._call(lib.factor_solve, self._handle, system_number(system), _as_matrix(x))
        return x

    def _solve_on_gpu(self, b: GpuArray, system: int) -> Any:
        # This function has no stream: that of the copy is waited for by the default one.
        x, matrix = packed_columns("b", b, np.result_type(b.dtype, self._dtype), LEGACY)
        self._call(lib.factor_solve, self._handle, system, matrix)
        return x.owner.T if b.ndim == 2 else x.owner

    def inverse(self) -> Any:
        """Returns the inverse of A, (n, n)."""
        if self._empty is not None:
            inverse = self._empty(self.shape, self._dtype)
            self._call(lib.factor_inverse, self._handle, either_on_gpu(view("inverse", inverse, LEGACY))[0])
            return inverse
        n = self.order
        out = np.empty((n, n), self._dtype)
        self._call(lib.factor_inverse, self._handle, _as_matrix(out.T))
        return out

    def sample(self, rng: Optional[np.random.Generator] = None, size: Union[None, int, Tuple[int, ...]] = None,
               precision: bool = False) -> np.ndarray:
        """Returns draws, (*size, n), from the normal distribution with mean 0 and covariance A, or with covariance A^-1
        if `precision`. rng: None for numpy.random.default_rng().

        A draw with covariance A is L times a vector of normal numbers; L is copied to an array for that."""
        rng = np.random.default_rng() if rng is None else rng
        shape = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
        normal = rng.standard_normal((*shape, self.order))
        if precision:
            flat = normal.reshape(prod(normal.shape[:-1]), self.order)
            return self.solve(flat.T, "back").T.reshape(normal.shape)
        return normal @ self._on_host(lower=False)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Factor, (self._on_host(), True, self.capacity, self._device(), self._threads)


def _as_matrix(x: np.ndarray) -> Matrix:
    """Returns x, (n,) or (n, m) without gaps by columns, as a matrix."""
    return by_columns(x if x.ndim == 2 else x.reshape(-1, 1, order="F"))
