"""Many factors that are modified together."""

from __future__ import annotations

from ctypes import byref
from typing import Any, Optional, Tuple, Union

import numpy as np

from ._arrays import FLOAT64, TYPES, address, members, packed, pointer, real, spread
from ._handle import Handle, device_number, system_number
from ._library import LOWER, UPPER, BatchModification, Matrix, lib, options
from .errors import BadArgument, NotPositiveDefinite


def _side_by_side(rows: np.ndarray) -> Matrix:
    """Returns rows (c, k, n) in C order as a matrix of n x k c."""
    c, k, n = rows.shape
    return Matrix(address(rows), n, c * k, n, TYPES[rows.dtype])


class Batch(Handle):
    """The Cholesky factors of c matrices A_j = L_j L_j' (n x n), which change in place, together.

    Parameters
    ----------
    L : (c, n, n) array
        The factors, which are copied. float32 or float64 decides what is computed in; integers become float64.
    lower : bool
        Which triangle of each is the factor. The other one is not read.
    device : "host", "gpu" or int
        Where the factors are stored, as of Factor.
    threads : int, optional
        The most threads that compute. None: as many as are of use.

    After an exception the factors are as they were, unless the exception is HalfModified; `member` is the number of the
    matrix that it is about. A batch can be copied and pickled.
    """

    _kind = "batch"

    def __init__(self, L: Any, lower: bool = True, device: Union[str, int] = "host", threads: Optional[int] = None):
        L = real("L", L)
        if L.ndim != 3 or L.shape[1] != L.shape[2]:
            raise BadArgument(f"L must have shape (c, n, n), not {L.shape}")
        L = packed(L)
        self._prepare(L.dtype, device_number(device), threads)
        self._make("create", _side_by_side(L), len(L), options(UPPER if lower else LOWER, device=self._number),
                   turned=True)

    @property
    def order(self) -> int:
        """n, the rows and columns of each matrix."""
        return lib.batch_order(self._handle)

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
        transposes if `lower` is false."""
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
        rows = members("x", x, self.order)
        count, k = len(self), rows.shape[1]
        if len(rows) not in (1, count):
            raise BadArgument(f"x must be of {count} members, or 1, not {len(rows)}")
        weights = None if weights is None else self._weights(weights, k)
        scale = spread("scale", scale, (count,))
        what = BatchModification(k, _side_by_side(rows), pointer(weights), 0 if weights is None else weights.size,
                                 pointer(scale), not check)
        pivots = np.zeros(count, np.intp)
        try:
            self._call(lib.batch_update, self._handle, byref(what), pointer(pivots), self._options)
        except NotPositiveDefinite:
            if check:
                raise
        return pivots - 1

    def _weights(self, weights: Any, k: int) -> np.ndarray:
        """Returns weights (k,) for all members, or (c, k)."""
        weights = real("weights", weights, FLOAT64)
        return spread("weights", weights, (k,) if weights.ndim < 2 else (len(self), k))

    def downdate(self, x: Any, weights: Any = None, scale: Any = 1.0, check: bool = True) -> np.ndarray:
        """Every A_j becomes scale_j A_j - x_j diag(weights_j) x_j'. As update()."""
        return self.update(x, -1.0 if weights is None else -real("weights", weights, FLOAT64), scale, check)

    def solve(self, b: Any, system: str = "A") -> np.ndarray:
        """Returns the solutions of A_j x_j = b_j; of L_j x_j = b_j, if system is "forward"; of L_j' x_j = b_j, if it is
        "back".

        b: (c, n) or (c, n, m). The result has its shape, and float64 unless b and the factors are float32."""
        number = system_number(system)
        b = real("b", b)
        rows = np.array(members("b", b, self.order), np.result_type(b, self._dtype), order="C")
        if len(rows) != len(self):
            raise BadArgument(f"b must be of {len(self)} members, not {len(rows)}")
        self._call(lib.batch_solve, self._handle, number, _side_by_side(rows))
        return rows[:, 0] if b.ndim == 2 else rows.swapaxes(1, 2)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Batch, (self.to_array(), True, self._device(), self._threads)
