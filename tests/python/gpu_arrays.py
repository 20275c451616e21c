"""Arrays in the host's memory that say that they are on a GPU."""

import contextlib
import ctypes
import unittest
from unittest import mock

import numpy as np

from gpucholmod import Factor, _update_gpu, factor
from gpucholmod._gpu import _DLTensor, _Versioned
from gpucholmod._handle import Handle
from gpucholmod._library import HOST


class OfInterface:
    """Has __cuda_array_interface__, and what arrays of CuPy have besides."""

    def __init__(self, array, **more):
        self.array, self.more = array, more

    @property
    def __cuda_array_interface__(self):
        found = dict(self.array.__array_interface__, version=3, stream=1)
        return {**found, **self.more}

    def _made(self, array):
        return type(self)(array, **self.more)

    @property
    def T(self):
        return self._made(self.array.T)

    @property
    def ndim(self):
        return self.array.ndim

    @property
    def shape(self):
        return self.array.shape

    def swapaxes(self, one, other):
        return self._made(self.array.swapaxes(one, other))

    def copy(self):
        return self._made(self.array.copy("K"))

    def astype(self, dtype):
        return self._made(self.array.astype(dtype, order="C"))

    def __array__(self, dtype=None):
        return self.array

    def __getitem__(self, key):
        return self._made(self.array[key])

    def __setitem__(self, key, value):
        self.array[key] = value.array


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OfDlpack(OfInterface):
    """Has DLPack alone. version: (major, minor) of its capsules, or None for those from before version 1. asked: the
    streams that it was asked for."""

    def __init__(self, array, device=(2, 0), version=(1, 0), flags=0, packed=False):
        super().__init__(array, device=device, version=version, flags=flags, packed=packed)
        self.device, self.version, self.flags, self.packed, self.asked = device, version, flags, packed, []

    @property
    def __cuda_array_interface__(self):
        raise AttributeError

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **more):
        if self.version is None and more:
            raise TypeError("an argument that is not known")
        self.asked.append(stream)
        x = self.array
        numbers = ctypes.c_int64 * max(x.ndim, 1)
        self.kept = numbers(*x.shape), numbers(*(step // x.itemsize for step in x.strides))
        pointers = [ctypes.cast(each, ctypes.POINTER(ctypes.c_int64)) for each in self.kept]
        code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[x.dtype.kind]
        tensor = _DLTensor(x.ctypes.data - 8, *self.device, x.ndim, code, 8 * x.itemsize, 1, pointers[0],
                           None if self.packed else pointers[1], 8)
        if self.version is None:
            self.managed, name = _Managed(tensor), b"dltensor"
        else:
            self.managed, name = _Versioned(*self.version, None, None, self.flags, tensor), b"dltensor_versioned"
        return _new(ctypes.addressof(self.managed), name, None)


FORMS = (OfInterface, OfDlpack)


@contextlib.contextmanager
def host_as_gpu():
    """The library is told that numbers are in the host's memory, where they are."""
    with mock.patch.object(_update_gpu, "ANY_GPU", HOST), mock.patch.object(factor, "ANY_GPU", HOST), \
         mock.patch.object(Factor, "_number_on_gpu", lambda *arguments: HOST), \
         mock.patch.object(Handle, "_require_gpu", lambda *arguments: None):
        yield


class HostAsGpu(unittest.TestCase):
    """Tests of whole calls, by a library that finds all numbers in the host's memory."""

    def setUp(self):
        self.rng = np.random.default_rng(11)
        stack = contextlib.ExitStack()
        stack.enter_context(host_as_gpu())
        self.addCleanup(stack.close)
