"""libgpucholmod by ctypes: its structs and functions (gpucholmod.h describes them), and where it is found."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from ctypes import byref, c_double, c_int, c_size_t, c_ssize_t, c_void_p
from functools import lru_cache
from operator import index as as_integer
from pathlib import Path
from typing import Any, List, Optional

from .errors import BadArgument, LibraryNotFound

ABI = 2
OK = 0
DOUBLE, FLOAT = 1, 2
UPPER, LOWER = 0, 1
HOST, ANY_GPU = -1, -2
ALL_THREADS = -1


class Matrix(ctypes.Structure):
    """gpucholmod_matrix and gpucholmod_const_matrix."""

    _fields_ = [("data", c_void_p), ("rows", c_ssize_t), ("cols", c_ssize_t), ("ld", c_ssize_t), ("type", c_int)]


class Status(ctypes.Structure):
    """gpucholmod_status."""

    _fields_ = [("code", c_int), ("pivot", c_ssize_t), ("row", c_ssize_t), ("col", c_ssize_t), ("member", c_ssize_t),
                ("argument", ctypes.c_char * 32), ("message", ctypes.c_char * 240)]


class RightSides(ctypes.Structure):
    """gpucholmod_right_sides."""

    _fields_ = [("z", Matrix), ("Y", Matrix), ("rss", c_void_p)]


class Options(ctypes.Structure):
    """gpucholmod_options."""

    _fields_ = [("size", c_size_t), ("triangle", c_int), ("trusted", c_int), ("threads", c_int), ("device", c_int),
                ("workspace", c_void_p), ("workspace_size", c_size_t), ("progress", c_void_p),
                ("progress_data", c_void_p), ("stream", c_void_p), ("verdict", c_void_p),
                ("devices", c_void_p), ("device_count", c_ssize_t)]


class BatchModification(ctypes.Structure):
    """gpucholmod_batch_modification."""

    _fields_ = [("k", c_ssize_t), ("V", Matrix), ("weights", c_void_p), ("weights_count", c_ssize_t),
                ("scales", c_void_p), ("independent", c_int), ("sides", ctypes.POINTER(RightSides))]


class BatchInsertion(ctypes.Structure):
    """gpucholmod_batch_insertion."""

    _fields_ = [("p", c_ssize_t), ("X", Matrix), ("at", c_void_p), ("at_count", c_ssize_t), ("independent", c_int),
                ("sides", ctypes.POINTER(RightSides))]


class BatchSystems(ctypes.Structure):
    """gpucholmod_batch_systems."""

    _fields_ = [("m", c_ssize_t), ("b", Matrix), ("solution", Matrix), ("quadratic", c_void_p), ("logdet", c_void_p),
                ("pivots", c_void_p)]


class Modifications(ctypes.Structure):
    """gpucholmod_modifications."""

    _fields_ = [("count", c_ssize_t), ("columns", c_void_p), ("V", Matrix), ("weights", c_void_p),
                ("scales", c_void_p), ("m", c_ssize_t), ("b", Matrix), ("solution", Matrix), ("quadratic", c_void_p),
                ("logdet", c_void_p), ("pivots", c_void_p)]


_POINTER, _INDEX = c_void_p, c_ssize_t
_END = [_POINTER, _POINTER, _POINTER]  # right-hand sides, options, status

# The arguments of functions that return a gpucholmod_code.
_CALLS = {
    "update": [Matrix, Matrix, _POINTER, c_double] + _END,
    "update_into": [Matrix, Matrix, Matrix, _POINTER, c_double] + _END,
    "solve_modified": [Matrix, _POINTER, _POINTER, _POINTER],
    "factorise": [Matrix, _POINTER, _POINTER],
    "factor_create": [Matrix, _INDEX, _POINTER, _POINTER, _POINTER],
    "factor_copy": [_POINTER, _POINTER, _POINTER],
    "factor_update": [_POINTER, Matrix, _POINTER, c_double] + _END,
    "factor_insert": [_POINTER, _INDEX, Matrix] + _END,
    "factor_delete": [_POINTER, _POINTER, _INDEX] + _END,
    "factor_shift": [_POINTER, _INDEX, _INDEX] + _END,
    "factor_solve": [_POINTER, c_int, Matrix, _POINTER],
    "factor_solve_modified": [_POINTER, _POINTER, _POINTER, _POINTER],
    "factor_get": [_POINTER, Matrix, _POINTER, _POINTER],
    "factor_diagonal": [_POINTER, _POINTER, _POINTER],
    "factor_inverse": [_POINTER, Matrix, _POINTER],
    "factor_logdet": [_POINTER, _POINTER, _POINTER],
    "factor_rcond": [_POINTER, _POINTER, _POINTER],
    "batch_create": [Matrix, _INDEX, _POINTER, _INDEX, _POINTER, _POINTER, _POINTER],
    "batch_copy": [_POINTER, _POINTER, _POINTER],
    "batch_update": [_POINTER, _POINTER, _POINTER, _POINTER, _POINTER],
    "batch_insert": [_POINTER, _POINTER, _POINTER, _POINTER],
    "batch_delete": [_POINTER, _INDEX, _POINTER, _INDEX, _POINTER, _POINTER],
    "batch_shift": [_POINTER, _POINTER, _POINTER, _INDEX, _POINTER, _POINTER],
    "batch_orders": [_POINTER, _POINTER, _POINTER],
    "batch_solve": [_POINTER, c_int, Matrix, _POINTER],
    "batch_get": [_POINTER, Matrix, _POINTER, _POINTER],
    "batch_logdet": [_POINTER, _POINTER, _POINTER],
    "batch_solve_modified": [_POINTER, _POINTER, _POINTER, _POINTER, _POINTER],
}
# What the others return.
_OTHERS = {"factor_destroy": None, "factor_order": _INDEX, "factor_capacity": _INDEX, "factor_on_gpu": c_int,
           "batch_destroy": None, "batch_order": _INDEX, "batch_capacity": _INDEX, "batch_count": _INDEX,
           "batch_on_gpu": c_int}

_HOW_TO_BUILD = (
    "Build it in the sources of gpucholmod by\n"
    "    make -f tools/library.mk install PREFIX=$HOME/.local\n"
    "and set GPUCHOLMOD_LIBRARY to $HOME/.local/lib/libgpucholmod.so, or copy that file into\n"
    f"    {Path(__file__).parent}")


def _file_name() -> str:
    return {"darwin": "libgpucholmod.dylib", "win32": "libgpucholmod.dll"}.get(sys.platform, "libgpucholmod.so")


def _places() -> List[str]:
    """Returns where the library is looked for: where the environment says, and nowhere else; otherwise in this folder,
    and then where the system's loader finds it."""
    chosen = os.environ.get("GPUCHOLMOD_LIBRARY")
    if chosen:
        return [chosen]
    beside = Path(__file__).with_name(_file_name())
    found = ctypes.util.find_library("gpucholmod")
    return ([str(beside)] if beside.exists() else []) + [_file_name()] + ([found] if found else [])


