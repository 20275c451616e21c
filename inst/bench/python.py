"""What the Python package costs beside what NumPy users do without it: calls, and programs as in its README.md.

    GPUCHOLMOD_LIBRARY=build/library/libgpucholmod.so PYTHONPATH=inst/python python3 inst/bench/python.py \\
        [--seconds=S] [--most=N] [--only=calls,loop,many,ridge,bandit,process,gpu,batch]

Times are those of the quickest block of calls, in microseconds; S: the least time that each is measured for
(0.3). N: the largest order (1000; 5000 has more of the section gpu). Prints a line for each number.
"""

import argparse
import ctypes
import time

import numpy as np
import scipy.linalg

import gpucholmod
from gpucholmod import _arrays, _gpu, _library


def time_of(work, seconds):
    """Returns the microseconds of a call of work()."""
    work()
    began = time.perf_counter()
    work()
    count = max(1, int(seconds / 20 / (time.perf_counter() - began + 1e-9)))
    blocks = []
    end = time.perf_counter() + seconds
    while not blocks or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(count):
            work()
        blocks.append((time.perf_counter() - began) / count * 1e6)
    return min(blocks)


def tell(what, microseconds):
    print(f"{what:70s} {microseconds:14.1f} us")


def factor_of(rng, n, dtype=np.float64):
    """Returns A = B'B + I and its factor, for B uniform in [0, 1)."""
    B = rng.random((n, n))
    A = B.T @ B + np.eye(n)
    return A.astype(dtype), np.linalg.cholesky(A).astype(dtype)


def rank_one_in_python(L, x):
    """Returns the factor of L L' + x x', a rotation for each column."""
    L, x = L.copy(), x.copy()
    for j in range(len(x)):
        r = np.hypot(L[j, j], x[j])
        c, s = L[j, j] / r, x[j] / r
        L[j:, j], x[j:] = c * L[j:, j] + s * x[j:], c * x[j:] - s * L[j:, j]
    return L


def calls(options, rng):
    """The package's calls beside the call of the library that they make."""
    for n in (32, 128):
        _, L = factor_of(rng, n)
        x = 1e-3 * rng.random(n)
        place = L.copy()
        R, V = _arrays.by_either(place)[0], _arrays.columns("x", x, n)[1]
        chosen, status = _library.options(_library.UPPER, None), ctypes.byref(_library.Status())
        update = _library.lib.update
        bare = time_of(lambda: update(R, V, None, 1.0, None, chosen, status), options.seconds)
        tell(f"n = {n}, k = 1: the library's function by ctypes, in place", bare)
        tell(f"n = {n}, k = 1: cholupdate(L, x)", time_of(lambda: gpucholmod.cholupdate(L, x), options.seconds))
        tell(f"n = {n}, k = 1: cholupdate(L, x, out=L)",
             time_of(lambda: gpucholmod.cholupdate(place, x, out=place), options.seconds))
        f = gpucholmod.Factor(L)
        tell(f"n = {n}, k = 1: Factor.update(x)", time_of(lambda: f.update(x), options.seconds))


def loop(options, rng):
    """A rank-one loop in Python, refactoring, and cholupdate()."""
    for n in [size for size in (32, 100, 300, 1000) if size <= options.most]:
        A, L = factor_of(rng, n)
        x = rng.standard_normal(n)
        tell(f"n = {n}, k = 1: loop in Python", time_of(lambda: rank_one_in_python(L, x), options.seconds))
        tell(f"n = {n}, k = 1: numpy.linalg.cholesky(A + outer(x, x))",
             time_of(lambda: np.linalg.cholesky(A + np.outer(x, x)), options.seconds))
        tell(f"n = {n}, k = 1: cholupdate(L, x)", time_of(lambda: gpucholmod.cholupdate(L, x), options.seconds))
    A, L = factor_of(rng, min(64, options.most))
    X = rng.standard_normal((14, len(A)))

    def one_by_one():
        R = L
        for row in X:
            R = rank_one_in_python(R, row)
        return R

    tell(f"n = {len(A)}, k = 14: loop in Python", time_of(one_by_one, options.seconds))
    tell(f"n = {len(A)}, k = 14: numpy.linalg.cholesky(A + X.T @ X)",
         time_of(lambda: np.linalg.cholesky(A + X.T @ X), options.seconds))
    tell(f"n = {len(A)}, k = 14: cholupdate(L, X.T)", time_of(lambda: gpucholmod.cholupdate(L, X.T), options.seconds))


def many(options, rng):
    """Many factors, of which each gets a column."""
    for count, n in ((options.most, 4), (options.most, 16)):
        B = rng.random((count, n, n))
        A = B @ B.swapaxes(1, 2) + np.eye(n)
        L, x = np.linalg.cholesky(A), 1e-3 * rng.random((count, n))
        batch = gpucholmod.Batch(L)
        for name, work in (("numpy.linalg.cholesky(A + x x')",
                            lambda: np.linalg.cholesky(A + x[..., np.newaxis] * x[:, np.newaxis])),
                           ("cholupdate(L, x)", lambda: gpucholmod.cholupdate(L, x)),
                           ("Batch.update(x)", lambda: batch.update(x))):
            tell(f"{count} factors of n = {n}, k = 1: {name}", time_of(work, options.seconds))


