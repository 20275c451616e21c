"""Arrays in the memory of a GPU as matrices of the C interface.

They are found out by torch's own functions, by `__cuda_array_interface__`, or by DLPack, and are not copied unless
their strides are neither those of rows nor of columns. Work on them waits for their streams.
"""

from __future__ import annotations

import sys
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from ctypes import py_object, pythonapi
from functools import lru_cache
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ._arrays import FLOAT64, TYPES, require_members, wrong_columns
from ._libraries import is_tensor, library_of
from ._library import Matrix
from .errors import BadArgument

LEGACY = 1  # the default stream, as `__cuda_array_interface__` and DLPack call it
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_CUDA = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _DLTensor)]


_is_capsule, _pointer = pythonapi.PyCapsule_IsValid, pythonapi.PyCapsule_GetPointer
_is_capsule.argtypes = _pointer.argtypes = [py_object, c_char_p]
_pointer.restype = c_void_p


class GpuArray:
    """An array in the memory of a GPU.

    data: the address of the first element. strides: in elements. dtype: None if NumPy has none such. device: the number
    of the GPU, or None if it is not known. stream: what work on it waits for, LEGACY or as of CUDA; None: nothing.
    owner: the array of the caller's; memory: what else has to exist as long as the address is used."""

    __slots__ = ("owner", "data", "shape", "strides", "dtype", "device", "stream", "readonly", "memory")

    def __init__(self, owner: Any, data: int, shape: Tuple[int, ...], strides: Tuple[int, ...],
                 dtype: Optional[np.dtype], device: Optional[int] = None, stream: Optional[int] = None):
        self.owner, self.data, self.shape, self.strides = owner, data, shape, strides
        self.dtype, self.device, self.stream, self.readonly, self.memory = dtype, device, stream, False, None

    @property
    def ndim(self) -> int:
        return len(self.shape)


def queue(stream: Optional[int]) -> Optional[int]:
    """Returns options->stream, which is None for the default stream."""
    return None if stream == LEGACY else stream


def view(name: str, x: Any, stream: Optional[int] = None) -> GpuArray:
    """Returns a description of x, which is on a GPU. stream: what the call waits for, which will wait for the stream of
    x; None: for the latter.

    Raises TypeError if x is in memory that is not of CUDA, or needs a gradient, and BadArgument if it is off its
    alignment."""
    if is_tensor(x):
        found = _of_torch(name, x)
    else:
        interface = getattr(x, "__cuda_array_interface__", None)
        # Before its version 3 the interface does not tell of streams.
        if interface is None or interface.get("version", 0) < 3 and hasattr(x, "__dlpack__"):
            found = _of_dlpack(name, x, stream or LEGACY)
        else:
            found = _of_interface(name, x, interface)
    if found.dtype in TYPES and found.data % found.dtype.itemsize:
        raise BadArgument(f"{name} is off the alignment of its dtype")
    if stream is not None:
        if found.stream not in (None, stream):
            _wait(name, x, stream)
        found.stream = stream
    return found


def _wait(name: str, x: Any, stream: int) -> None:
    """Makes a stream wait for that of x. Raises BadArgument if x cannot do that."""
    if not hasattr(x, "__dlpack__"):
        raise BadArgument(f"{name} belongs to another stream than the other arrays: synchronise the streams, and give "
                          f"{name} without its own")
    x.__dlpack__(stream=stream)


@lru_cache(maxsize=None)
def _current_stream() -> Callable[[int], int]:
    """Returns torch's function that tells the current stream of a GPU, by its number."""
    torch = sys.modules["torch"]
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # what follows makes an object of Python
    return quick or (lambda device: torch.cuda.current_stream(device).cuda_stream)


@lru_cache(maxsize=None)
def _of_torch_dtype(dtype: Any) -> Optional[np.dtype]:
    try:
        return np.dtype(str(dtype).partition(".")[2])
    except TypeError:
        return None


def _of_torch(name: str, x: Any) -> GpuArray:
    torch = sys.modules["torch"]
    if x.requires_grad or x.layout is not torch.strided or x.is_neg() or not x.is_cuda:
        raise TypeError(f"{name} must be a dense tensor on a GPU of CUDA that needs no gradient: {name}.detach()")
    device = x.get_device()
    return GpuArray(x, x.data_ptr(), tuple(x.shape), x.stride(), _of_torch_dtype(x.dtype), device,
                    _current_stream()(device) or LEGACY)


