import unittest

import numpy as np

import gpucholmod
from cases import SIZES, bits, factor_of, ratio
from gpucholmod import cholupdate

DTYPES = (np.float32, np.float64)


def layouts(L):
    """Returns copies of L (n, n) in C and Fortran order, parts of larger arrays in either, and one with gaps."""
    n = len(L)
    wide = np.full((n + 3, n + 2), np.nan, L.dtype)
    tall = np.full((n + 2, n + 3), np.nan, L.dtype, order="F")
    gaps = np.full((2 * n, 2 * n), np.nan, L.dtype)
    parts = {"part, C": wide[1:n + 1, 2:], "part, F": tall[2:, 1:n + 1], "gaps": gaps[::2, ::2]}
    for part in parts.values():
        part[...] = L
    return {"C": np.array(L, order="C"), "F": np.array(L, order="F"), **parts}


class Results(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(1)

    def test_the_factor_is_that_of_the_modified_matrix(self):
        for dtype in DTYPES:
            for n in SIZES:
                for k in (1, 2, 17):
                    with self.subTest(dtype=dtype.__name__, n=n, k=k):
                        L = factor_of(self.rng, n, dtype)
                        x = self.rng.standard_normal((n, k)).astype(dtype)
                        weights = np.where(np.arange(k) % 3 == 1, -1e-3, 0.5)
                        before = bits(L, x)
                        made = cholupdate(L, x, weights, scale=1.5)
                        self.assertEqual(made.dtype, dtype)
                        self.assertLess(ratio(made, L, x, weights, 1.5), 30)
                        self.assertTrue((np.triu(made, 1) == 0).all())
                        self.assertTrue((np.diagonal(made) > 0).all())
                        self.assertEqual(bits(L, x), before)

    def test_every_layout_and_both_triangles_give_the_same(self):
        for dtype in DTYPES:
            for lower in (True, False):
                for name, L in layouts(factor_of(self.rng, 9, dtype, lower)).items():
                    x = self.rng.standard_normal((9, 3)).astype(dtype)
                    apart = np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2]
                    expected = cholupdate(np.ascontiguousarray(L), x, lower=lower)
                    for columns in (x, np.asfortranarray(x), x[::-1][::-1], apart):
                        with self.subTest(dtype=dtype.__name__, lower=lower, layout=name):
                            made = cholupdate(L, columns, lower=lower)
                            self.assertLess(ratio(made, L, x, lower=lower), 30)
                            np.testing.assert_allclose(made, expected, rtol=100 * np.finfo(dtype).eps, atol=1e-5)

    def test_in_place(self):
        for dtype in DTYPES:
            for name, L in layouts(factor_of(self.rng, 9, dtype)).items():
                with self.subTest(dtype=dtype.__name__, layout=name):
                    x = self.rng.standard_normal(9).astype(dtype)
                    base = L.base
                    before, around = L.copy(), None if base is None else np.isnan(base)
                    self.assertIs(cholupdate(L, x, out=L), L)
                    self.assertLess(ratio(L, before, x), 30)
                    if base is not None:
                        np.testing.assert_array_equal(np.isnan(base), around)

    def test_out_may_be_another_array_and_x_a_part_of_the_factor(self):
        L = factor_of(self.rng, 6)
        out = np.empty((6, 6), order="F")
        x = self.rng.standard_normal(6)
        self.assertIs(cholupdate(L, x, out=out), out)
        np.testing.assert_array_equal(out, cholupdate(L, x))
        expected, row = cholupdate(L, L[5].copy()), L[5]
        cholupdate(L, row, out=L)
        np.testing.assert_array_equal(L, expected)

    def test_the_other_triangle_is_neither_read_nor_changed(self):
        for lower in (True, False):
            L = factor_of(self.rng, 5, lower=lower)
            other = np.triu_indices(5, 1) if lower else np.tril_indices(5, -1)
            L[other] = np.nan
            made = cholupdate(L, np.ones(5), lower=lower)
            self.assertTrue(np.isnan(made[other]).all())
            self.assertLess(ratio(made, L, np.ones(5), lower=lower), 30)

    def test_an_update_then_a_downdate_returns(self):
        L, x = factor_of(self.rng, 20), self.rng.standard_normal((20, 3))
        back = cholupdate(cholupdate(L, x), x, downdate=True)
        np.testing.assert_allclose(back, L, atol=1e-12)
        np.testing.assert_array_equal(cholupdate(L, 1e-3 * x, downdate=True), cholupdate(L, 1e-3 * x, -1.0))
        np.testing.assert_array_equal(cholupdate(L, x, 2, downdate=True, scale=1e4),
                                      cholupdate(L, x, [-2, -2, -2], scale=1e4))

    def test_threads_do_not_change_the_result(self):
        L, x = factor_of(self.rng, 300), self.rng.standard_normal((300, 5))
        for threads in (1, 2, None):
            np.testing.assert_array_equal(cholupdate(L, x, threads=threads), cholupdate(L, x))

    def test_a_factor_of_zeros_is_updated(self):
        X = self.rng.standard_normal((8, 5))
        self.assertLess(ratio(cholupdate(np.zeros((5, 5)), X.T), np.zeros((5, 5)), X.T), 30)

    def test_integers_become_float64(self):
        made = cholupdate([[2, 0], [1, 3]], [1, 2])
        self.assertEqual(made.dtype, np.float64)
        self.assertLess(ratio(made, np.array([[2.0, 0], [1, 3]]), np.array([1.0, 2])), 30)

    def test_a_float32_factor_stays_one(self):
        L, x = factor_of(self.rng, 4, np.float32), self.rng.standard_normal(4)
        np.testing.assert_array_equal(cholupdate(L, x), cholupdate(L, x.astype(np.float32)))

    def test_leading_dimensions(self):
        for leading, n, lower in (((2, 5), 4, True), ((12,), 32, False), ((2, 3), 4, True), ((9,), 33, True)):
            L = np.stack([factor_of(self.rng, n, lower=lower) for _ in range(np.prod(leading))]).reshape(*leading, n, n)
            other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
            L[(..., *other)] = 7  # not read, and not changed
            x, X = self.rng.standard_normal((*leading, n)), self.rng.standard_normal((*leading, n, 2))
            w = self.rng.random((*leading, 2))
            before = bits(L, x, X, w)
            one, many = cholupdate(L, x, lower=lower), cholupdate(L, X, w, 2, lower)
            less = cholupdate(L, 1e-3 * X, downdate=True, lower=lower)
            for i in np.ndindex(leading):
                self.assertLess(ratio(one[i], L[i], x[i], lower=lower), 30)
                self.assertLess(ratio(many[i], L[i], X[i], w[i], 2, lower), 30)
                self.assertLess(ratio(less[i], L[i], 1e-3 * X[i], -1, lower=lower), 30)
            self.assertTrue((many[(..., *other)] == 7).all())
            common = np.broadcast_to([1, 2], w.shape)
            self.assertEqual(bits(cholupdate(L, X, [1, 2], lower=lower)), bits(cholupdate(L, X, common, lower=lower)))
            self.assertEqual(bits(L, x, X, w), before)
            self.assertIs(cholupdate(L, x, out=L, lower=lower), L)
            self.assertEqual(bits(L), bits(one))

    def test_a_scale_for_each_of_many_factors(self):
        for leading in ((4,), (2, 5)):  # one after the other, and together
            L = np.stack([factor_of(self.rng, 3) for _ in range(np.prod(leading))]).reshape(*leading, 3, 3)
            x, scale = self.rng.standard_normal((*leading, 3)), self.rng.random(leading) + 0.5
            made = cholupdate(L, x, scale=scale)
            for i in np.ndindex(leading):
                self.assertLess(ratio(made[i], L[i], x[i], None, scale[i]), 30)
            same = np.full(leading, 2.0)
            self.assertEqual(bits(cholupdate(L, x, scale=same)), bits(cholupdate(L, x, scale=2)))
            for wrong in (np.ones(3), np.ones((*leading, 1)), np.append(scale[:-1].ravel(), -1), -scale, np.nan):
                with self.assertRaises(gpucholmod.BadArgument):
                    cholupdate(L, x, scale=wrong)
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(np.eye(3), np.ones(3), scale=[1.0])

    def test_many_factors_with_zeros_or_of_nothing(self):
        X = self.rng.standard_normal((9, 6, 4))
        for made, rows in zip(cholupdate(np.zeros((9, 4, 4)), X.swapaxes(1, 2)), X):
            self.assertLess(ratio(made, np.zeros((4, 4)), rows.T), 30)
        for shape in ((0, 4), (9, 0), (9, 4, 0)):
            L = np.broadcast_to(np.eye(shape[1]), (shape[0], shape[1], shape[1]))
            np.testing.assert_array_equal(cholupdate(L, np.ones(shape)), L)


