"""What the tests share."""

import importlib

import numpy as np

from gpucholmod import Factor

SIZES = (0, 1, 2, 7, 33, 131)


def positive_definite(rng, n):
    """Returns B'B + I (n, n) for B uniform in [0, 1)."""
    B = rng.random((n, n))
    return B.T @ B + np.eye(n)


def factor_of(rng, n, dtype=np.float64, lower=True):
    """Returns the factor of such a matrix."""
    L = np.linalg.cholesky(positive_definite(rng, n)).astype(dtype)
    return L if lower else np.ascontiguousarray(L.T)


def in_full(L, lower=True):
    """Returns L (n, n) as numbers of more digits, lower, with zeros above the diagonal."""
    return np.tril(L if lower else L.T).astype(np.longdouble)


def norm(A):
    """Returns the 1-norm; 0 of nothing."""
    return float(np.abs(A).sum(axis=0).max(initial=0))


def ratio(made, L, x, weights=None, scale=1.0, lower=True):
    """Returns ||A1 - (s A + X W X')||_1 / ((n + k) eps (||s A||_1 + ||X |W| X'||_1)), A = L L', A1 = made made'."""
    eps = float(np.finfo(made.dtype).eps)  # times 1e-300, a float32 would be 0
    made, L = in_full(made, lower), in_full(L, lower)
    X = np.asarray(x, np.longdouble)
    X = X[:, np.newaxis] if X.ndim == 1 else X
    w = np.ones(X.shape[1]) if weights is None else np.broadcast_to(weights, X.shape[1])
    A, added, taken = scale * (L @ L.T), (X * w) @ X.T, (X * np.abs(w)) @ X.T
    return norm(made @ made.T - (A + added)) / ((len(L) + X.shape[1]) * eps * max(norm(A) + norm(taken), 1e-300))


def off_alignment(x):
    """Returns a copy of x in C order whose numbers are one byte off their alignment."""
    off = np.frombuffer(bytearray(1 + x.nbytes), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    off[...] = x
    return off


def bits(*arrays):
    """Returns the bytes of arrays, to see whether they have changed."""
    return [np.asarray(x).tobytes() for x in arrays]


def missing(name):
    """Returns why a library has no GPU that can be used here, or None."""
    try:
        Factor(np.eye(1), device="gpu")
        library = importlib.import_module(name)
        if name == "torch":
            return None if library.cuda.is_available() else "torch has no GPU"
        if name == "cupy":
            return None if library.cuda.runtime.getDeviceCount() else "CuPy has no GPU"
        library.config.update("jax_enable_x64", True)
        return None if library.devices("gpu") else "JAX has no GPU"
    except Exception as problem:  # each library has exceptions of its own for that
        return str(problem)
