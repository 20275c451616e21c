import copy
import pickle
import unittest

import numpy as np

import gpucholmod
from gpucholmod import RecursiveLeastSquares


def ridge_fit(X, y, weights, penalty):
    """Returns the coefficients and the minimum of sum w (y - X b)^2 + sum penalty b^2, by lstsq."""
    root = np.sqrt(weights)
    top = root[:, np.newaxis] * X
    right = (root * y.T).T
    A = np.vstack([top, np.diag(np.sqrt(penalty))])
    b = np.concatenate([right, np.zeros((len(penalty), *right.shape[1:]))])
    coef = np.linalg.lstsq(A, b, rcond=None)[0]
    return coef, ((b - A @ coef) ** 2).sum(axis=0)


class Regression(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(8)
        self.X = self.rng.standard_normal((60, 5))
        self.y = self.X @ np.arange(5.0) + self.rng.standard_normal(60)
        self.Y = self.X @ self.rng.standard_normal((5, 3)) + self.rng.standard_normal((60, 3))
        self.w = self.rng.random(60) + 0.5

    def check(self, fit, X, y, weights, penalty, digits=1e-10):
        coef, rss = ridge_fit(X, y, weights, penalty)
        np.testing.assert_allclose(fit.coef, coef, rtol=digits, atol=digits)
        np.testing.assert_allclose(fit.rss, rss, rtol=10 * digits)

    def test_observations_by_the_block_and_one_by_one(self):
        for outputs, y in ((None, self.y), (3, self.Y), (1, self.Y[:, :1])):
            for ridge in (0.0, 0.3, np.arange(5.0)):
                fit = RecursiveLeastSquares(5, ridge=ridge, outputs=outputs)
                fit.update(self.X[:40], y[:40], self.w[:40])
                for i in range(40, 60):
                    fit.update(self.X[i], y[i], self.w[i])
                self.check(fit, self.X, y, self.w, np.broadcast_to(ridge, 5))
                np.testing.assert_allclose(fit.predict(self.X), self.X @ fit.coef)

    def test_removed_observations_leave_nothing(self):
        fit = RecursiveLeastSquares(5, ridge=0.1)
        fit.update(self.X, self.y, self.w)
        fit.remove(self.X[:20], self.y[:20], self.w[:20])
        fit.remove(self.X[20], self.y[20], self.w[20])
        self.check(fit, self.X[21:], self.y[21:], self.w[21:], np.full(5, 0.1))

    def test_forgetting(self):
        fit = RecursiveLeastSquares(5, ridge=2, forgetting=0.9)
        for i in range(60):
            fit.update(self.X[i], self.y[i])
        faded = 0.9 ** np.arange(59, -1, -1)
        self.check(fit, self.X, self.y, faded, np.full(5, 2 * 0.9**60))
        fit.forget(0.5)
        self.check(fit, self.X, self.y, 0.5 * faded, np.full(5, 0.9**60))
        many = RecursiveLeastSquares(5, ridge=1, outputs=3)
        many.update(self.X, self.Y)
        many.forget(0.25)
        self.check(many, self.X, self.Y, np.full(60, 0.25), np.full(5, 0.25))

    def test_float32(self):
        fit = RecursiveLeastSquares(5, ridge=1, dtype=np.float32)
        fit.update(self.X, self.y)
        self.assertEqual(fit.factor.dtype, np.float32)
        self.check(fit, self.X, self.y, np.ones(60), np.ones(5), 1e-4)

    def test_too_few_observations(self):
        fit = RecursiveLeastSquares(5)
        fit.update(self.X[:3], self.y[:3])
        with self.assertRaises(gpucholmod.BadDiagonal):
            fit.coef
        fit.update(self.X[3:], self.y[3:])
        self.check(fit, self.X, self.y, np.ones(60), np.zeros(5))

    def test_what_fails_changes_nothing(self):
        fit = RecursiveLeastSquares(5, ridge=1)
        fit.update(self.X, self.y)
        coef, rss = fit.coef, fit.rss
        with self.assertRaises(gpucholmod.NotPositiveDefinite):
            fit.remove(100 * self.X, self.y)
        bad = self.y.copy()
        bad[7] = np.nan
        for call in (lambda: fit.update(self.X, bad), lambda: fit.update(self.X, self.y[:-1]),
                     lambda: fit.update(self.X[:, :4], self.y), lambda: fit.update(self.X, self.Y),
                     lambda: fit.forget(0), lambda: fit.forget(1.5), lambda: RecursiveLeastSquares(5, ridge=-1),
                     lambda: RecursiveLeastSquares(5, ridge=[1, 2]), lambda: RecursiveLeastSquares(5, forgetting=0)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            RecursiveLeastSquares(5, ridge=1, dtype=np.int32)
        np.testing.assert_array_equal(fit.coef, coef)
        self.assertEqual(fit.rss, rss)

    def test_copies(self):
        fit = RecursiveLeastSquares(5, ridge=1, outputs=3)
        fit.update(self.X[:30], self.Y[:30])
        for other in (copy.copy(fit), copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
            other.update(self.X[30:], self.Y[30:])
            self.check(other, self.X, self.Y, np.ones(60), np.ones(5))
        self.check(fit, self.X[:30], self.Y[:30], np.ones(30), np.ones(5))


if __name__ == "__main__":
    unittest.main()