def _opened() -> ctypes.CDLL:
    """Returns the library. Raises LibraryNotFound."""
    problems = []
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError as problem:
            problems.append(f"    {problem}")
    raise LibraryNotFound("\n".join(["libgpucholmod cannot be loaded:", *problems, _HOW_TO_BUILD]))


class Library:
    """The functions of libgpucholmod, without `gpucholmod_` in their names. The library is loaded when the first of
    them is used."""

    def __getattr__(self, name: str):  # is called only as long as there is no such attribute
        if name.startswith("__") or name not in ("path", *_CALLS, *_OTHERS):
            raise AttributeError(name)
        self._load()
        return self.__dict__[name]

    def _load(self) -> None:
        library = _opened()
        try:
            abi = library.gpucholmod_abi()
        except AttributeError:
            raise LibraryNotFound(f"{library._name} is not libgpucholmod.\n{_HOW_TO_BUILD}") from None
        if abi != ABI:
            raise LibraryNotFound(f"{library._name} has version {abi} of the C interface, and this package needs "
                                  f"version {ABI}.\n{_HOW_TO_BUILD}")
        functions = {"path": library._name}
        for name, arguments in _CALLS.items():
            functions[name] = getattr(library, "gpucholmod_" + name)
            functions[name].argtypes = arguments
        for name, result in _OTHERS.items():
            functions[name] = getattr(library, "gpucholmod_" + name)
            functions[name].argtypes = [_POINTER]
            functions[name].restype = result
        self.__dict__.update(functions)


lib = Library()


def integer(name: str, x: Any, least: int, kind: type) -> int:
    """Returns x as an integer. Raises BadArgument if it is below `least`, or if the type `kind` of C, which is signed,
    does not have it (ctypes would cut off its upper bits); and TypeError."""
    x, most = as_integer(x), 2 ** (8 * ctypes.sizeof(kind) - 1) - 1
    if not least <= x <= most:
        raise BadArgument(f"{name} must be from {least} to {most}, not {x}")
    return x


@lru_cache(maxsize=256)
def options(triangle: int = UPPER, threads: Optional[int] = 1, device: int = HOST, stream: Optional[int] = None,
            verdict: Optional[int] = None) -> Any:
    """Returns a pointer to gpucholmod_options. threads: the most that compute; None: as many as are of use.
    stream: a cudaStream_t; None: the default one. verdict: where the word is; None: there is none."""
    threads = None if threads is None else integer("threads", threads, 1, c_int)
    return byref(Options(size=ctypes.sizeof(Options), triangle=triangle, device=device, stream=stream,
                         verdict=verdict,
                         threads=ALL_THREADS if threads is None else 0 if threads == 1 else threads))