def _of_interface(name: str, x: Any, interface: dict) -> GpuArray:
    dtype, shape, strides = np.dtype(interface["typestr"]), tuple(interface["shape"]), interface.get("strides")
    stream = interface.get("stream")
    if stream == 0:
        raise BadArgument(f"the stream 0 of {name}.__cuda_array_interface__ is ambiguous")
    if interface.get("mask") is not None:
        raise TypeError(f"{name} is a masked array: its masked values would count")
    if strides is None:
        strides = _without_gaps(shape)
    elif any(step % dtype.itemsize for step in strides):
        raise BadArgument(f"{name} has strides that are no multiples of its numbers")
    else:
        strides = tuple(step // dtype.itemsize for step in strides)
    data, readonly = interface["data"]
    found = GpuArray(x, data or 0, shape, strides, dtype, None, stream)
    found.readonly, found.memory = readonly or library_of(x).immutable, interface
    return found


def _of_dlpack(name: str, x: Any, stream: int) -> GpuArray:
    if x.__dlpack_device__()[0] not in _CUDA:
        raise TypeError(f"{name} is neither in the host's memory nor on a GPU of CUDA")
    try:
        capsule = x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a library from before version 1 of DLPack
        capsule = x.__dlpack__(stream=stream)
    tensor, readonly = _tensor(name, capsule)
    found = GpuArray(x, (tensor.data or 0) + tensor.byte_offset, *_shape_and_strides(tensor), _of_dlpack_dtype(tensor),
                     tensor.device, stream)
    found.readonly, found.memory = readonly or library_of(x).immutable, capsule
    return found


def _tensor(name: str, capsule: Any) -> Tuple[_DLTensor, bool]:
    """Returns the tensor of a capsule, which keeps it, and whether it may only be read. The capsule stays unused, so
    that its end is that of the tensor. Raises TypeError."""
    if _is_capsule(capsule, b"dltensor"):
        return _DLTensor.from_address(_pointer(capsule, b"dltensor")), False
    if not _is_capsule(capsule, b"dltensor_versioned"):
        raise TypeError(f"{name}.__dlpack__() has returned no capsule of DLPack")
    managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    if managed.major != 1:
        raise TypeError(f"{name}.__dlpack__() has returned a tensor of version {managed.major} of DLPack, not 1")
    return managed.tensor, bool(managed.flags & _READ_ONLY)


def _shape_and_strides(tensor: _DLTensor) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    shape = tuple(tensor.shape[:tensor.ndim])
    return shape, tuple(tensor.strides[:tensor.ndim]) if tensor.strides else _without_gaps(shape)


def _of_dlpack_dtype(tensor: _DLTensor) -> Optional[np.dtype]:
    try:
        return np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}") if tensor.lanes == 1 else None
    except (KeyError, TypeError):
        return None


