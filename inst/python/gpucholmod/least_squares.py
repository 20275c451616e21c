"""Recursive least squares."""

from __future__ import annotations

import copy
from ctypes import byref
from typing import Any, List, Optional, Tuple, Union

import numpy as np

from ._arrays import FLOAT64, TYPES, address, by_columns, real
from ._libraries import is_on_gpu, on_host
from ._library import RightSides
from .errors import BadArgument
from .factor import Factor


class RecursiveLeastSquares:
    """A linear regression that observations are added to and removed from, in O(p^2) operations each.

    It minimises sum_i w_i (y_i - x_i' coef)^2 + ridge |coef|^2. It keeps the factor R of X' W X + ridge I, z with
    R' z = X' W y, and the residual sum of squares, and changes all three by one call: no inverse, and no drift as from
    the formula of Sherman and Morrison.

    Parameters
    ----------
    p : int
        Regressors.
    ridge : float or (p,) array
        The penalty, not negative. With 0, `coef` raises BadDiagonal until there are observations enough.
    outputs : int, optional
        m responses of each observation: y is (k, m), and `coef` (p, m). None: one, without that dimension.
    forgetting : float
        What all weights, and the ridge, are multiplied by before each update(). Above 0, at most 1.
    dtype : float32 or float64
        Of the factor; z and rss are float64.
    device, threads
        As of Factor.

    X, y and weights may also be arrays on the GPU of the factor. `coef`, `rss` and predict() are of the host.

    After an exception everything is as it was, unless the exception is HalfModified. A regression can be copied and
    pickled.
    """

    def __init__(self, p: int, ridge: Any = 0.0, outputs: Optional[int] = None, forgetting: float = 1.0,
                 dtype: Any = np.float64, device: Union[str, int] = "host", threads: Optional[int] = None):
        ridge = real("ridge", ridge, FLOAT64)
        if ridge.ndim > 1 or ridge.ndim == 1 and len(ridge) != p or not (ridge >= 0).all():
            raise BadArgument("ridge must be a number or have shape (p,), and not be negative")
        if np.dtype(dtype) not in TYPES:
            raise TypeError(f"dtype must be float64 or float32, not {np.dtype(dtype)}")
        self.forgetting = self._require_forgetting(forgetting)
        self._outputs = outputs
        root = np.sqrt(np.broadcast_to(ridge, (p,))).astype(dtype)
        self._factor = Factor(np.diag(root), device=device, threads=threads)
        m = 1 if outputs is None else outputs
        self._z = np.zeros((p, m), order="F")
        self._rss = np.zeros(m)

    @staticmethod
    def _require_forgetting(forgetting: float) -> float:
        if not 0 < forgetting <= 1:
            raise BadArgument(f"forgetting must be above 0 and at most 1, not {forgetting}")
        return float(forgetting)

    @property
    def factor(self) -> Factor:
        """The factor of X' W X + ridge I. To change it is to break the regression."""
        return self._factor

    @property
    def coef(self) -> np.ndarray:
        """The coefficients, (p,) or (p, m). Raises BadDiagonal if the observations do not determine them."""
        return self._like_y(self._factor.solve(self._z, "back"))

    @property
    def rss(self) -> Union[float, np.ndarray]:
        """The minimum, sum_i w_i (y_i - x_i' coef)^2 + ridge |coef|^2: a number, or (m,). NaN if more was removed than
        there was."""
        return float(self._rss[0]) if self._outputs is None else self._rss.copy()

    def predict(self, X: Any) -> np.ndarray:
        """Returns X coef, for X (k, p) or (p,)."""
        return real("X", X) @ self.coef

    def update(self, X: Any, y: Any, weights: Any = None) -> None:
        """Adds observations. X: (k, p), y: (k,) or (k, m), weights: a number or (k,), or None: 1.

        One observation may be X: (p,), y: a number or (m,). In C order X is not copied."""
        self._change(X, y, weights, self.forgetting, False)

    def remove(self, X: Any, y: Any, weights: Any = None) -> None:
        """Removes observations, with the weights that they have by now. Raises NotPositiveDefinite if the others do not
        determine the coefficients."""
        self._change(X, y, weights, 1.0, True)

    def forget(self, forgetting: float) -> None:
        """Multiplies the weights of all observations, and the ridge, by `forgetting`, above 0 and at most 1."""
        p, m = self._z.shape
        self._change(np.empty((0, p)), np.empty(0 if self._outputs is None else (0, m)), None,
                     self._require_forgetting(forgetting), False)

    def __copy__(self) -> RecursiveLeastSquares:
        return copy.deepcopy(self)

    def _change(self, X: Any, y: Any, weights: Any, scale: float, remove: bool) -> None:
        p, m = self._z.shape
        X = X if is_on_gpu(X) else real("X", X)
        X = X[None] if X.ndim == 1 else X
        if X.ndim != 2 or X.shape[1] != p:
            raise BadArgument(f"X must have shape (k, {p}) or ({p},), not {X.shape}")
        y = real("y", on_host(y), FLOAT64)
        if y.shape not in self._shapes_of_y(X.shape[0]):
            raise BadArgument(f"y must have shape {self._shapes_of_y(X.shape[0])[0]}, not {y.shape}")
        y = np.array(y.reshape(X.shape[0], m), order="F")
        sides = RightSides(by_columns(self._z), by_columns(y), address(self._rss))
        self._factor._update(X.T, weights, scale, remove, byref(sides))

    def _shapes_of_y(self, k: int) -> List[Tuple[int, ...]]:
        own = () if self._outputs is None else (self._outputs,)
        return [(k, *own), own] if k == 1 else [(k, *own)]

    def _like_y(self, b: np.ndarray) -> np.ndarray:
        return b[:, 0] if self._outputs is None else b