def ridge(options, rng):
    """Recursive ridge regression in blocks of 16 rows: an update and the coefficients, beside refactoring."""
    p, k = min(500, options.most), 16
    X, y = rng.standard_normal((k, p)), rng.standard_normal(k)
    fit = gpucholmod.RecursiveLeastSquares(p, ridge=1.0)
    A, b = np.eye(p), np.zeros(p)

    def ours():
        fit.update(X, y)
        return fit.coef

    def again():
        nonlocal A, b
        A, b = A + X.T @ X, b + X.T @ y
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, lower=True), b)

    tell(f"p = {p}, 16 rows: X'X and cho_factor, cho_solve", time_of(again, options.seconds))
    tell(f"p = {p}, 16 rows: RecursiveLeastSquares.update() and coef", time_of(ours, options.seconds))


def bandit(options, rng):
    """A linear bandit's estimate after many steps, by an inverse that Sherman and Morrison's formula updates, and by a
    factor. The features have mean 10 and standard deviation 1."""
    p, steps = 20, 100 * options.most
    for dtype in (np.float32, np.float64):
        X = (10 + rng.standard_normal((steps, p))).astype(dtype)
        y = (X @ np.ones(p) + 0.01 * rng.standard_normal(steps)).astype(dtype)
        ridge = 1.0
        A, b = X.T.astype(np.float64) @ X + ridge * np.eye(p), X.T.astype(np.float64) @ y
        truth = np.linalg.solve(A, b)
        inverse, sums = (np.eye(p) / ridge).astype(dtype), np.zeros(p, dtype)
        began = time.perf_counter()
        for row, response in zip(X, y):
            u = inverse @ row
            inverse -= np.outer(u, u) / (1 + row @ u)
            sums += response * row
        middle = time.perf_counter()
        fit = gpucholmod.RecursiveLeastSquares(p, ridge=ridge, dtype=dtype)
        for row, response in zip(X, y):
            fit.update(row, response)
        end = time.perf_counter()
        for name, coef, seconds in (("Sherman and Morrison", inverse @ sums, middle - began),
                                    ("RecursiveLeastSquares", fit.coef, end - middle)):
            error = np.linalg.norm(coef - truth) / np.linalg.norm(truth)
            tell(f"p = {p}, {steps} steps, {np.dtype(dtype)}: {name}, error {error:.0e}", seconds / steps * 1e6)


def process(options, rng):
    """A Gaussian process that grows by a point at a time, and predicts: a factor that grows, beside refactoring."""
    n, grown = options.most // 2, options.most
    points = rng.random((grown, 2))
    K = np.exp(-8 * ((points[:, np.newaxis] - points) ** 2).sum(axis=2)) + 1e-4 * np.eye(grown)
    y = rng.standard_normal(grown)

    def again():
        for i in range(n, grown):
            L = np.linalg.cholesky(K[:i + 1, :i + 1])
            mean = scipy.linalg.cho_solve((L, True), y[:i + 1])
        return mean

    def ours():
        factor = gpucholmod.Factor(L, capacity=grown)
        for i in range(n, grown):
            factor.append(K[:i + 1, i])
            mean = factor.solve(y[:i + 1])
        return mean

    L = np.linalg.cholesky(K[:n, :n])
    began = time.perf_counter()
    one = again()
    middle = time.perf_counter()
    other = ours()
    end = time.perf_counter()
    steps = grown - n
    tell(f"from {n} to {grown} points: numpy.linalg.cholesky and cho_solve", (middle - began) / steps * 1e6)
    tell(f"from {n} to {grown} points: Factor.append() and solve()", (end - middle) / steps * 1e6)
    residual = [np.linalg.norm(K @ mean - y) / np.linalg.norm(y) for mean in (one, other)]
    print(f"    |K mean - y| / |y|: {residual[0]:.0e} and {residual[1]:.0e}")


def torch_on_gpu():
    """Returns torch, or None, after a line that tells why its GPU cannot be used."""
    try:
        import torch
        gpucholmod.Factor(np.eye(1), device="gpu")
    except (ImportError, gpucholmod.BackendUnavailable) as problem:
        print(f"gpu: {problem}")
        return None
    if not torch.cuda.is_available():
        print("gpu: torch has no GPU")
        return None
    print(f"gpu: {torch.cuda.get_device_name()}, torch {torch.__version__}")
    return torch


def gpu(options, rng):
    """Factors and 16 columns in the memory of a GPU: whole calls, beside refactoring by torch and updates by JAX."""
    torch = torch_on_gpu()
    for n in [size for size in (1000, 5000) if torch and size <= options.most]:
        X = torch.from_numpy(rng.standard_normal((16, n)) / np.sqrt(n)).cuda()
        B = torch.from_numpy(rng.standard_normal((n, n)) / np.sqrt(n)).cuda()
        A = B @ B.T + torch.eye(n, dtype=B.dtype, device="cuda")
        L = torch.linalg.cholesky(A).contiguous()
        on_gpu(options, torch, A, L, X)
        by_jax(options, L, X)


