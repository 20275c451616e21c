"""Arrays of torch, CuPy and JAX in the memory of a GPU, beside the same of NumPy."""

import copy
import importlib
import pickle
import unittest

import numpy as np

import gpucholmod
from cases import SIZES, bits, factor_of, missing, norm, positive_definite, ratio
from gpucholmod import Batch, Factor, RecursiveLeastSquares, cholupdate, solve_modified


class OnGpu:
    """What all libraries are tested for. They have put(array) and get(x), which copy, and `name`."""

    @classmethod
    def setUpClass(cls):
        reason = missing(cls.name)
        if reason:
            raise unittest.SkipTest(reason)
        cls.library = importlib.import_module(cls.name)

    def setUp(self):
        self.rng = np.random.default_rng(12)

    def check(self, made, L, x, weights=None, scale=1.0, lower=True):
        self.assertIs(type(made), type(self.put(np.ones(1))))
        self.assertEqual(self.get(made).dtype, L.dtype)
        self.assertLess(ratio(self.get(made), L, x, weights, scale, lower), 30)

    def test_update(self):
        for dtype in (np.float32, np.float64):
            for n in (*SIZES, 300):
                for lower in (True, False):
                    L = factor_of(self.rng, n, dtype, lower)
                    X = self.rng.standard_normal((3, n)).astype(dtype)
                    there, x, weights = self.put(L), self.put(X).T, [1, -1e-3, 0.5]
                    with self.subTest(n=n, dtype=dtype.__name__, lower=lower):
                        self.check(cholupdate(there, x, lower=lower), L, X.T, lower=lower)
                        self.check(cholupdate(there, x, weights, 2, lower=lower), L, X.T, weights, 2, lower)
                        self.check(cholupdate(there, X.T, self.put(np.array(weights)), lower=lower), L, X.T, weights,
                                   lower=lower)
                        self.check(cholupdate(there, self.put(X.T.copy()), lower=lower), L, X.T, lower=lower)
                        self.check(cholupdate(there, self.put(X[0] if n else np.ones(0, dtype)), lower=lower), L,
                                   X[0], lower=lower)
                        self.assertEqual(bits(self.get(there)), bits(L))

    def test_downdate_returns(self):
        L, X = factor_of(self.rng, 200), self.rng.standard_normal((16, 200))
        made = cholupdate(cholupdate(self.put(L), self.put(X).T), self.put(X).T, downdate=True)
        self.assertLess(norm(self.get(made) - L), 1e-10 * norm(L))

    def test_other_numbers_and_the_other_triangle(self):
        L = factor_of(self.rng, 70)
        L += np.triu(self.rng.random((70, 70)), 1)
        x = self.rng.standard_normal((70, 2))
        made = cholupdate(self.put(L), self.put(x.astype(np.float32)))
        self.check(made, L, x.astype(np.float32))
        np.testing.assert_array_equal(np.triu(self.get(made), 1), np.triu(L, 1))
        self.check(cholupdate(self.put(L), self.put(np.ones(70, np.int32))), L, np.ones(70))
        negative = L.copy()
        negative[:, 3] *= -1
        self.check(cholupdate(self.put(negative), self.put(x)), L, x)
        zeros = cholupdate(self.put(np.zeros((3, 3))), self.put(np.eye(3)))
        np.testing.assert_allclose(self.get(zeros), np.eye(3))
        with self.assertRaises(TypeError):
            cholupdate(self.put(L), self.put(x.astype(np.float16)))

    def test_failures_change_nothing(self):
        L = factor_of(self.rng, 40)
        there = self.put(L)
        with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
            cholupdate(there, self.put(100 * np.eye(40)[7]), downdate=True)
        self.assertEqual(caught.exception.pivot, 7)
        for call in (lambda: cholupdate(there, self.put(np.full(40, np.nan))),
                     lambda: cholupdate(there, self.put(np.ones(39))), lambda: cholupdate(there[:39], np.ones(39))):
            with self.assertRaises(ValueError):
                call()
        for call in (lambda: cholupdate(L, self.put(np.ones(40))), lambda: cholupdate(there, np.ones(40), out=L.copy()),
                     lambda: Factor(there, device="host"), lambda: Factor(L).update(self.put(np.ones(40))),
                     lambda: gpucholmod.Batch(there), lambda: gpucholmod.solve_modified(there, np.ones((1, 40)))):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(bits(self.get(there)), bits(L))

    def test_factor(self):
        for dtype, digits in ((np.float32, 1e-4), (np.float64, 1e-12)):
            A = positive_definite(self.rng, 90)
            L = np.linalg.cholesky(A[:80, :80]).astype(dtype)
            for lower in (True, False):
                f = Factor(self.put(L if lower else L.T), lower=lower, capacity=90)
                self.assertEqual((f.device, f.dtype, f.order), ("gpu", dtype, 80))
                self.assertGreaterEqual(f.capacity, 90)
                self.assertEqual(bits(self.get(f.to_array())), bits(L))
                self.assertEqual(bits(self.get(f.to_array(lower=False))), bits(L.T.copy()))
            X = self.rng.standard_normal((5, 80)).astype(dtype)
            f.update(self.put(X).T, self.put(np.full(5, 0.5)), scale=2)
            self.check(f.to_array(), L, X.T, 0.5, 2)
            f.downdate(X.T, 0.5)
            f.update(self.put(np.zeros(80)), scale=0.5)
            f = Factor(self.put(L))
            f.append(self.put(A[:, 80:].astype(dtype)))
            f.delete(0)
            f.insert(0, self.put(A[:, 0]))
            self.assertLess(norm(self.get(f.to_array()) - np.linalg.cholesky(A)), digits * norm(A))
            for b in (A[:, :3].copy(), A[:, 4].copy(), A[:, :0].copy(), np.asfortranarray(A[:, :70])):
                for system, matrix in (("A", A), ("forward", np.linalg.cholesky(A)), ("back", np.linalg.cholesky(A).T)):
                    solved = f.solve(self.put(b), system)
                    self.assertIs(type(solved), type(self.put(b)))
                    self.assertLess(np.abs(matrix @ self.get(solved) - b).max(initial=0), 100 * digits * norm(A))
            self.assertEqual(self.get(f.solve(self.put(np.ones(90, np.float32)))).dtype, dtype)
            self.assertIsInstance(f.solve(np.ones(90)), np.ndarray)
            inverse = f.inverse()
            self.assertIs(type(inverse), type(f.to_array()))
            self.assertLess(norm(A @ self.get(inverse) - np.eye(90)), 1e4 * digits)
            for other in (f.copy(), copy.copy(f)):
                self.assertEqual(bits(self.get(other.to_array())), bits(self.get(f.to_array())))
            other = pickle.loads(pickle.dumps(f))
            self.assertEqual(other.device, "gpu")
            self.assertEqual(bits(other.to_array()), bits(self.get(f.to_array())))
            self.assertEqual(f.sample(np.random.default_rng(1), 3).shape, (3, 90))

    def test_batch(self):
        for dtype in (np.float32, np.float64):
            L = np.stack([factor_of(self.rng, 33, dtype) for _ in range(9)])
            for k in (1, 5, 19):
                X = self.rng.standard_normal((9, k, 33)).astype(dtype)
                here, there = Batch(L, device="gpu"), Batch(L, device="gpu")
                columns, w = X.swapaxes(1, 2), np.linspace(0.5, 1, k)
                for x in (self.put(X).swapaxes(1, 2), self.put(columns), self.put(X[:1]).swapaxes(1, 2)):
                    host = columns if len(x) == 9 else columns[:1]
                    for weights, scale in ((None, 1.0), (self.put(w), 1.0), (w, np.arange(1.0, 10))):
                        np.testing.assert_array_equal(there.update(x, weights, scale), np.full(9, -1))
                        here.update(host, w if weights is not None else None, scale)
                    self.assertEqual(bits(there.to_array()), bits(here.to_array()))
                there.update(self.put(X[:, 0]))
                here.update(X[:, 0])
                with self.assertRaises(gpucholmod.NotPositiveDefinite):
                    there.downdate(self.put(1000 * columns))
                np.testing.assert_array_equal(there.downdate(self.put(1000 * columns), check=False),
                                              here.downdate(1000 * columns, check=False))
                self.assertEqual(bits(there.to_array()), bits(here.to_array()))
                for b in (columns, X[:, 0], columns.astype(np.float32)):
                    for system in ("A", "forward", "back"):
                        solved = there.solve(self.put(b), system)
                        self.assertIs(type(solved), type(self.put(b)))
                        self.assertEqual(bits(self.get(solved)), bits(here.solve(b, system)))
                np.testing.assert_array_equal(solve_modified(there, self.put(columns), X[0, 0]).solution,
                                              solve_modified(here, columns, X[0, 0]).solution)
            new = np.r_[100 * np.ones(1, dtype), np.ones(33, dtype)][np.newaxis]
            there.insert(0, self.put(new))
            here.insert(0, new)
            self.assertEqual(bits(there.to_array()), bits(here.to_array()))

    def test_regression(self):
        X, y = self.rng.standard_normal((60, 5)), self.rng.standard_normal(60)
        here = RecursiveLeastSquares(5, ridge=1)
        there = RecursiveLeastSquares(5, ridge=1, device="gpu")
        here.update(X, y)
        there.update(self.put(X[:40]), self.put(y[:40]))
        for i in range(40, 60):
            there.update(self.put(X[i]), y[i])
        np.testing.assert_allclose(there.coef, here.coef, rtol=1e-10)
        np.testing.assert_allclose(there.rss, here.rss, rtol=1e-10)