class Failures(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(2)

    def test_a_downdate_that_cannot_be_done_tells_the_pivot_and_changes_nothing(self):
        for dtype in DTYPES:
            for order in "CF":
                L = np.array(factor_of(self.rng, 6, dtype), order=order)
                x = np.zeros((6, 2), dtype)
                x[3, 0], x[5, 1] = 100, 100
                out = np.ones((6, 6), dtype)
                before = bits(L, x, out)
                for target in (None, L, out):
                    with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
                        cholupdate(L, x, downdate=True, out=target)
                    self.assertEqual(caught.exception.pivot, 3)
                    self.assertEqual(caught.exception.code, 1)
                    self.assertIsInstance(caught.exception, np.linalg.LinAlgError)
                    self.assertEqual(bits(L, x, out), before)

    def test_the_limit_of_downdates(self):
        L = factor_of(self.rng, 8)
        p = self.rng.standard_normal(8)
        p /= np.linalg.norm(p)
        just, beyond = L @ (p * (1 - 1e-6)), L @ (p * (1 + 1e-6))
        self.assertLess(ratio(cholupdate(L, just, downdate=True), L, just, -1.0), 30)
        with self.assertRaises(gpucholmod.NotPositiveDefinite):
            cholupdate(L, beyond, downdate=True)

    def test_of_many_factors_that_which_fails_is_told(self):
        for count in (4, 10):
            L = np.stack([factor_of(self.rng, 3) for _ in range(count)])
            x = np.full((count, 3), 1e-3)
            x[2, 1] = 100
            before = bits(L)
            with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
                cholupdate(L, x, downdate=True, out=L)
            self.assertEqual((caught.exception.member, caught.exception.pivot), (2, 1))
            x[3, 0] = np.inf
            with self.assertRaises(gpucholmod.NotFinite) as caught:
                cholupdate(L, x, out=L)
            self.assertEqual((caught.exception.member, caught.exception.row), (3, 0))
            self.assertEqual(bits(L), before)

    def test_places_of_numbers_that_are_not_finite(self):
        for order in "CF":
            L = np.array(factor_of(self.rng, 4), order=order)
            L[3, 1] = np.inf
            with self.assertRaises(gpucholmod.NotFinite) as caught:
                cholupdate(L, np.ones(4))
            self.assertEqual((caught.exception.row, caught.exception.col), (3, 1))
        x = np.ones((4, 3))
        x[2, 1] = np.nan
        with self.assertRaises(gpucholmod.NotFinite) as caught:
            cholupdate(np.eye(4), x)
        self.assertEqual((caught.exception.row, caught.exception.col), (2, 1))
        self.assertIsInstance(caught.exception, ValueError)

    def test_a_zero_on_the_diagonal_is_not_downdated(self):
        L = np.diag([1.0, 2, 0, 3])
        with self.assertRaises(gpucholmod.BadDiagonal) as caught:
            cholupdate(L, np.full(4, 1e-3), downdate=True)
        self.assertEqual(caught.exception.row, 2)

    def test_numbers_that_float32_does_not_have(self):
        with self.assertRaises(gpucholmod.Overflow) as caught:
            cholupdate(np.eye(2, dtype=np.float32), [1e300, 1])
        self.assertIsInstance(caught.exception, OverflowError)

    def test_wrong_shapes_and_values(self):
        L, x = np.eye(3), np.ones(3)
        read_only = np.eye(3)
        read_only.flags.writeable = False
        for call in (lambda: cholupdate(np.ones((3, 4)), x), lambda: cholupdate(np.ones(3), x),
                     lambda: cholupdate(L, np.ones(4)), lambda: cholupdate(L, np.ones((2, 3))),
                     lambda: cholupdate(L, np.ones((3, 1, 1))), lambda: cholupdate(L, x, [1, 2]),
                     lambda: cholupdate(L, x, np.nan), lambda: cholupdate(L, x, scale=0),
                     lambda: cholupdate(L, x, scale=np.inf), lambda: cholupdate(L, x, threads=0),
                     lambda: cholupdate(L, x, out=np.eye(4)), lambda: cholupdate(L, x, out=np.eye(3, dtype=np.float32)),
                     lambda: cholupdate(L, x, out=read_only), lambda: cholupdate(read_only, x, out=read_only),
                     lambda: cholupdate(np.ones((2, 3, 3)), np.ones((3, 3))),
                     lambda: cholupdate(np.ones((2, 3, 3)), np.ones((2, 3)), np.ones((3, 1)))):
            with self.assertRaises(gpucholmod.BadArgument):
                call()
        np.testing.assert_array_equal(L, np.eye(3))

    def test_wrong_types(self):
        L, x = np.eye(3), np.ones(3)
        for call in (lambda: cholupdate(L * 1j, x), lambda: cholupdate(L, x * 1j),
                     lambda: cholupdate(L.astype("f2"), x), lambda: cholupdate(L, np.array(["a", "b", "c"])),
                     lambda: cholupdate(L, x, out=[[1.0]]),
                     lambda: cholupdate(L, x, verdict=np.zeros(1, np.int32)),
                     lambda: cholupdate(L, x, scale="2"), lambda: cholupdate(None, x), lambda: cholupdate(L, x, "abc"),
                     lambda: cholupdate(np.ma.masked_array(L), x)):
            with self.assertRaises(TypeError):
                call()


if __name__ == "__main__":
    unittest.main()
