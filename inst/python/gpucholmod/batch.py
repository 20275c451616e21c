"""Many factors that are modified together."""

from __future__ import annotations

from ctypes import byref, c_ssize_t
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from ._arrays import FLOAT64, TYPES, address, array, members, packed, pointer, real, require_members, spread
from ._gpu import LEGACY, GpuArray, members_on_gpu, packed_members, queue
from ._handle import Handle, device_number, system_number
from ._libraries import library_of, on_host
from ._library import LOWER, UPPER, BatchInsertion, BatchModification, Matrix, integer, lib, options
from .errors import BadArgument, NotPositiveDefinite


def _side_by_side(rows: np.ndarray) -> Matrix:
    """Returns rows (c, k, n) in C order as a matrix of n x k c."""
    c, k, n = rows.shape
    return Matrix(address(rows), n, c * k, n, TYPES[rows.dtype])


def _stacked(factors: List[np.ndarray]) -> Tuple[np.ndarray, np.ndarray]:
    """Returns square arrays of any orders as one array (c, n, n), 0 beyond the order of each, and their orders."""
    for j, one in enumerate(factors):
        if one.ndim != 2 or one.shape[0] != one.shape[1]:
            raise BadArgument(f"L[{j}] must be square, not of shape {one.shape}")
    orders = np.array([len(one) for one in factors], np.intp)
    n = max(orders, default=0)
    L = np.zeros((len(factors), n, n), np.result_type(*factors) if factors else FLOAT64)
    for to, one in zip(L, factors):
        to[:len(one), :len(one)] = one
    return L, orders


