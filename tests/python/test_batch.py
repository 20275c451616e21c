import copy
import pickle
import unittest

import numpy as np

import gpucholmod
from cases import bits, factor_of, ratio
from gpucholmod import Batch


class Batches(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(10)

    def factors(self, c, n, dtype=np.float64, lower=True):
        return np.stack([factor_of(self.rng, n, dtype, lower) for _ in range(c)])

    def test_all_members_are_modified(self):
        for dtype in (np.float32, np.float64):
            for c, n, k in ((1, 1, 1), (5, 3, 2), (7, 20, 3), (4, 6, 9)):
                L = self.factors(c, n, dtype)
                x = self.rng.standard_normal((c, n, k)).astype(dtype)
                turned = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
                w = np.where(np.arange(k) % 3 == 1, -1e-3, 0.5)
                scale = np.arange(1.0, c + 1)
                for columns, weights in ((x, w), (turned, np.broadcast_to(w, (c, k))), (x, None), (x, 0.5)):
                    before = bits(L, columns)
                    batch = Batch(L)
                    pivot = batch.update(columns, weights, scale)
                    np.testing.assert_array_equal(pivot, np.full(c, -1))
                    for j, made in enumerate(batch.to_array()):
                        self.assertLess(ratio(made, L[j], x[j], weights if np.ndim(weights) < 2 else w, scale[j]), 30)
                    self.assertEqual(bits(L, columns), before)

    def test_x_may_be_the_same_for_all_and_have_one_column(self):
        L, x = self.factors(4, 5), self.rng.standard_normal((4, 5))
        batch = Batch(L)
        batch.update(x)
        for j, made in enumerate(batch.to_array()):
            self.assertLess(ratio(made, L[j], x[j]), 30)
        common = self.rng.standard_normal((1, 5, 2))
        before = batch.to_array()
        batch.downdate(1e-3 * common, [1, 2])
        for j, made in enumerate(batch.to_array()):
            self.assertLess(ratio(made, before[j], 1e-3 * common[0], [-1, -2]), 30)

    def test_both_triangles_and_layouts(self):
        for lower in (True, False):
            L = self.factors(3, 4, lower=lower)
            for layout in (L, np.asfortranarray(L), np.repeat(L, 2, axis=2)[:, :, ::2]):
                batch = Batch(layout, lower=lower)
                np.testing.assert_array_equal(batch.to_array(lower), L)
                np.testing.assert_array_equal(batch.to_array(not lower), L.swapaxes(1, 2))

    def test_solve_and_logdet(self):
        L = self.factors(4, 6)
        A = L @ L.swapaxes(1, 2)
        batch = Batch(L)
        for system, matrix in (("A", A), ("forward", L), ("back", L.swapaxes(1, 2))):
            for shape in ((4, 6), (4, 6, 3)):
                b = self.rng.standard_normal(shape)
                before = bits(b)
                x = batch.solve(b, system)
                self.assertEqual(x.shape, shape)
                columns = x if x.ndim == 3 else x[..., np.newaxis]
                np.testing.assert_allclose((matrix @ columns).reshape(shape), b, rtol=1e-10, atol=1e-10)
                self.assertEqual(bits(b), before)
        np.testing.assert_allclose(batch.logdet(), np.linalg.slogdet(A)[1])
        self.assertEqual(Batch(L.astype(np.float32)).solve(np.ones((4, 6), np.float32)).dtype, np.float32)

    def test_a_member_that_fails(self):
        L = self.factors(3, 4)
        x = np.full((3, 4), 1e-3)
        x[1, 2] = 100
        batch = Batch(L)
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
            batch.downdate(x)
        self.assertEqual((caught.exception.member, caught.exception.pivot), (1, 2))
        self.assertEqual(bits(batch.to_array()), bits(L))
        np.testing.assert_array_equal(batch.downdate(x, check=False), [-1, 2, -1])
        made = batch.to_array()
        self.assertEqual(bits(made[1]), bits(L[1]))
        for j in (0, 2):
            self.assertLess(ratio(made[j], L[j], x[j], -1), 30)

    def test_the_message_and_the_field_name_the_same_member(self):
        L = self.factors(3, 4)
        L[2, 1, 1] = 0
        with self.assertRaises(gpucholmod.BadDiagonal) as caught:
            Batch(L)
        self.assertEqual((caught.exception.member, caught.exception.row), (2, 1))
        self.assertRegex(str(caught.exception), "entry 1 is 0, in member 2$")

    def test_what_it_is_and_copies(self):
        L = self.factors(3, 4, np.float32)
        batch = Batch(L)
        self.assertEqual((len(batch), batch.order, batch.shape, batch.dtype), (3, 4, (3, 4, 4), np.float32))
        self.assertEqual(repr(batch), "<gpucholmod.Batch of 3 factors of order 4, float32, on host>")
        for other in (batch.copy(), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
            other.update(np.ones((3, 4)))
            self.assertEqual(bits(batch.to_array()), bits(L))
        nothing = Batch(np.empty((0, 4, 4)))
        self.assertEqual((len(nothing), nothing.logdet().shape), (0, (0,)))

    def test_wrong_arguments(self):
        batch = Batch(self.factors(3, 4))
        before, x = bits(batch.to_array()), np.ones((3, 4))
        x[1, 2] = np.nan
        with self.assertRaises(gpucholmod.NotFinite) as caught:
            batch.update(x)
        self.assertEqual((caught.exception.member, caught.exception.row), (1, 2))
        for call in (lambda: Batch(np.eye(3)), lambda: Batch(np.ones((2, 3, 4))), lambda: batch.update(np.ones((2, 4))),
                     lambda: batch.update(np.ones((3, 5))), lambda: batch.update(np.ones(4)),
                     lambda: batch.update(np.ones((3, 4)), [1, 2]), lambda: batch.update(np.ones((3, 4)), scale=0),
                     lambda: batch.update(np.ones((3, 4)), scale=[1, 2]), lambda: batch.solve(np.ones((2, 4))),
                     lambda: batch.solve(np.ones((3, 4)), "L"), lambda: Batch(np.zeros((2, 3, 3))),
                     lambda: Batch(np.ones((1, 1, 1)), threads=0)):
            with self.assertRaises((ValueError, gpucholmod.BadDiagonal)):
                call()
        self.assertEqual(bits(batch.to_array()), before)

    def matrices(self, c, n):
        X = self.rng.standard_normal((c, 2 * n, n))
        return X.swapaxes(1, 2) @ X

    def test_members_grow_and_shrink(self):
        A = self.matrices(9, 7)
        at = np.arange(9) % 6
        for capacity in (None, 8):
            batch = Batch(np.linalg.cholesky(A[:, :5, :5]), capacity=capacity)
            batch.append(A[:, :7, 5:])
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(A), rtol=1e-11, atol=1e-12)
            self.assertEqual(batch.capacity, 8 if capacity else 10)
            batch.delete([5, -1])
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(A[:, :5, :5]), rtol=1e-11, atol=1e-12)
            order = [np.insert(np.arange(5), place, 5) for place in at]
            new = np.stack([A[j][order[j]][:, 5] for j in range(9)])
            batch.insert(at, new)
            expected = np.stack([A[j][np.ix_(order[j], order[j])] for j in range(9)])
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(expected), rtol=1e-11, atol=1e-12)
            batch.shift(at, 5)
            batch.shift(5, at)
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(expected), rtol=1e-11, atol=1e-12)
            batch.shift(1, 4)
            order = [0, 2, 3, 4, 1, 5]
            moved = expected[:, order][:, :, order]
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(moved), rtol=1e-11, atol=1e-12)
            batch.shift(4, 1)
            batch.delete(at[:, np.newaxis])
            np.testing.assert_allclose(batch.to_array(), np.linalg.cholesky(A[:, :5, :5]), rtol=1e-11, atol=1e-12)

    def test_members_that_cannot_grow_stay(self):
        A = self.matrices(4, 4)
        new = A[:, :, 3].copy()
        new[2, :3], new[2, 3] = A[2, :3, 0], 0.9 * A[2, 0, 0]
        batch = Batch(np.linalg.cholesky(A[:, :3, :3]))
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as raised:
            batch.append(new)
        self.assertEqual(raised.exception.member, 2)
        self.assertEqual(batch.order, 3)
        np.testing.assert_array_equal(batch.append(new, check=False), [-1, -1, 3, -1])
        np.testing.assert_array_equal(batch.orders, [4, 4, 3, 4])
        again = pickle.loads(pickle.dumps(batch))
        np.testing.assert_array_equal(again.orders, batch.orders)
        np.testing.assert_array_equal(again.to_array(), batch.to_array())
        with self.assertRaises(gpucholmod.BadArgument):
            batch.update(np.ones((4, 4)))
        listed = Batch([np.linalg.cholesky(A[0]), np.linalg.cholesky(A[1, :2, :2])])
        np.testing.assert_array_equal(listed.orders, [4, 2])

    def test_what_cannot_be_inserted_is_refused(self):
        batch = Batch(self.factors(3, 4))
        before = batch.to_array()
        for at, X in ((5, np.ones((3, 5))), (0, np.ones((3, 4))), (0, np.ones((2, 5))), ([0, 1], np.ones((3, 5))),
                      (0.5, np.ones((3, 5)))):
            with self.assertRaises(gpucholmod.BadArgument):
                batch.insert(at, X)
        for rows in (np.ones((2, 1), int), np.array([[0.5]] * 3)):
            with self.assertRaises(gpucholmod.BadArgument):
                batch.delete(rows)
        with self.assertRaises(IndexError):
            batch.delete(4)
        np.testing.assert_array_equal(batch.to_array(), before)


if __name__ == "__main__":
    unittest.main()
