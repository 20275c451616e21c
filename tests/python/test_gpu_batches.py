"""How batches understand arrays on a GPU. Their memory is the host's, so that no GPU is needed."""

import unittest

import numpy as np

import gpucholmod
from cases import bits, factor_of
from gpu_arrays import FORMS, HostAsGpu, OfInterface
from gpucholmod import Batch, _gpu, solve_modified


class Members(unittest.TestCase):
    """The columns of many members, side by side."""

    def test_they_are_not_copied_where_they_follow_one_another(self):
        X = np.arange(120.0).reshape(4, 5, 6)
        for form in FORMS:
            for x, cols, ld in ((X.swapaxes(1, 2), 20, 6), (X[:, :1].swapaxes(1, 2), 4, 30), (X[:, 0], 4, 30),
                                (X[1:2].swapaxes(1, 2), 5, 6), (X[:1, ::2].swapaxes(1, 2), 3, 12),
                                (X[..., 1:].swapaxes(1, 2), 20, 6), (X[:0].swapaxes(1, 2), 0, 6),
                                (X[:, :0].swapaxes(1, 2), 0, 6), (np.ones((4, 1, 3)), 12, 1)):
                given = form(x)
                found, matrix = _gpu.members_on_gpu("x", _gpu.view("x", given), x.shape[1])
                self.assertIs(found.owner, given)
                self.assertEqual((matrix.data or 0, matrix.rows, matrix.cols, matrix.ld),
                                 (x.ctypes.data, x.shape[1], cols, ld))

    def test_others_are_copied(self):
        X = np.arange(120.0).reshape(4, 6, 5)
        for form in FORMS:
            for x in (X, X[:, ::2], X[::-1], X.swapaxes(1, 2)[:, :, ::2][::2], X[:, :, 0],
                      np.broadcast_to(X[:1], (3, 6, 5)), np.broadcast_to(X[:1, :, 0], (3, 6))):
                found, matrix = _gpu.members_on_gpu("x", _gpu.view("x", form(x)), x.shape[1])
                self.assertNotEqual(found.data, x.ctypes.data)
                self.assertEqual(matrix.ld, x.shape[1])
                np.testing.assert_array_equal(found.owner.array, x if x.ndim == 2 else x.swapaxes(1, 2))

    def test_shapes(self):
        for x in (np.ones(5), np.ones((2, 4)), np.ones((2, 4, 5)), np.ones((2, 5, 1, 1))):
            with self.assertRaises(gpucholmod.BadArgument):
                _gpu.members_on_gpu("x", _gpu.view("x", OfInterface(x)), 5)


class Numbers(HostAsGpu):
    def test_batch(self):
        L = np.stack([factor_of(self.rng, 6) for _ in range(4)])
        X = self.rng.standard_normal((4, 3, 6))
        w, scale = [1, -1e-3, 0.5], np.arange(1.0, 5)
        for form in FORMS:
            for x in (X.swapaxes(1, 2), np.ascontiguousarray(X.swapaxes(1, 2)), X[:1].swapaxes(1, 2),
                      X.astype(np.float32).swapaxes(1, 2), (10 * X).astype(int).swapaxes(1, 2)):
                here, there, before = Batch(L), Batch(L), bits(x)
                np.testing.assert_array_equal(there.update(form(x), form(np.array(w)), scale), here.update(x, w, scale))
                there.downdate(form(1e-3 * x), form(np.ones(3)))
                here.downdate(1e-3 * x)
                self.assertEqual(bits(there.to_array()), bits(here.to_array()))
                self.assertEqual(bits(x), before)
            there.update(form(X[:, 0]))
            here.update(X[:, 0])
            new = np.concatenate([X[:, :2], np.broadcast_to(50 * np.eye(2), (4, 2, 2))], axis=2).swapaxes(1, 2)
            there.append(form(new))
            here.append(new)
            there.insert(0, form(np.r_[90, np.ones(8)][np.newaxis]))
            here.insert(0, np.r_[90, np.ones(8)][np.newaxis])
            self.assertEqual(bits(there.to_array()), bits(here.to_array()))
            B = self.rng.standard_normal((4, 2, 9))
            for b in (B.swapaxes(1, 2), np.ascontiguousarray(B.swapaxes(1, 2)), B[:, 0], B[:, :0].swapaxes(1, 2),
                      B.astype(np.float32).swapaxes(1, 2)):
                before = bits(b)
                solved = there.solve(form(b), "back")
                self.assertIs(type(solved), form)
                self.assertEqual((solved.array.shape, solved.array.dtype), (b.shape, np.float64))
                np.testing.assert_array_equal(solved.array, here.solve(b, "back"))
                self.assertEqual(bits(b), before)
            single = Batch(L.astype(np.float32)).solve(form(X.astype(np.float32).swapaxes(1, 2)))
            self.assertEqual(single.array.dtype, np.float32)
            x, b = X.swapaxes(1, 2), X[0, 0]
            np.testing.assert_array_equal(solve_modified(Batch(L), form(x), b, w).solution,
                                          solve_modified(Batch(L), x, b, w).solution)
            for call in (lambda: there.update(form(X[:2].swapaxes(1, 2))), lambda: there.update(form(np.ones((4, 8)))),
                         lambda: there.solve(form(np.ones((3, 9)))), lambda: there.solve(form(np.ones((4, 8)))),
                         lambda: there.append(form(np.ones((4, 9)))), lambda: there.solve(form(np.ones(9)))):
                with self.assertRaises(gpucholmod.BadArgument):
                    call()


if __name__ == "__main__":
    unittest.main()
