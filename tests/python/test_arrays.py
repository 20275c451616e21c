import unittest

import numpy as np

import gpucholmod
from cases import bits, factor_of, off_alignment, ratio
from gpucholmod import Factor, cholupdate
from gpucholmod import _arrays

try:
    import torch
except ImportError:
    torch = None
try:
    import scipy.linalg
except ImportError:
    scipy = None


class OfAnotherLibrary:
    """An array of a library that knows DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return 1, 0


class Exchange(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(7)
        self.L, self.x = factor_of(self.rng, 5), self.rng.standard_normal((5, 2))

    def test_no_copy_where_none_is_promised(self):
        X = self.rng.standard_normal((4, 5))  # rows of observations
        for L, turned in ((self.L, True), (np.asfortranarray(self.L), False), (np.ones((7, 9))[1:6, 2:7], True)):
            matrix, is_turned = _arrays.by_either(L)
            self.assertEqual((matrix.data, is_turned), (L.ctypes.data, turned))
        for x in (X.T, X[:2].T, X[0], np.asfortranarray(self.x), self.x[:, :1].copy()):
            given, matrix = _arrays.columns("x", x, 5, np.dtype(np.float64))
            self.assertIs(given, x)
            self.assertEqual(matrix.data, x.ctypes.data)

    def test_read_only_arrays_are_read(self):
        for x in (self.L, self.x):
            x.flags.writeable = False
        np.testing.assert_array_equal(cholupdate(self.L, self.x), cholupdate(self.L.copy(), self.x.copy()))

    def test_other_byte_orders_and_places_off_the_alignment(self):
        expected = cholupdate(self.L, self.x)
        np.testing.assert_array_equal(cholupdate(self.L.astype(">f8"), self.x.astype(">f8")), expected)
        off = off_alignment(self.L)
        np.testing.assert_array_equal(cholupdate(off, self.x), expected)
        cholupdate(off, self.x, out=off)
        np.testing.assert_array_equal(off, expected)

    def test_what_the_library_reads_is_aligned(self):
        off = off_alignment(np.arange(1.0, 4))
        self.assertFalse(off.flags.aligned)
        square = off_alignment(np.arange(9.0).reshape(3, 3))
        for given, made in ((off, _arrays.packed(off)), (off, _arrays.spread("scale", off, (3,))),
                            (off, _arrays.weights_of(off, 3, False)), (-off, _arrays.weights_of(off, 3, True)),
                            (square[:, np.newaxis], _arrays.members("x", square, 3))):
            self.assertTrue(made.flags.aligned and made.flags.c_contiguous)
            np.testing.assert_array_equal(made, given)
        aligned = np.ones(3)
        self.assertTrue(np.shares_memory(_arrays.packed(aligned), aligned))

    def test_dlpack(self):
        made = cholupdate(OfAnotherLibrary(self.L), OfAnotherLibrary(self.x))
        np.testing.assert_array_equal(made, cholupdate(self.L, self.x))

    @unittest.skipUnless(torch, "torch is not there")
    def test_torch(self):
        for dtype in (torch.float32, torch.float64):
            L, x = torch.tensor(self.L, dtype=dtype), torch.tensor(self.x, dtype=dtype)
            before = bits(L, x)
            made = cholupdate(L, x)
            self.assertIsInstance(made, torch.Tensor)
            self.assertEqual(made.dtype, dtype)
            self.assertLess(ratio(made.numpy(), L.numpy(), x.numpy()), 30)
            self.assertEqual(bits(L, x), before)
            self.assertEqual(bits(cholupdate(L.mT, x, lower=False).mT), bits(made))
            place = L.data_ptr()
            self.assertIs(cholupdate(L, x, out=L), L)
            self.assertEqual((L.data_ptr(), bits(L)), (place, bits(made)))
            f = Factor(L)
            f.update(x)
            self.assertEqual(bits(f.to_array()), bits(cholupdate(L.numpy(), x.numpy())))
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(L, x, out=torch.ones(5, 5, dtype=torch.complex128))

    @unittest.skipUnless(scipy, "scipy is not there")
    def test_factors_of_scipy(self):
        A = self.L @ self.L.T
        for lower in (True, False):
            c, lower = scipy.linalg.cho_factor(A, lower=lower)  # has numbers of A in the other triangle
            made = cholupdate(c, self.x, lower=lower)
            solved = scipy.linalg.cho_solve((made, lower), np.ones(5))
            np.testing.assert_allclose((A + self.x @ self.x.T) @ solved, np.ones(5), rtol=1e-12)


class Exceptions(unittest.TestCase):
    def test_they_can_be_pickled(self):
        import pickle
        error = gpucholmod.NotPositiveDefinite("no", pivot=3, member=1)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.pivot, again.row, again.member), ("no", 3, None, 1))


if __name__ == "__main__":
    unittest.main()