def on_gpu(options, torch, A, L, X):
    def tell_of(name, work):
        def whole():
            work()
            torch.cuda.synchronize()
        tell(f"n = {len(L)}, k = {len(X)}: {name}", time_of(whole, options.seconds))

    place, f = L.clone(), gpucholmod.Factor(L)
    R, V = _gpu.either_on_gpu(_gpu.view("L", place))[0], _gpu.columns_on_gpu("x", X.T, len(L))[1]
    chosen, status = _library.options(_library.UPPER, None, _library.ANY_GPU), ctypes.byref(_library.Status())
    update = _library.lib.update
    tell_of("the library's function by ctypes, in place", lambda: update(R, V, None, 1.0, None, chosen, status))
    tell_of("cholupdate(L, X.T, out=L)", lambda: gpucholmod.cholupdate(place, X.T, out=place))
    tell_of("cholupdate(L, X.T)", lambda: gpucholmod.cholupdate(L, X.T))
    tell_of("torch.clone(L)", lambda: L.clone())
    by_columns = torch.linalg.cholesky(A)  # lower, in Fortran order
    tell_of("cholupdate(L, X.T), L in Fortran order", lambda: gpucholmod.cholupdate(by_columns, X.T))
    tell_of("cholupdate(L, X.T, out=L), L in Fortran order",
            lambda: gpucholmod.cholupdate(by_columns, X.T, out=by_columns))
    tell_of("Factor.update(X.T)", lambda: f.update(X.T))
    tell_of("torch.linalg.cholesky(A + X.T @ X)", lambda: torch.linalg.cholesky(A + X.T @ X))
    again = torch.linalg.cholesky(A + X.T @ X)
    error = torch.linalg.norm(gpucholmod.cholupdate(L, X.T) - again) / torch.linalg.norm(again)
    print(f"    |cholupdate(L, X.T) - torch's factor| / |torch's factor|: {float(error):.0e}")


def by_jax(options, L, X):
    """Rank-one updates by JAX, in one function that it has compiled."""
    try:
        import jax
        jax.config.update("jax_enable_x64", True)
        place = jax.devices("gpu")[0]
    except (ImportError, RuntimeError) as problem:
        print(f"JAX: {str(problem).splitlines()[0]}")
        return
    R, rows = jax.device_put(L.T.cpu().numpy(), place), jax.device_put(X.cpu().numpy(), place)

    @jax.jit
    def one_by_one(R, rows):
        for row in rows:
            R = jax.lax.linalg.cholesky_update(R, row)
        return R

    tell(f"n = {len(L)}, k = {len(X)}: jax.lax.linalg.cholesky_update, {len(X)} times",
         time_of(lambda: one_by_one(R, rows).block_until_ready(), options.seconds))
    left = jax.numpy.asarray(R.T)
    tell(f"n = {len(L)}, k = {len(X)}: cholupdate(L, X.T), arrays of JAX",
         time_of(lambda: gpucholmod.cholupdate(left, rows.T).block_until_ready(), options.seconds))


def batch(options, rng):
    """Many factors on a GPU, updated by columns from either memory, beside refactoring by torch, which has all
    there."""
    torch = torch_on_gpu()
    sizes = ((32, 1, 100000), (64, 8, 20000), (128, 16, 4000), (200, 1, 3000), (256, 16, 2000), (512, 4, 500))
    for n, k, count in [size for size in sizes if torch and size[0] <= options.most]:
        A, L = factor_of(rng, n)
        factors = gpucholmod.Batch(np.broadcast_to(L, (count, n, n)), device="gpu")
        X = rng.standard_normal((count, k, n)) / np.sqrt(n)
        tell(f"{count} of {n} x {n}: Batch.update, {k} columns each, from the host",
             time_of(lambda: factors.update(X.swapaxes(1, 2)), options.seconds))
        tell("    Batch.update with a scale, from the host",
             time_of(lambda: factors.update(X.swapaxes(1, 2), scale=0.5), options.seconds))
        A, X = torch.from_numpy(A).expand(count, n, n).cuda(), torch.from_numpy(X).cuda()
        tell("    Batch.update, the columns on the GPU", time_of(lambda: factors.update(X.mT), options.seconds))
        tell("    Batch.update with a scale, the columns on the GPU",
             time_of(lambda: factors.update(X.mT, scale=0.5), options.seconds))
        b = X[:, 0]
        tell("    Batch.solve, a right-hand side each on the GPU", time_of(lambda: factors.solve(b), options.seconds))

        def refactor():
            torch.linalg.cholesky(torch.baddbmm(A, X.mT, X))
            torch.cuda.synchronize()

        tell("    torch.linalg.cholesky(torch.baddbmm(A, X.mT, X)), A and X there", time_of(refactor, options.seconds))


def main():
    sections = {f.__name__: f for f in (calls, loop, many, ridge, bandit, process, gpu, batch)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--only", default=",".join(sections))
    options = parser.parse_args()
    for name in options.only.split(","):
        sections[name](options, np.random.default_rng(1))


if __name__ == "__main__":
    main()
