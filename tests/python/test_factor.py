import copy
import pickle
import threading
import unittest

import numpy as np

import gpucholmod
from cases import SIZES, bits, factor_of, norm, positive_definite, ratio
from gpucholmod import Factor


class Modification(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def test_update_and_downdate(self):
        for dtype in (np.float32, np.float64):
            for n in SIZES:
                with self.subTest(dtype=dtype.__name__, n=n):
                    L = factor_of(self.rng, n, dtype)
                    f = Factor(L)
                    x = self.rng.standard_normal((n, 3)).astype(dtype)
                    f.update(x, [1, -1e-3, 0.5], scale=2)
                    self.assertLess(ratio(f.to_array(), L, x, [1, -1e-3, 0.5], 2), 30)
                    before = f.to_array()
                    f.downdate(0.1 * x)
                    self.assertLess(ratio(f.to_array(), before, 0.1 * x, -1), 30)

    def test_both_triangles_and_orders(self):
        for lower in (True, False):
            for order in "CF":
                L = np.array(factor_of(self.rng, 6, lower=lower), order=order)
                f = Factor(L, lower=lower)
                np.testing.assert_array_equal(f.to_array(lower), L)
                np.testing.assert_array_equal(f.to_array(not lower), L.T)
                np.testing.assert_array_equal(Factor(np.kron(L, np.ones((2, 2)))[::2, ::2], lower).to_array(lower), L)

    def test_from_matrix(self):
        A = positive_definite(self.rng, 7)
        for lower in (True, False):
            half = np.tril(A) if lower else np.triu(A)
            before = bits(half)
            f = Factor.from_matrix(half, lower=lower)
            np.testing.assert_allclose(f.to_array(), np.linalg.cholesky(A), rtol=1e-13, atol=1e-13)
            self.assertEqual(bits(half), before)
        self.assertEqual(Factor.from_matrix(A.astype(np.float32)).dtype, np.float32)
        A[4, 4] = -1
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
            Factor.from_matrix(A)
        self.assertEqual(caught.exception.pivot, 4)

    def test_append_insert_delete_and_move(self):
        for dtype, digits in ((np.float32, 1e-5), (np.float64, 1e-13)):
            A = positive_definite(self.rng, 12)
            for at, count in ((0, 1), (3, 4), (8, 4), (-2, 1)):
                f = Factor(np.linalg.cholesky(A).astype(dtype))
                kept = np.delete(np.arange(12), np.arange(12)[at:][:count])
                f.delete(at if count == 1 else range(at, at + count))
                self.assertLess(norm(f.to_array() - np.linalg.cholesky(A[np.ix_(kept, kept)])), digits * norm(A))
                X = A[:, at % 12] if count == 1 else A[:, at:at + count]
                f.insert(at % 12, X)
                self.assertLess(norm(f.to_array() - np.linalg.cholesky(A)), digits * norm(A))
            f.append(np.r_[np.ones(12), 100])
            grown = np.block([[A, np.ones((12, 1))], [np.ones((1, 12)), 100 * np.eye(1)]])
            self.assertLess(norm(f.to_array() - np.linalg.cholesky(grown)), digits * norm(A))
            for source, to in ((0, 12), (-1, 0), (3, 7), (5, 5)):
                f.move(source, to)
                place = np.arange(13)[source]
                order = np.insert(np.delete(np.arange(13), place), to, place)
                grown = grown[np.ix_(order, order)]
                self.assertLess(norm(f.to_array() - np.linalg.cholesky(grown)), 10 * digits * norm(A))

    def test_rows_to_delete_may_be_a_mask_a_set_or_a_generator(self):
        A = positive_definite(self.rng, 5)
        expected = np.linalg.cholesky(A[np.ix_([0, 2, 3], [0, 2, 3])])
        mask = [False, True, False, False, True]
        for rows in (mask, np.array(mask), [np.bool_(there) for there in mask], {1, 4}, frozenset((-1, 1)),
                     (row for row in (4, 1)), range(1, 5, 3), np.array([4, 1, 4], np.int8), (1, 4)):
            f = Factor(np.linalg.cholesky(A))
            f.delete(rows)
            self.assertEqual(f.order, 3)
            np.testing.assert_allclose(f.to_array(), expected, rtol=1e-12, atol=1e-12)
        f = Factor(np.linalg.cholesky(A))
        before = bits(f.to_array())
        for rows in (True, np.True_, np.array(True), [True, False], np.array([True, False]), np.array([], bool),
                     np.ones((5, 5), bool), [0, True, 1], "1", b"\1", [[0, 1]], np.array([1.0])):
            with self.assertRaises(TypeError):
                f.delete(rows)
        with self.assertRaises(TypeError):
            f.move(True, 0)
        f.delete([False] * 5)
        self.assertEqual(bits(f.to_array()), before)
        f.delete(np.ones(5, bool))
        self.assertEqual(f.order, 0)

    def test_it_grows_from_nothing(self):
        A = positive_definite(self.rng, 9)
        f = Factor(np.empty((0, 0)), capacity=4)
        self.assertEqual((f.order, f.capacity), (0, 4))
        for i in range(9):
            f.append(A[:i + 1, i])
        self.assertGreaterEqual(f.capacity, 9)
        np.testing.assert_allclose(f.to_array(), np.linalg.cholesky(A), rtol=1e-12, atol=1e-12)

    def test_what_fails_changes_nothing(self):
        f = Factor(factor_of(self.rng, 5))
        before, x = bits(f.to_array()), np.zeros(5)
        x[2] = 100
        for call in (lambda: f.downdate(x), lambda: f.append(np.r_[np.ones(5), -1]), lambda: f.insert(2, np.zeros(6))):
            with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
                call()
            self.assertIn(caught.exception.pivot, (2, 5))
        for call in (lambda: f.update(np.ones(4)), lambda: f.append(np.ones(5)), lambda: f.insert(0, np.ones((7, 3))),
                     lambda: f.solve(np.ones(4)), lambda: f.solve(np.ones(5), "L"),
                     lambda: f.update(np.full(5, np.inf))):
            with self.assertRaises(ValueError):
                call()
        for call in (lambda: f.delete(5), lambda: f.delete([0, -6]), lambda: f.move(5, 0), lambda: f.move(0, 5)):
            with self.assertRaises(IndexError):
                call()
        for call in (lambda: f.delete(1.5), lambda: f.move("a", 0), lambda: f.insert(0.5, np.ones(6))):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(bits(f.to_array()), before)
        f.delete([])
        self.assertEqual(bits(f.to_array()), before)


class Use(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(4)
        self.A = positive_definite(self.rng, 20)
        self.L = np.linalg.cholesky(self.A)
        self.factor = Factor(self.L)

    def test_solve(self):
        b = self.rng.standard_normal((20, 3))
        before = bits(b)
        for system, matrix in (("A", self.A), ("forward", self.L), ("back", self.L.T)):
            for right in (b, np.asfortranarray(b), b[:, 1], b[:, :0]):
                x = self.factor.solve(right, system)
                self.assertEqual(x.shape, right.shape)
                np.testing.assert_allclose(matrix @ x, right, rtol=1e-10, atol=1e-10)
        self.assertEqual(bits(b), before)
        single = Factor(self.L.astype(np.float32))
        self.assertEqual(single.solve(b.astype(np.float32)).dtype, np.float32)
        self.assertEqual(single.solve(b).dtype, np.float64)
        self.assertEqual(self.factor.solve(b.astype(np.float32)).dtype, np.float64)

    def test_numbers(self):
        np.testing.assert_array_equal(self.factor.diagonal(), np.diag(self.L))
        self.assertAlmostEqual(self.factor.logdet(), np.linalg.slogdet(self.A)[1], 10)
        true = 1 / np.linalg.cond(self.A, 1)
        self.assertLess(abs(np.log(self.factor.rcond() / true)), np.log(10))
        inverse = self.factor.inverse()
        np.testing.assert_allclose(self.A @ inverse, np.eye(20), atol=1e-10)
        np.testing.assert_array_equal(inverse, inverse.T)
        self.assertEqual(Factor(np.diag([1.0, 0])).logdet(), -np.inf)
        with self.assertRaises(gpucholmod.BadDiagonal) as caught:
            Factor(np.diag([1.0, 0])).solve([1.0, 1])
        self.assertEqual(caught.exception.row, 1)

    def test_what_it_is(self):
        f = Factor(self.L.astype(np.float32), capacity=30)
        self.assertEqual((f.order, f.shape, f.capacity, f.dtype, f.device), (20, (20, 20), 30, np.float32, "host"))
        self.assertEqual(repr(f), "<gpucholmod.Factor of order 20, float32, on host>")
        self.assertEqual(Factor([[2, 0], [1, 1]]).dtype, np.float64)

    def test_sample(self):
        for precision in (False, True):
            draws = self.factor.sample(np.random.default_rng(5), 3, precision)
            normal = np.random.default_rng(5).standard_normal((3, 20))
            expected = np.linalg.solve(self.L.T, normal.T).T if precision else normal @ self.L.T
            np.testing.assert_allclose(draws, expected, rtol=1e-10, atol=1e-10)
        self.assertEqual(self.factor.sample().shape, (20,))
        self.assertEqual(self.factor.sample(size=(2, 0, 3), precision=True).shape, (2, 0, 3, 20))
        for precision in (False, True):
            self.assertEqual(Factor(np.empty((0, 0))).sample(size=2, precision=precision).shape, (2, 0))
        many = Factor([[2.0, 0], [1, 1]]).sample(np.random.default_rng(6), 100000)
        np.testing.assert_allclose(np.cov(many.T), [[4, 2], [2, 2]], atol=0.1)

    def test_copies(self):
        for other in (self.factor.copy(), copy.copy(self.factor), copy.deepcopy(self.factor),
                      pickle.loads(pickle.dumps(self.factor))):
            self.assertEqual(bits(other.to_array()), bits(self.L))
            other.update(np.ones(20))
            self.assertEqual(bits(self.factor.to_array()), bits(self.L))
        roomy = pickle.loads(pickle.dumps(Factor(self.L.astype(np.float32), capacity=50, threads=1)))
        self.assertEqual((roomy.capacity, roomy.dtype), (50, np.float32))

    def test_wrong_arguments(self):
        for call in (lambda: Factor(np.ones((2, 3))), lambda: Factor(np.diag([1, np.nan])),
                     lambda: Factor(self.L, device="cuda"), lambda: Factor(self.L, device=-1),
                     lambda: Factor(self.L, threads=0)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            Factor(self.L * 1j)
        with self.assertRaises(gpucholmod.OutOfMemory) as caught:
            Factor(self.L, capacity=2**40)
        self.assertIsInstance(caught.exception, MemoryError)

    def test_a_gpu_is_used_or_missing(self):
        try:
            f = Factor(self.L, device="gpu")
        except gpucholmod.BackendUnavailable as missing:
            self.assertIn(missing.code, (6, 10))
            self.skipTest(f"a GPU: {missing}")
        self.assertEqual(f.device, "gpu")
        f.update(np.ones(20))
        self.assertLess(ratio(f.to_array(), self.L, np.ones(20)), 30)
        self.assertEqual(pickle.loads(pickle.dumps(f)).device, "gpu")
        many = gpucholmod.Batch(self.L[np.newaxis], device="gpu")
        many.update(np.ones((1, 20)))
        self.assertLess(ratio(many.to_array()[0], self.L, np.ones(20)), 30)

    def test_threads_of_the_caller_use_factors_of_their_own(self):
        factors = [self.factor.copy() for _ in range(8)]

        def work(f):
            for _ in range(200):
                f.update(np.ones(20), 0.01)

        threads = [threading.Thread(target=work, args=(f,)) for f in factors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for f in factors:
            self.assertLess(ratio(f.to_array(), self.L, np.ones(20), 2), 300)
            self.assertEqual(bits(f.to_array()), bits(factors[0].to_array()))


if __name__ == "__main__":
    unittest.main()
