"""What is wanted of libraries whose arrays may be in the memory of a GPU: where an array is, and copies by its library.

A library that the caller has not imported is not imported here.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Callable, Optional, Tuple, Type

import numpy as np

Maker = Callable[[Tuple[int, ...], np.dtype], Any]
_ON_HOST = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


def is_tensor(x: Any) -> bool:
    """Returns whether x is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


class Library:
    """Another library than those below. Its arrays need the methods copy() and astype() where a copy is made."""

    immutable = False  # whether arrays never change after they were made

    @staticmethod
    def copied(x: Any) -> Any:
        """Returns a copy, in the same memory and, where the library can, the same order."""
        if not hasattr(x, "copy"):
            raise TypeError(f"an array of type {type(x).__name__} has no method copy(): only out=L works")
        return x.copy()

    @staticmethod
    def packed(x: Any, dtype: np.dtype) -> Any:
        """Returns a copy in C order and of this dtype, in the same memory."""
        if not (hasattr(x, "astype") and hasattr(x, "copy")):
            raise TypeError(f"an array of type {type(x).__name__} would have to be copied, and has no methods for that")
        return x.astype(dtype).copy()

    @staticmethod
    def turned(x: Any) -> Any:
        """Returns x (c, n, k) as an array (c, k, n)."""
        if not hasattr(x, "swapaxes"):
            raise TypeError(f"an array of type {type(x).__name__} has no method swapaxes(), which this takes")
        return x.swapaxes(1, 2)

    @staticmethod
    def on_host(x: Any) -> Any:
        """Returns a copy in the host's memory."""
        return np.asarray(x)

    @staticmethod
    def maker(x: Any) -> Optional[Maker]:
        """Returns a function (shape, dtype) that makes arrays of this library on the GPU of x, in C order; None: it is
        not known how."""
        return None


class Torch(Library):
    @staticmethod
    def copied(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def packed(x: Any, dtype: np.dtype) -> Any:
        torch = sys.modules["torch"]
        return x.to(getattr(torch, dtype.name), copy=True, memory_format=torch.contiguous_format)

    @staticmethod
    def on_host(x: Any) -> Any:
        return x.cpu()

    @staticmethod
    def maker(x: Any) -> Maker:
        torch, device = sys.modules["torch"], x.device
        return lambda shape, dtype: torch.empty(shape, dtype=getattr(torch, dtype.name), device=device)


class Cupy(Library):
    @staticmethod
    def copied(x: Any) -> Any:
        with x.device:
            return x.copy("K")

    @staticmethod
    def packed(x: Any, dtype: np.dtype) -> Any:
        with x.device:
            return x.astype(dtype, order="C", copy=True)

    @staticmethod
    def on_host(x: Any) -> Any:
        return x.get()

    @staticmethod
    def maker(x: Any) -> Maker:
        cupy, device = sys.modules["cupy"], x.device

        def empty(shape: Tuple[int, ...], dtype: np.dtype) -> Any:
            with device:
                return cupy.empty(shape, dtype)
        return empty


class Jax(Library):
    """Arrays of JAX do not change: results are written into one that JAX has just made, and nobody has seen yet."""

    immutable = True

    @staticmethod
    def maker(x: Any) -> Maker:
        jax, devices = sys.modules["jax"], x.devices()

        def zeros(shape: Tuple[int, ...], dtype: np.dtype) -> Any:
            with jax.default_device(next(iter(devices))):
                return jax.numpy.zeros(shape, dtype)
        return zeros


@lru_cache(maxsize=256)
def _library_of(kind: type) -> Type[Library]:
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return Torch
    return {"cupy": Cupy, "jax": Jax, "jaxlib": Jax}.get(kind.__module__.partition(".")[0], Library)


def library_of(x: Any) -> Type[Library]:
    """Returns the library that x is an array of."""
    return _library_of(type(x))


def is_on_gpu(x: Any) -> bool:
    """Returns whether x is an array in memory that is not the host's."""
    if type(x) is np.ndarray:
        return False
    library = library_of(x)
    if library is Torch:
        return x.device.type != "cpu"
    if library is Cupy:
        return True
    device = getattr(x, "__dlpack_device__", None)
    return hasattr(x, "__cuda_array_interface__") or device is not None and device()[0] not in _ON_HOST


def on_host(x: Any) -> Any:
    """Returns x, or a copy in the host's memory if it is on a GPU."""
    return library_of(x).on_host(x) if is_on_gpu(x) else x