def _without_gaps(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """Returns the strides of an array in C order."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


def real_on_gpu(name: str, x: Any, dtype: Optional[np.dtype] = None, stream: Optional[int] = None) -> GpuArray:
    """Returns x as an array of float64 or float32; of `dtype`, if it is given. Integers and booleans become float64.
    A number that is too large for `dtype` becomes infinite. Raises TypeError, and what view() does."""
    found = view(name, x, stream)
    own = found.dtype
    if own in TYPES and (dtype is None or own == dtype):
        return found
    if own not in TYPES and (own is None or own.kind not in "biu"):
        raise TypeError(f"{name} must be float64 or float32, or integers, not {own or getattr(x, 'dtype', 'another')}")
    return view(name, library_of(x).packed(x, dtype or FLOAT64), stream)


def _by_columns(x: GpuArray, rows: int, cols: int, down: int, across: int) -> Optional[Matrix]:
    """Returns a matrix with these strides, or None if there is none such."""
    if rows == 0 or cols <= 1:
        across = rows
    if rows > 1 and cols > 0 and down != 1 or across < rows:
        return None
    return Matrix(x.data, rows, cols, across, TYPES[x.dtype])


def columns_on_gpu(name: str, x: Any, n: int, dtype: Optional[np.dtype] = None,
                   stream: Optional[int] = None) -> Tuple[GpuArray, Matrix]:
    """Returns x, (n,) or (n, k), and the matrix of its k columns, as columns() does for arrays of the host."""
    return columns_of(name, real_on_gpu(name, x, dtype, stream), n, stream)


def columns_of(name: str, x: GpuArray, n: int, stream: Optional[int] = None) -> Tuple[GpuArray, Matrix]:
    """Returns the same for x that has been described."""
    if x.ndim not in (1, 2) or x.shape[0] != n:
        raise wrong_columns(name, x.shape, n)
    (rows, cols), (down, across) = (x.shape, x.strides) if x.ndim == 2 else ((n, 1), (x.strides[0], n))
    matrix = _by_columns(x, rows, cols, down, across)
    return (x, matrix) if matrix is not None else packed_columns(name, x, x.dtype, stream)


def packed_columns(name: str, x: GpuArray, dtype: np.dtype, stream: Optional[int] = None) -> Tuple[GpuArray, Matrix]:
    """Returns a copy of x, (n,) or (n, k), whose rows are the columns of x, and the matrix of the latter. Raises
    TypeError if the library of x makes no such copy."""
    given = x.owner.T if x.ndim == 2 else x.owner
    copy = view(name, library_of(given).packed(given, dtype), stream)
    rows, cols = (*x.shape, 1)[:2]
    matrix = _by_columns(copy, rows, cols, copy.strides[-1], copy.strides[0])
    if matrix is None:
        raise TypeError(f"{name} would have to be copied, and its library makes no copy in C order: give X.T of rows X")
    return copy, matrix


def _side_by_side(x: GpuArray, c: int, k: int, n: int, steps: Tuple[int, ...]) -> Optional[Matrix]:
    """Returns the k columns of each of c members as one matrix (n, k c), or None if there is none such. steps: the
    strides of members, of columns, and of their numbers."""
    of_members, across, down = steps
    if k == 1:
        across = of_members
    elif c > 1 and k > 0 and of_members != k * across:
        return None
    return _by_columns(x, n, k * c, down, across)


def members_on_gpu(name: str, x: GpuArray, n: int, stream: Optional[int] = None) -> Tuple[GpuArray, Matrix]:
    """Returns x, (c, n) or (c, n, k), and the matrix of all columns of all members, side by side. x is copied only if
    there is no such matrix. Raises BadArgument if x has another shape, and what packed_members() does."""
    require_members(name, x.shape, n)
    c, k = (*x.shape, 1)[0], (*x.shape, 1)[2]
    steps = (x.strides[0], (*x.strides, n)[2], x.strides[1])
    matrix = _side_by_side(x, c, k, n, steps)
    return (x, matrix) if matrix is not None else packed_members(name, x, x.dtype, stream)


def packed_members(name: str, x: GpuArray, dtype: np.dtype, stream: Optional[int] = None) -> Tuple[GpuArray, Matrix]:
    """Returns a copy of x, (c, n) or (c, n, k), as an array (c, n) or (c, k, n) in C order, and the matrix of its
    columns. Raises TypeError if the library of x makes no such copy."""
    library = library_of(x.owner)
    copy = view(name, library.packed(x.owner if x.ndim == 2 else library.turned(x.owner), dtype), stream)
    c, n = copy.shape[0], copy.shape[-1]
    k = 1 if x.ndim == 2 else copy.shape[1]
    matrix = _side_by_side(copy, c, k, n, (copy.strides[0], copy.strides[-2], copy.strides[-1]))
    if matrix is None:
        raise TypeError(f"{name} would have to be copied, and its library makes no copy in C order: give X.swapaxes(1, "
                        "2) of rows X")
    return copy, matrix


def either_on_gpu(L: GpuArray) -> Tuple[Optional[Matrix], bool]:
    """Returns L (n, n) as a matrix, as by_either() does for arrays of the host."""
    (n, _), (down, across) = L.shape, L.strides
    matrix = _by_columns(L, n, n, across, down)
    return (matrix, True) if matrix is not None else (_by_columns(L, n, n, down, across), False)


def copy_of(L: GpuArray, lower: bool) -> Any:
    """Returns a copy of L (n, n) by its library, in C order if L is no matrix as it is, or if it is a lower factor: in
    C order that is an upper one by columns, which is modified in less time."""
    library = library_of(L.owner)
    R, turned = either_on_gpu(L)
    return library.packed(L.owner, L.dtype) if R is None or lower and not turned else library.copied(L.owner)
