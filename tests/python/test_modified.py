import unittest

import numpy as np

import gpucholmod
from cases import bits, off_alignment, positive_definite
from gpucholmod import Batch, Factor, solve_modified
from gpucholmod import _library, modified


class Solutions(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(9)
        self.A = positive_definite(self.rng, 12)
        self.L = np.linalg.cholesky(self.A)
        self.w = np.array([1.0, -1e-3, 0.5])

    def matrices(self, x, w, scale):
        x = x[..., np.newaxis] if x.ndim == 2 else x
        scale = np.broadcast_to(scale, len(x))
        return [s * self.A + (columns * w) @ columns.T for columns, s in zip(x, scale)]

    def check(self, L, x, b, w, scale, **arguments):
        before = bits(x, b)
        made = solve_modified(L, x, b, w, scale, **arguments)
        for j, A in enumerate(self.matrices(x, 1 if w is None else w, scale)):
            right = b[j] if b.ndim == 3 else b
            np.testing.assert_allclose(A @ made.solution[j], right, rtol=1e-9, atol=1e-9)
            expected = np.einsum("i...,i...->...", right, np.linalg.solve(A, right))
            np.testing.assert_allclose(made.quadratic[j], expected, rtol=1e-9)
            self.assertAlmostEqual(made.logdet[j], np.linalg.slogdet(A)[1], 9)
        np.testing.assert_array_equal(made.pivot, np.full(len(x), -1))
        self.assertEqual(bits(x, b), before)

    def test_factors_and_arrays_of_all_shapes(self):
        one, many = self.rng.standard_normal((4, 12)), self.rng.standard_normal((4, 12, 3))
        turned = np.ascontiguousarray(many.swapaxes(1, 2)).swapaxes(1, 2)
        for L, arguments in ((self.L, {}), (np.asfortranarray(self.L), {}), (self.L.T, {"lower": False}),
                             (np.kron(self.L, np.ones((2, 2)))[::2, ::2], {}), (Factor(self.L), {})):
            for shape in ((12,), (12, 2), (4, 12, 2)):
                b = self.rng.standard_normal(shape)
                self.check(L, one, b, None, 1.0, **arguments)
                self.check(L, many, b, self.w, np.arange(1.0, 5), **arguments)
                self.check(L, turned, b, self.w, 2.0, threads=1, **arguments)

    def test_right_hand_sides_off_their_alignment(self):
        x = self.rng.standard_normal((4, 12))
        for b in (self.rng.standard_normal(12), self.rng.standard_normal((12, 2))):
            off = off_alignment(b.T).T
            self.check(self.L, x, off, None, 1.0)
            *_, rows = modified._right_sides(_library.Modifications(), off, 12, 4)
            self.assertTrue(rows.flags.aligned and rows.flags.c_contiguous)
            np.testing.assert_array_equal(rows, b.T)

    def test_determinants_alone(self):
        x = self.rng.standard_normal((5, 12))
        made = solve_modified(self.L, x)
        self.assertIsNone(made.solution)
        self.assertIsNone(made.quadratic)
        np.testing.assert_allclose(made.logdet, [np.linalg.slogdet(A)[1] for A in self.matrices(x, 1, 1)])
        self.assertEqual(solve_modified(self.L, np.empty((0, 12))).logdet.shape, (0,))

    def test_a_modification_that_is_not_positive_definite(self):
        x, b = np.full((3, 12), 1e-3), np.ones(12)
        x[1, 4] = 100
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
            solve_modified(self.L, x, b, -1)
        self.assertEqual((caught.exception.member, caught.exception.pivot), (1, 4))
        made = solve_modified(self.L, x, b, -1, check=False)
        np.testing.assert_array_equal(made.pivot, [-1, 4, -1])
        for numbers in (made.solution[:, 0], made.quadratic, made.logdet):
            np.testing.assert_array_equal(np.isnan(numbers), [False, True, False])
        np.testing.assert_allclose((self.A - np.outer(x[2], x[2])) @ made.solution[2], b)

    def test_wrong_arguments(self):
        x, b = np.ones((2, 12)), np.ones(12)
        for call in (lambda: solve_modified(self.L, np.ones(12), b), lambda: solve_modified(self.L, x[:, :5], b),
                     lambda: solve_modified(self.L, x, b[:5]), lambda: solve_modified(self.L, x, np.ones((3, 12, 1))),
                     lambda: solve_modified(self.L, x, b, [1, 2, 3]),
                     lambda: solve_modified(self.L, x, b, 1, [1, 2, 3]),
                     lambda: solve_modified(self.L, x, b, 1, 0), lambda: solve_modified(np.ones((2, 3)), x, b),
                     lambda: solve_modified(self.L, x * np.nan, b), lambda: solve_modified(self.L, x, b * np.nan)):
            with self.assertRaises(ValueError):
                call()


class SolutionsOfMembers(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(10)
        self.A = np.stack([positive_definite(self.rng, 7) for _ in range(11)])
        self.L = np.linalg.cholesky(self.A)

    def test_each_member_has_its_modification(self):
        w, scale = np.array([1.0, -1e-3, 0.5]), np.arange(1.0, 12)
        for dtype, off in ((np.float64, 1e-9), (np.float32, 1e-3)):
            batch = Batch(self.L.astype(dtype))
            before = batch.to_array()
            for x in (self.rng.standard_normal((11, 7, 3)), self.rng.standard_normal((1, 7, 3))):
                matrices = scale[:, None, None] * self.A + (x * w) @ x.swapaxes(1, 2)
                for shape in ((7,), (7, 2), (11, 7, 2)):
                    b = self.rng.standard_normal(shape)
                    made = solve_modified(batch, x, b, w, scale, threads=2)
                    for j, A in enumerate(matrices):
                        right = b[j] if b.ndim == 3 else b
                        expected = np.linalg.solve(A, right)
                        np.testing.assert_allclose(made.solution[j], expected, rtol=off, atol=off)
                        np.testing.assert_allclose(made.quadratic[j], np.einsum("i...,i...->...", right, expected), off)
                        self.assertAlmostEqual(made.logdet[j] / np.linalg.slogdet(A)[1], 1, 4)
                    np.testing.assert_array_equal(made.pivot, np.full(11, -1))
            np.testing.assert_array_equal(batch.to_array(), before)
            made = solve_modified(batch, x)
            self.assertIsNone(made.solution)
            np.testing.assert_allclose(made.logdet, np.linalg.slogdet(self.A + x @ x.swapaxes(1, 2))[1], 1e-5)

    def test_a_member_that_is_not_positive_definite(self):
        x, b, batch = np.full((11, 7), 1e-3), np.ones(7), Batch(self.L)
        x[4, 2] = 100
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
            solve_modified(batch, x, b, -1)
        self.assertEqual((caught.exception.member, caught.exception.pivot), (4, 2))
        made = solve_modified(batch, x, b, -1, check=False)
        np.testing.assert_array_equal(made.pivot, np.where(np.arange(11) == 4, 2, -1))
        for numbers in (made.solution[:, 0], made.quadratic, made.logdet):
            np.testing.assert_array_equal(np.isnan(numbers), np.arange(11) == 4)

    def test_wrong_arguments(self):
        x, b, batch = np.ones((11, 7)), np.ones(7), Batch(self.L)
        for call in (lambda: solve_modified(batch, x[:3], b), lambda: solve_modified(batch, x[:, :5], b),
                     lambda: solve_modified(batch, x, b[:5]), lambda: solve_modified(batch, x, np.ones((3, 7, 1))),
                     lambda: solve_modified(batch, x, b, 1, [1, 2, 3]), lambda: solve_modified(batch, x, b, 1, 0),
                     lambda: solve_modified(batch, x * np.nan, b), lambda: solve_modified(batch, x, b * np.nan)):
            with self.assertRaises(ValueError):
                call()


if __name__ == "__main__":
    unittest.main()