class ThatChange(OnGpu):
    """For arrays that can be changed."""

    def test_in_place(self):
        for dtype in (np.float32, np.float64):
            L, X = factor_of(self.rng, 300, dtype), self.rng.standard_normal((16, 300)).astype(dtype)
            room = self.put(np.ones((320, 330), dtype))
            room[10:310, 20:320] = self.put(L)
            scattered = self.put(np.kron(L, np.ones((2, 2))).astype(dtype))
            before = self.get(scattered)
            for there in (self.put(L), room[10:310, 20:320], scattered[::2, ::2]):
                self.assertIs(cholupdate(there, self.put(X).T, out=there), there)
                self.check(there, L, X.T)
            after = self.get(room)
            after[10:310, 20:320] = 1
            np.testing.assert_array_equal(after, 1)
            np.testing.assert_array_equal(self.get(scattered)[1::2], before[1::2])
            turned = self.put(L.T.copy())
            cholupdate(turned.T, self.put(X).T, out=turned.T)
            self.assertLess(ratio(self.get(turned).T.copy(), L, X.T), 30)

    def test_out(self):
        L, x = factor_of(self.rng, 50), self.rng.standard_normal((50, 2))
        there, out = self.put(L), self.put(np.ones((50, 50)))
        self.assertIs(cholupdate(there, self.put(x), out=out), out)
        self.check(out, L, x)
        self.assertEqual(bits(self.get(there)), bits(L))
        before = bits(self.get(out))
        with self.assertRaises(gpucholmod.NotPositiveDefinite):
            cholupdate(there, self.put(100 * x), downdate=True, out=out)
        self.assertEqual(bits(self.get(out)), before)
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(there, self.put(x), out=self.put(np.ones((50, 49))))
        column = cholupdate(there, there[:, 0], out=there)  # x is a part of L
        self.check(column, L, L[:, 0])


