"""How arrays on a GPU are understood. Their memory is the host's, so that no GPU is needed."""

import unittest
from unittest import mock

import numpy as np

import gpucholmod
from cases import bits, factor_of, off_alignment, ratio
from gpu_arrays import FORMS, HostAsGpu, OfDlpack, OfInterface
from gpucholmod import Batch, Factor, RecursiveLeastSquares, _gpu, _library, cholupdate
from gpucholmod._library import ANY_GPU, LOWER, UPPER

try:
    import torch
except ImportError:
    torch = None

class Views(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(12.0).reshape(3, 4)

    def test_pointers_shapes_strides_and_types(self):
        for x in (self.x, self.x.T, self.x[1:, ::2], self.x[::-1], self.x[0], self.x.astype(np.float32),
                  self.x.astype(np.int32), self.x > 3, np.array(3.0)):
            for form in FORMS:
                found = _gpu.view("x", form(x))
                self.assertEqual((found.data, found.shape, found.dtype), (x.ctypes.data, x.shape, x.dtype))
                self.assertEqual(found.strides, tuple(step // x.itemsize for step in x.strides))
                self.assertFalse(found.readonly)

    def test_no_strides_mean_c_order(self):
        for x in (self.x, np.zeros((2, 3, 4)), np.zeros(5), np.zeros(())):
            expected = tuple(step // 8 for step in x.strides)
            self.assertEqual(_gpu.view("x", OfInterface(x, strides=None)).strides, expected)
            self.assertEqual(_gpu.view("x", OfDlpack(x, packed=True)).strides, expected)

    def test_streams(self):
        for given, waited, queue in ((None, None, None), (1, 1, None), (2, 2, 2), (12345, 12345, 12345)):
            found = _gpu.view("x", OfInterface(self.x, stream=given))
            self.assertEqual((found.stream, _gpu.queue(found.stream)), (waited, queue))
        with self.assertRaises(gpucholmod.BadArgument):
            _gpu.view("x", OfInterface(self.x, stream=0))
        for stream in (None, 1, 2, 12345):
            x = OfDlpack(self.x)
            self.assertEqual(_gpu.view("x", x, stream).stream, stream or 1)
            self.assertEqual(x.asked, [stream or 1])

    def test_another_stream_is_waited_for(self):
        class Both(OfInterface):
            def __dlpack__(self, stream):
                self.asked = stream

        x = Both(self.x, stream=7)
        self.assertEqual(_gpu.view("x", x, 9).stream, 9)
        self.assertEqual(x.asked, 9)
        self.assertEqual(_gpu.view("x", x, 7).stream, 7)
        with self.assertRaises(gpucholmod.BadArgument):
            _gpu.view("x", OfInterface(self.x, stream=7), 9)
        self.assertEqual(_gpu.view("x", OfInterface(self.x, stream=None), 9).stream, 9)

    def test_an_interface_without_streams_yields_to_dlpack(self):
        class Old(OfDlpack):
            __cuda_array_interface__ = {"version": 2}

        x = Old(self.x)
        self.assertEqual(_gpu.view("x", x, 5).data, x.array.ctypes.data)
        self.assertEqual(x.asked, [5])
        found = _gpu.view("x", OfInterface(self.x, version=2, stream=None))
        self.assertEqual((found.data, found.stream), (self.x.ctypes.data, None))

    def test_capsules_of_all_versions(self):
        for version in (None, (1, 0), (1, 7)):
            self.assertEqual(_gpu.view("x", OfDlpack(self.x, version=version)).data, self.x.ctypes.data)
        with self.assertRaises(TypeError):
            _gpu.view("x", OfDlpack(self.x, version=(2, 0)))
        self.assertTrue(_gpu.view("x", OfDlpack(self.x, flags=1)).readonly)
        self.assertFalse(_gpu.view("x", OfDlpack(self.x, flags=2)).readonly)
        self.assertTrue(_gpu.view("x", OfInterface(self.x, data=(self.x.ctypes.data, True))).readonly)
        strange = OfDlpack(self.x)
        strange.__class__ = type("Strange", (OfDlpack,), {"__dlpack__": lambda self, **more: 1})
        with self.assertRaises(TypeError):
            _gpu.view("x", strange)

    def test_capsules_of_other_libraries(self):
        given = [np.arange(12.0).reshape(3, 4).T, np.arange(3, dtype=np.int32)]
        if torch is not None:
            given += [torch.ones(3, 4, dtype=torch.float32)[:, 1:]]
        for x in given:
            data = x.ctypes.data if isinstance(x, np.ndarray) else x.data_ptr()
            steps = tuple(step // np.asarray(x).itemsize for step in np.asarray(x).strides)
            capsule = x.__dlpack__()
            tensor, _ = _gpu._tensor("x", capsule)
            self.assertEqual((tensor.data or 0) + tensor.byte_offset, data)
            self.assertEqual(_gpu._shape_and_strides(tensor), (tuple(x.shape), steps))
            self.assertEqual(_gpu._of_dlpack_dtype(tensor), np.asarray(x).dtype)

    def test_what_cannot_be_used(self):
        for device in ((10, 0), (8, 0)):  # AMD's, Apple's
            with self.assertRaises(TypeError):
                _gpu.view("x", OfDlpack(self.x, device=device))
        for form in FORMS:
            with self.assertRaises(gpucholmod.BadArgument):
                _gpu.view("x", form(off_alignment(self.x)))
            for dtype in (np.complex64, np.float16):
                with self.assertRaises(TypeError):
                    _gpu.real_on_gpu("x", form(self.x.astype(dtype)))
        with self.assertRaises(gpucholmod.BadArgument):
            _gpu.view("x", OfInterface(self.x, strides=(32, 12)))
        with self.assertRaises(TypeError):
            _gpu.view("x", OfInterface(self.x, mask=OfInterface(self.x > 1)))


class Matrices(unittest.TestCase):
    def test_columns_are_not_copied_where_they_follow_one_another(self):
        X = np.arange(20.0).reshape(4, 5)
        for form in FORMS:
            for x in (X.T, X[:2].T, X[0], X[1:, 1:].T, np.ones((4, 5)).T[:, :1], np.ones((1, 5)).T, X[:0].T):
                found, matrix = _gpu.columns_on_gpu("x", form(x), len(x))
                self.assertEqual((found.data, matrix.data or 0), (x.ctypes.data, x.ctypes.data))
                self.assertEqual((matrix.rows, matrix.cols), (*x.shape, 1)[:2])
                if matrix.cols > 1:
                    self.assertEqual(matrix.ld, x.strides[1] // 8)

    def test_others_are_copied(self):
        X = np.arange(20.0).reshape(4, 5)
        for form in FORMS:
            for x in (X, X[:, ::2], X[::-1].T[::-1], X[:, 0], np.broadcast_to(X[:, :1], (4, 3)), X.astype(np.int64)):
                found, matrix = _gpu.columns_on_gpu("x", form(x), len(x))
                self.assertNotEqual(found.data, x.ctypes.data)
                self.assertEqual(matrix.ld, len(x))
                np.testing.assert_array_equal(found.owner.array.T, x)

    def test_shapes(self):
        for x in (np.ones(()), np.ones(4), np.ones((4, 5)), np.ones((5, 1, 1))):
            with self.assertRaises(gpucholmod.BadArgument):
                _gpu.columns_on_gpu("x", OfInterface(x), 5)


class Numbers(HostAsGpu):
    def test_update_makes_a_new_array(self):
        for form in FORMS:
            for dtype in (np.float32, np.float64):
                for n in (0, 1, 7, 33):
                    for lower in (True, False):
                        for order in "CF":
                            self.check_update(form, np.array(factor_of(self.rng, n, dtype, lower), order=order), lower)
            wide = factor_of(self.rng, 9)
            self.check_update(form, np.pad(wide, 2)[2:-2, 2:-2], True)
            self.check_update(form, np.kron(wide, np.ones((2, 2)))[::2, ::2], True)

    def check_update(self, form, L, lower):
        x = self.rng.standard_normal((len(L), 3)).astype(L.dtype)
        weights = [1, -1e-3, 0.5]
        for given in (form(x), form(np.asfortranarray(x)), x):
            before = bits(L, x)
            there = form(L)
            made = cholupdate(there, given, weights, 2, lower=lower)
            self.assertIs(type(made), form)
            self.assertIsNot(made, there)
            self.assertEqual(made.array.dtype, L.dtype)
            self.assertEqual(bits(L, x), before)
            self.assertLess(ratio(made.array, L, x, weights, 2, lower), 30)

    def test_in_place_and_out(self):
        L, x = factor_of(self.rng, 8), self.rng.standard_normal((8, 2))
        expected = cholupdate(L, x)
        for form in FORMS:
            for given in (L.copy(), np.asfortranarray(L), np.kron(L, np.ones((2, 2)))[::2, ::2]):
                there = form(given)
                self.assertIs(cholupdate(there, form(x), out=there), there)
                np.testing.assert_allclose(given, expected, rtol=1e-13, atol=1e-13)
            given = L.copy()
            there = form(given)
            cholupdate(there, form(given[2]), out=there)  # x is a part of L
            np.testing.assert_allclose(given, cholupdate(L, L[2]), rtol=1e-13, atol=1e-13)
            out, before = form(np.full((8, 8), 3.0)), bits(L)
            self.assertIs(cholupdate(form(L), form(x), out=out), out)
            np.testing.assert_allclose(out.array, expected, rtol=1e-13, atol=1e-13)
            self.assertEqual(bits(L), before)

    def test_out_has_to_fit(self):
        L, x = factor_of(self.rng, 4), np.ones(4)
        there = OfInterface(L)
        read_only = OfInterface(L, data=(L.ctypes.data, True))
        for out in (OfInterface(np.ones((4, 3))), OfInterface(L.astype(np.float32)), read_only):
            with self.assertRaises(gpucholmod.BadArgument):
                cholupdate(there, x, out=out)
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(read_only, x, out=read_only)
        integers = OfInterface(np.diag([2, 3, 4, 5]))
        with self.assertRaises(gpucholmod.BadArgument):
            cholupdate(integers, x, out=integers)
        np.testing.assert_array_equal(integers.array, np.diag([2, 3, 4, 5]))
        with self.assertRaises(TypeError):
            cholupdate(there, x, out=L.copy())

    def test_failures_change_nothing(self):
        L = factor_of(self.rng, 6)
        before = bits(L)
        for form in FORMS:
            there = form(L)
            with self.assertRaises(gpucholmod.NotPositiveDefinite) as caught:
                cholupdate(there, form(100 * np.eye(6)[2]), downdate=True, out=there)
            self.assertEqual(caught.exception.pivot, 2)
            with self.assertRaises(gpucholmod.NotFinite):
                cholupdate(there, form(np.full(6, np.nan)), out=there)
            with self.assertRaises(gpucholmod.BadArgument):
                cholupdate(there, form(np.ones(5)), out=there)
            with self.assertRaises(gpucholmod.BadArgument):
                cholupdate(form(L[:5]), form(np.ones(5)))
            with self.assertRaises(TypeError):
                cholupdate(form(L[np.newaxis]), form(np.ones((1, 6))))
        self.assertEqual(bits(L), before)

    def test_integers_become_numbers_of_the_factor(self):
        made = cholupdate(OfInterface(np.diag([2, 3])), OfInterface(np.array([1, 0])))
        np.testing.assert_allclose(made.array, np.diag([np.sqrt(5), 3]))
        single = cholupdate(OfInterface(np.eye(2, dtype=np.float32)), OfInterface(np.array([True, False])))
        np.testing.assert_allclose(single.array, np.diag([np.sqrt(2), 1]), rtol=1e-6)

    def test_factor(self):
        L, x = factor_of(self.rng, 9), self.rng.standard_normal((9, 2))
        A = L @ L.T
        for form in FORMS:
            for lower in (True, False):
                for given in (L if lower else L.T, np.kron(L if lower else L.T, np.ones((2, 2)))[::2, ::2]):
                    f = Factor(form(given), lower=lower)
                    np.testing.assert_array_equal(f._on_host(), L)
            f.update(form(x), 0.5)
            f.downdate(form(np.asfortranarray(x)), 0.5)
            np.testing.assert_allclose(f._on_host(), L, atol=1e-12)
            f.append(form(np.r_[np.ones(9), 100]))
            f.insert(0, form(np.vstack([50 * np.eye(2), np.ones((10, 2))])))
            self.assertEqual(f.order, 12)
            f.delete([0, 1, 11])
            for b in (x, np.asfortranarray(x), x[:, 0], x[:, :0]):
                solved = f.solve(form(b))
                self.assertIs(type(solved), form)
                np.testing.assert_allclose(A @ solved.array, b, atol=1e-10)
            self.assertEqual(f.solve(form(x.astype(np.float32))).array.dtype, np.float64)
            for call in (lambda: f.solve(form(np.ones(8))), lambda: f.update(form(np.ones(8))),
                         lambda: f.append(form(np.ones(9))), lambda: f.solve(form(x), "L")):
                with self.assertRaises(gpucholmod.BadArgument):
                    call()
            self.assertIsInstance(f.to_array(), np.ndarray)  # it is not known how the library makes an array

    def test_regression(self):
        X, y = self.rng.standard_normal((20, 3)), self.rng.standard_normal(20)
        fit, other = RecursiveLeastSquares(3, 1.0), RecursiveLeastSquares(3, 1.0)
        for i in range(5):
            other.update(X[i], y[i], 2)
            fit.update(OfInterface(X)[i], y[i], 2)
        other.update(X[5:], y[5:], np.arange(15))
        fit.update(OfInterface(X[5:]), OfInterface(y[5:]), OfInterface(np.arange(15)))
        np.testing.assert_array_equal(fit.coef, other.coef)


class Calls(unittest.TestCase):
    """What the library is told: pointers, the triangle, any GPU, and the stream."""

    def setUp(self):
        self.L, self.x = factor_of(np.random.default_rng(2), 6), np.ones((4, 6))

    def told(self, L, x, in_place=True, **arguments):
        """Returns the matrices, as (data, ld), and the options of the call that cholupdate() makes."""
        calls = []

        def note(*given):
            calls.append(given)
            return 0

        _library.lib.update  # loads the library
        with mock.patch.dict(_library.lib.__dict__, update=note, update_into=note):
            cholupdate(L, x, out=L if in_place else None, **arguments)
        (given,) = calls
        matrices = [(part.data, part.ld) for part in given if isinstance(part, _library.Matrix)]
        return matrices, given[-2]._obj

    def test_arrays_are_used_where_they_are(self):
        L, X = self.L, self.x
        wide = np.ones((6, 8))[:, 1:7]
        for form in FORMS:
            for given, ld, triangle in ((L, 6, UPPER), (np.asfortranarray(L), 6, LOWER), (wide, 8, UPPER)):
                matrices, chosen = self.told(form(given), form(X).T)
                self.assertEqual(matrices, [(given.ctypes.data, ld), (X.ctypes.data, 6)])
                self.assertEqual((chosen.triangle, chosen.device), (triangle, ANY_GPU))
                _, chosen = self.told(form(given), X.T, lower=False)
                self.assertEqual(chosen.triangle, UPPER + LOWER - triangle)

    def test_a_new_result_is_an_upper_factor_by_columns(self):
        for form in FORMS:
            matrices, chosen = self.told(form(self.L), form(self.x).T, in_place=False)
            self.assertEqual((len(matrices), matrices[0], chosen.triangle), (3, (self.L.ctypes.data, 6), UPPER))
            matrices, chosen = self.told(form(np.asfortranarray(self.L)), form(self.x).T, in_place=False)
            self.assertEqual((len(matrices), chosen.triangle), (2, UPPER))

    def test_streams(self):
        for given, queue in ((None, None), (1, None), (2, 2), (77, 77)):
            there, x = OfInterface(self.L, stream=given), OfInterface(self.x, stream=given).T
            self.assertEqual(self.told(there, x)[1].stream, queue)
        x = OfInterface(self.x, stream=77).T
        self.assertEqual(self.told(OfInterface(self.L, stream=None), x)[1].stream, 77)
        L, x = OfDlpack(self.L), OfDlpack(self.x.T.copy("F"))
        self.assertEqual(self.told(L, x)[1].stream, None)
        self.assertEqual((L.asked, x.asked), ([1], [1]))
        x = OfDlpack(self.x.T.copy("F"))
        self.assertEqual(self.told(OfInterface(self.L, stream=77), x)[1].stream, 77)
        self.assertEqual(x.asked, [77])


class Refusals(unittest.TestCase):
    def test_where_numbers_have_to_be_on_the_host(self):
        L = factor_of(np.random.default_rng(1), 5)
        x, here, many = np.ones((5, 2)), Factor(L), Batch(L[np.newaxis])
        for form in FORMS:
            for call in (lambda: cholupdate(L, form(x)), lambda: cholupdate(L, x, out=form(L)),
                         lambda: cholupdate(L, x, scale=form(np.ones(()))),
                         lambda: Factor(form(L), device="host"), lambda: Factor.from_matrix(form(L)),
                         lambda: here.update(form(x)), lambda: here.solve(form(x)),
                         lambda: here.append(form(np.ones(6))), lambda: gpucholmod.Batch(form(L[np.newaxis])),
                         lambda: many.update(form(x[np.newaxis])), lambda: many.solve(form(x[np.newaxis])),
                         lambda: many.append(form(np.ones((1, 6)))),
                         lambda: gpucholmod.solve_modified(many, form(x[np.newaxis])),
                         lambda: gpucholmod.solve_modified(form(L), x[np.newaxis]),
                         lambda: gpucholmod.solve_modified(L, form(x[np.newaxis]))):
                with self.assertRaises(TypeError):
                    call()


if __name__ == "__main__":
    unittest.main()
