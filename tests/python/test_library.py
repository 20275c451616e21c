import ctypes
import ctypes.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gpucholmod
from gpucholmod import _handle, _library
from gpucholmod.errors import error_of

TRY = """
import gpucholmod
try:
    gpucholmod.cholupdate([[1.0]], [1.0])
except ImportError as problem:
    print(type(problem).__name__, problem)
else:
    print("found", gpucholmod._library.lib.path)
"""


def tried(**environment):
    """Returns what TRY prints in a process with these variables."""
    environment = {**os.environ, **environment, "PYTHONPATH": str(Path(gpucholmod.__file__).parent.parent)}
    command = [sys.executable, "-c", TRY]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def compiled(*arguments):
    """Runs the compiler of C, or skips the test."""
    try:
        subprocess.run(["cc", *arguments], check=True)
    except FileNotFoundError:
        raise unittest.SkipTest("there is no compiler") from None


class Finding(unittest.TestCase):
    def test_the_environment_names_it(self):
        _library.lib.update
        self.assertEqual(tried(GPUCHOLMOD_LIBRARY=_library.lib.path).split(), ["found", _library.lib.path])

    def test_what_is_named_and_not_there_is_not_looked_for_elsewhere(self):
        told = tried(GPUCHOLMOD_LIBRARY="/nowhere/libgpucholmod.so")
        self.assertRegex(told, "^LibraryNotFound")
        self.assertIn("/nowhere/libgpucholmod.so", told)
        self.assertIn("tools/library.mk", told)

    def test_the_loader_finds_it(self):
        _library.lib.update
        folder = str(Path(_library.lib.path).resolve().parent)
        self.assertIn("found", tried(GPUCHOLMOD_LIBRARY="", LD_LIBRARY_PATH=folder))

    def test_another_library_is_refused(self):
        self.assertRegex(tried(GPUCHOLMOD_LIBRARY=ctypes.util.find_library("m")), "^LibraryNotFound .* is not")

    def test_another_version_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder, "old.c"), Path(folder, "old.so")
            source.write_text("int gpucholmod_abi(void) { return 1; }\n")
            compiled("-shared", "-fPIC", source, "-o", made)
            self.assertRegex(tried(GPUCHOLMOD_LIBRARY=str(made)), "^LibraryNotFound .* version 1 ")


class Integers(unittest.TestCase):
    def test_numbers_that_the_type_of_c_does_not_have_are_refused(self):
        for kind, most in ((ctypes.c_int, 2**31 - 1), (ctypes.c_ssize_t, sys.maxsize)):
            for x in (0, 5, most):
                self.assertEqual(_library.integer("x", x, 0, kind), x)
            for x in (-1, most + 1, 2**64, -2**70):
                with self.assertRaises(gpucholmod.BadArgument):
                    _library.integer("x", x, 0, kind)
            with self.assertRaises(TypeError):
                _library.integer("x", 1.0, 0, kind)
        L = [[1.0]]
        for call in (lambda: gpucholmod.Factor(L, capacity=2**70), lambda: gpucholmod.Factor(L, capacity=2**64 + 1),
                     lambda: gpucholmod.Factor(L, capacity=-1), lambda: gpucholmod.Factor(L, threads=2**32 + 1),
                     lambda: gpucholmod.Factor(L, device=2**32 - 1), lambda: gpucholmod.Batch([L], device=2**32 - 1),
                     lambda: gpucholmod.cholupdate(L, [1.0], threads=2**32 + 1)):
            with self.assertRaises(gpucholmod.BadArgument):
                call()


class Errors(unittest.TestCase):
    def test_the_argument_is_that_of_the_status(self):
        for argument, message, place in ((b"R", b"a number", (4, 1)), (b"", b"a number", (4, 1)),
                                         (b"A", b"'V'", (4, 1)),
                                         (b"what->V", b"beside 'R', a number", (1, 4))):
            status = _library.Status(code=5, row=2, col=5, argument=argument, message=message)
            error = error_of(status, turned=True)
            self.assertEqual((error.row, error.col), place)


class Agreement(unittest.TestCase):
    root = Path(__file__).parents[2]

    def test_the_version_is_that_of_the_package_of_r(self):
        version = re.search(r"^Version: (.*)$", (self.root / "DESCRIPTION").read_text(), re.M).group(1)
        self.assertEqual(gpucholmod.__version__, version)

    def test_codes_and_numbers_are_those_of_the_header(self):
        header = (self.root / "inst" / "include" / "gpucholmod.h").read_text()
        codes = re.search(r"enum gpucholmod_code \{(.*?)\} gpucholmod_code", header, re.S).group(1)
        names = re.findall(r"^ +GPUCHOLMOD_(\w+)", codes, re.M)
        kinds = {kind.code: kind for kind in vars(gpucholmod).values()
                 if isinstance(kind, type) and issubclass(kind, gpucholmod.Error) and kind.code}
        for code, kind in kinds.items():
            plain = kind.__name__.replace("InternalError", "Internal")
            self.assertEqual(re.sub("(?<=[a-z])(?=[A-Z])", "_", plain).upper(), names[code])
        self.assertEqual(set(range(1, len(names))) - set(kinds), {names.index("STOPPED")})
        self.assertEqual(int(re.search(r"#define GPUCHOLMOD_ABI (\d+)", header).group(1)), _library.ABI)

    def test_structs_and_constants_are_those_of_the_header(self):
        structs = {"matrix": _library.Matrix, "const_matrix": _library.Matrix, "status": _library.Status,
                   "right_sides": _library.RightSides, "options": _library.Options,
                   "modifications": _library.Modifications, "batch_modification": _library.BatchModification,
                   "batch_insertion": _library.BatchInsertion, "batch_systems": _library.BatchSystems}
        constants = ("DOUBLE", "FLOAT", "UPPER", "LOWER", "HOST", "ANY_GPU", "ALL_THREADS", "OK")
        asked, expected = [], []
        for name, struct in structs.items():
            asked.append(f"sizeof(gpucholmod_{name})")
            expected.append(ctypes.sizeof(struct))
            for field, *_ in struct._fields_:
                asked.append(f"offsetof(gpucholmod_{name}, {field})")
                expected.append(getattr(struct, field).offset)
        asked += ["GPUCHOLMOD_" + name for name in (*constants, "A", "R_TRANSPOSED", "R")]
        expected += [getattr(_library, name) for name in constants]
        expected += [_handle.system_number(name) for name in ("A", "forward", "back")]
        program = "\n".join(["#include <gpucholmod.h>", "#include <stdio.h>", "int main(void) {",
                             *(f'  printf("%ld\\n", (long)({question}));' for question in asked), "  return 0;", "}"])
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder, "ask.c"), Path(folder, "ask")
            source.write_text(program)
            compiled("-I", self.root / "inst" / "include", source, "-o", made)
            told = subprocess.run([made], capture_output=True, text=True, check=True).stdout
        self.assertEqual(dict(zip(asked, map(int, told.split()))), dict(zip(asked, expected)))


if __name__ == "__main__":
    unittest.main()