class Torch(ThatChange, unittest.TestCase):
    name = "torch"

    def put(self, array):
        return self.library.tensor(np.ascontiguousarray(array)).cuda()

    def get(self, x):
        return x.cpu().numpy()

    def test_its_stream_is_waited_for(self):
        torch = self.library
        L, x = factor_of(self.rng, 200), self.rng.standard_normal((200, 4))
        there, late = self.put(L), self.put(x)
        f, queue = Factor(there), torch.cuda.Stream()
        many = Batch(L[np.newaxis], device="gpu")
        torch.cuda.synchronize()
        for work in (lambda x: cholupdate(there, x), lambda x: f.copy().solve(x), self.updated(f),
                     lambda x: many.solve(x[None]), lambda x: self.put(self.updated(many)(x[None]))):
            expected = self.get(work(late))
            with torch.cuda.stream(queue):
                V = torch.zeros_like(late)
                torch.cuda._sleep(200_000_000)  # clocks
                V.copy_(late)
                made = work(V)
            self.assertEqual(bits(self.get(made)), bits(expected))

    def test_a_queue_with_verdicts_copies_nothing_to_or_from_the_host(self):
        torch = self.library
        L = factor_of(self.rng, 640)
        x, R = self.put(self.rng.standard_normal((16, 640))).T, self.put(L)
        expected = cholupdate(cholupdate(R, x), x, downdate=True)
        out, back = torch.empty_like(R), torch.empty_like(R)
        verdicts = torch.full((2,), -7, dtype=torch.int32, device="cuda")
        cholupdate(R, x, out=out, verdict=verdicts[:1])  # the first call loads kernels
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            self.assertIs(cholupdate(R, x, out=out, verdict=verdicts[0]), out)
            cholupdate(out, x, out=back, downdate=True, verdict=verdicts[1])
            torch.cuda.synchronize()
        names = [event.name for event in seen.events()]
        self.assertTrue(any("modify_segment" in name for name in names))
        self.assertEqual([name for name in names if name.startswith("Memcpy ")], [])
        self.assertEqual(verdicts.tolist(), [0, 0])
        self.assertEqual(bits(np.tril(self.get(back))), bits(np.tril(self.get(expected))))
        self.assertEqual(bits(self.get(R)), bits(L))
        cholupdate(R, x, weights=-1e4, out=out, verdict=verdicts[0])
        self.assertEqual(verdicts.tolist(), [1, 0])
        for wrong in (verdicts, verdicts[:1].float()):
            with self.assertRaises(gpucholmod.BadArgument):
                cholupdate(R, x, out=out, verdict=wrong)
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(R, x, out=R, verdict=verdicts[0])
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(R, x, out=out, verdict=np.zeros(1, np.int32))
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(R, self.get(x), out=out, verdict=verdicts[0])

    def test_columns_of_a_batch_stay_on_the_gpu(self):
        torch = self.library
        many = Batch(np.stack([factor_of(self.rng, 40)] * 50), device="gpu")
        x = self.put(self.rng.standard_normal((50, 4, 40))).mT
        many.update(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            many.update(x)
            torch.cuda.synchronize()
        copies = [event.name for event in seen.events() if event.name.startswith("Memcpy ")]
        self.assertEqual(len(copies), 2, copies)  # of a few words: what kernels are told, and what they tell

    @staticmethod
    def updated(f):
        def work(x):
            other = f.copy()
            other.update(x)
            return other.to_array()
        return work

    def test_tensors_that_need_a_gradient(self):
        L = self.put(np.eye(3))
        with self.assertRaises(TypeError):
            cholupdate(L.clone().requires_grad_(), L[0])
        with self.assertRaises(TypeError):
            cholupdate(L, L[0].clone().requires_grad_())
        parameter = self.library.nn.Parameter(L.clone())
        cholupdate(parameter.data, L[0], out=parameter.data)
        np.testing.assert_allclose(self.get(parameter.detach())[0, 0], np.sqrt(2))

    def test_another_gpu(self):
        if self.library.cuda.device_count() < 2:
            self.skipTest("there is one GPU")
        L, x = factor_of(self.rng, 20), self.rng.standard_normal(20)
        there = self.put(L).to("cuda:1")
        made = cholupdate(there, self.put(x).to("cuda:1"))
        self.assertEqual(made.device, there.device)
        self.check(made, L, x)
        self.assertEqual(Factor(there).to_array().device, there.device)
        for call in (lambda: cholupdate(there, self.put(x)), lambda: Factor(there, device=0),
                     lambda: Factor(there).update(self.put(x))):
            with self.assertRaises(gpucholmod.BadArgument):
                call()


class Cupy(ThatChange, unittest.TestCase):
    name = "cupy"

    def put(self, array):
        return self.library.asarray(array, order="C")

    def get(self, x):
        return self.library.asnumpy(x)

    def test_its_stream_is_waited_for(self):
        L, x = factor_of(self.rng, 200), self.rng.standard_normal((200, 4))
        with self.library.cuda.Stream(non_blocking=True):
            made = cholupdate(self.put(L), self.put(x) + 0)
        self.check(made, L, x)
        f = Factor(self.put(L))
        with self.library.cuda.Stream(non_blocking=True):
            solved = f.solve(self.put(x) + 0)
        np.testing.assert_allclose(L @ (L.T @ self.get(solved)), x, atol=1e-8)


class Jax(OnGpu, unittest.TestCase):
    name = "jax"

    def put(self, array):
        return self.library.device_put(self.library.numpy.asarray(array), self.library.devices("gpu")[0])

    def get(self, x):
        return np.array(x)

    def test_arrays_do_not_change(self):
        L, x = factor_of(self.rng, 30), self.rng.standard_normal(30)
        there = self.put(L)
        for out in (there, self.put(L)):
            with self.assertRaises(gpucholmod.BadArgument):
                cholupdate(there, self.put(x), out=out)
        self.assertEqual(bits(self.get(there)), bits(L))


if __name__ == "__main__":
    unittest.main()