class Batch(Handle):
    """The Cholesky factors of c matrices A_j = L_j L_j' (n x n), which change in place, together.

    Parameters
    ----------
    L : (c, n, n) array, or list of arrays (n_j, n_j)
        The factors, which are copied. float32 or float64 decides what is computed in; integers become float64.
    lower : bool
        Which triangle of each is the factor. The other one is not read.
    device : "host", "gpu" or int
        Where the factors are stored, as of Factor.
    threads : int, optional
        The most threads that compute. None: as many as are of use.
    capacity : int, optional
        The rows and columns of each matrix that there is room for. None: n. On a GPU none is kept unless it is above
        1,024.

    A batch on a GPU takes x, X and b from either memory, and weights. x and b on that GPU stay there, and solve()
    returns an array of the library of b there. X goes by way of the host.

    After an exception the factors are as they were, unless the exception is HalfModified; `member` is the number of the
    matrix that it is about. A batch can be copied and pickled.
    """

    _kind = "batch"

    def __init__(self, L: Any, lower: bool = True, device: Union[str, int] = "host", threads: Optional[int] = None,
                 capacity: Optional[int] = None):
        orders = None
        if isinstance(L, list):
            L, orders = _stacked([real(f"L[{j}]", one) for j, one in enumerate(L)])
        L = real("L", L)
        if L.ndim != 3 or L.shape[1] != L.shape[2]:
            raise BadArgument(f"L must have shape (c, n, n), not {L.shape}")
        L = packed(L)
        self._prepare(L.dtype, device_number(device), threads)
        room = 0 if capacity is None else integer("capacity", capacity, 0, c_ssize_t)
        self._make("create", _side_by_side(L), len(L), pointer(orders), room,
                   options(UPPER if lower else LOWER, device=self._number), turned=True)

    @property
    def order(self) -> int:
        """n, the rows and columns of each matrix, or of the largest of them."""
        return lib.batch_order(self._handle)

    @property
    def orders(self) -> np.ndarray:
        """(c,), the rows and columns of each matrix. They differ if some could not be enlarged."""
        out = np.empty(len(self), np.intp)
        self._call(lib.batch_orders, self._handle, pointer(out))
        return out

    @property
    def capacity(self) -> int:
        """The rows and columns of each matrix that there is room for."""
        return lib.batch_capacity(self._handle)

    @property
    def shape(self) -> Tuple[int, int, int]:
        """(c, n, n)."""
        return len(self), self.order, self.order

    def __len__(self) -> int:
        return lib.batch_count(self._handle)

    def __repr__(self) -> str:
        return f"<gpucholmod.Batch of {len(self)} factors of order {self.order}, {self.dtype}, on {self.device}>"

    def to_array(self, lower: bool = True) -> np.ndarray:
        """Returns the factors as an array (c, n, n) whose other triangles are 0: L_j with A_j = L_j L_j', or their
        transposes if `lower` is false. Rows and columns that a factor has not are those of the identity."""
        L = np.empty(self.shape, self._dtype)
        self._call(lib.batch_get, self._handle, _side_by_side(L), options(UPPER if lower else LOWER))
        return L

    def logdet(self) -> np.ndarray:
        """Returns the logarithms of the determinants of all A_j, (c,)."""
        out = np.empty(len(self))
        self._call(lib.batch_logdet, self._handle, address(out))
        return out

    def update(self, x: Any, weights: Any = None, scale: Any = 1.0, check: bool = True) -> np.ndarray:
        """Every A_j becomes scale_j A_j + x_j diag(weights_j) x_j'.

        Parameters
        ----------
        x : (c, n) or (c, n, k) array
            For X (c, k, n) with a row for each observation, x = X.swapaxes(1, 2), which is not copied here. c may be 1:
            then x is the same for all.
        weights : number, (k,) or (c, k) array, optional
            Of any sign. None: 1.
        scale : number or (c,) array
            Positive.
        check : bool
            Whether a matrix that would not be positive definite raises NotPositiveDefinite, and none changes. If false,
            such matrices stay as they are, and all others change.

        Returns
        -------
        (c,) array of integers: -1, or the first row and column, from 0, at which the matrix would not be positive
        definite.
        """
        what, stream, arrays = self._modification(x, weights, scale, check)
        return self._pivots(check, lib.batch_update, byref(what), options(UPPER, self._threads, stream=stream))

    def _modification(self, x: Any, weights: Any, scale: Any,
                      check: bool) -> Tuple[BatchModification, Optional[int], tuple]:
        """Returns a modification of the members, options->stream, and its arrays, which have to exist until the
        call."""
        x, k, V, stream = self._columns("x", self._given("x", x), self.order)
        weights = None if weights is None else self._weights(weights, k)
        is_one = type(scale) in (float, int) and scale == 1
        scale = None if is_one else spread("scale", scale, (len(self),))
        what = BatchModification(k, V, pointer(weights), 0 if weights is None else weights.size, pointer(scale),
                                 not check)
        return what, stream, (x, weights, scale)

    def _columns(self, name: str, x: Union[np.ndarray, GpuArray], n: int,
                 stream: Optional[int] = None) -> Tuple[Any, int, Matrix, Optional[int]]:
        """Returns an array that has to exist until the call, the columns of each member, the matrix of all, and
        options->stream. x: what _given() has returned, (c, n) or (c, n, k), c being the members or 1."""
        k = x.shape[2] if x.ndim == 3 else 1
        if isinstance(x, GpuArray):
            x, matrix = members_on_gpu(name, x, n, stream)
            stream = queue(x.stream)
        else:
            x = members(name, x, n)
            matrix = _side_by_side(x)
        if x.shape[0] not in (1, len(self)):
            raise BadArgument(f"{name} must be of {len(self)} members, or 1, not {x.shape[0]}")
        return x, k, matrix, stream

    def _pivots(self, check: bool, function: Any, what: Any, *more: Any) -> np.ndarray:
        """Calls a function that tells the pivots of the members, and returns them, from 0, or -1."""
        pivots = np.zeros(len(self), np.intp)
        try:
            self._call(function, self._handle, what, pointer(pivots), *more)
        except NotPositiveDefinite:
            if check:
                raise
        return pivots - 1

    def _weights(self, weights: Any, k: int) -> np.ndarray:
        """Returns weights (k,) for all members, or (c, k)."""
        weights = real("weights", on_host(weights), FLOAT64)
        return spread("weights", weights, (k,) if weights.ndim < 2 else (len(self), k))

    def downdate(self, x: Any, weights: Any = None, scale: Any = 1.0, check: bool = True) -> np.ndarray:
        """Every A_j becomes scale_j A_j - x_j diag(weights_j) x_j'. As update()."""
        return self.update(x, -1.0 if weights is None else -real("weights", on_host(weights), FLOAT64), scale, check)

    def append(self, X: Any, check: bool = True) -> np.ndarray:
        """Adds p rows and columns to the end of every A_j. As insert()."""
        return self._insert(X, None, check)

    def insert(self, at: Any, X: Any, check: bool = True) -> np.ndarray:
        """Adds p rows and columns to every A_j.

        Parameters
        ----------
        at : int or (c,) array of integers
            The number that the first of them gets, from 0.
        X : (c, n + p, p) or (c, n + 1) array
            The new columns of the new A_j. c may be 1: then X is the same for all.
        check : bool
            Whether a matrix that would not be positive definite raises NotPositiveDefinite, and none changes. If false,
            such matrices keep their rows, and all others get theirs; `orders` tells which.

        Returns
        -------
        As update().
        """
        return self._insert(X, np.atleast_1d(array("at", at)), check)

    def _insert(self, X: Any, at: Optional[np.ndarray], check: bool) -> np.ndarray:
        # The call has no stream: that of X is waited for by the default one.
        X = self._given("X", X, LEGACY)
        n = self.order + (X.shape[2] if X.ndim == 3 else 1)
        X, p, matrix, _ = self._columns("X", X, n, LEGACY)
        if at is not None:
            if at.ndim != 1 or at.dtype.kind not in "iu" or len(at) not in (1, len(self)):
                raise BadArgument(f"at must be an integer, or one for each of {len(self)} members")
            at = at.astype(np.intp)
        what = BatchInsertion(p, matrix, pointer(at), 0 if at is None else len(at), not check)
        return self._pivots(check, lib.batch_insert, byref(what))

    def delete(self, rows: Any) -> None:
        """Deletes rows and columns of every A_j.

        rows: as of Factor.delete(), for all; or a (c, p) array of integers, numbers from 0 for each."""
        if np.ndim(rows) == 2:
            gone = np.sort(array("rows", rows), axis=1)
            if gone.dtype.kind not in "iu" or len(gone) != len(self):
                raise BadArgument(f"rows must have integers for each of {len(self)} members")
            p = gone.shape[1]
        else:
            gone = self._places(rows, self.order)
            p = len(gone)
        gone = np.ascontiguousarray(gone, np.intp)
        self._call(lib.batch_delete, self._handle, p, pointer(gone), gone.size, None)

    def shift(self, source: Any, to: Any) -> None:
        """Row and column `source` of every A_j becomes number `to`, those in between move one step towards where it
        was.

        source, to: integers, from 0, for all; or (c,) arrays of integers."""
        places = [np.atleast_1d(array(name, place)) for name, place in (("source", source), ("to", to))]
        for name, place in zip(("source", "to"), places):
            if place.ndim != 1 or place.dtype.kind not in "iu" or len(place) not in (1, len(self)):
                raise BadArgument(f"{name} must be an integer, or one for each of {len(self)} members")
        count = max(len(place) for place in places) if len(self) else 0
        moved = [np.ascontiguousarray(np.broadcast_to(place, count), np.intp) for place in places]
        self._call(lib.batch_shift, self._handle, pointer(moved[0]), pointer(moved[1]), count, None)

    def solve(self, b: Any, system: str = "A") -> Any:
        """Returns the solutions of A_j x_j = b_j; of L_j x_j = b_j, if system is "forward"; of L_j' x_j = b_j, if it is
        "back".

        b: (c, n) or (c, n, m). The result has its shape, and float64 unless b and the factors are float32."""
        number = system_number(system)
        b = self._given("b", b)
        if isinstance(b, GpuArray):
            return self._solve_on_gpu(b, number)
        rows = np.array(members("b", b, self.order), np.result_type(b, self._dtype), order="C")
        if len(rows) != len(self):
            raise BadArgument(f"b must be of {len(self)} members, not {len(rows)}")
        self._call(lib.batch_solve, self._handle, number, _side_by_side(rows))
        return rows[:, 0] if b.ndim == 2 else rows.swapaxes(1, 2)

    def _solve_on_gpu(self, b: GpuArray, system: int) -> Any:
        # This function has no stream: that of the copy is waited for by the default one.
        require_members("b", b.shape, self.order)
        if b.shape[0] != len(self):
            raise BadArgument(f"b must be of {len(self)} members, not {b.shape[0]}")
        x, matrix = packed_members("b", b, np.result_type(b.dtype, self._dtype), LEGACY)
        self._call(lib.batch_solve, self._handle, system, matrix)
        return x.owner if b.ndim == 2 else library_of(x.owner).turned(x.owner)

    def __reduce__(self) -> Tuple[Any, ...]:
        orders = self.orders
        L = self.to_array()
        given = [one[:n, :n] for one, n in zip(L, orders)] if (orders != self.order).any() else L
        return Batch, (given, True, self._device(), self._threads, self.capacity)
