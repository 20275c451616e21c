import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gpucholmod
from gpucholmod import _library

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
        import ctypes.util
        self.assertRegex(tried(GPUCHOLMOD_LIBRARY=ctypes.util.find_library("m")), "^LibraryNotFound .* is not")

    def test_another_version_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder, "old.c"), Path(folder, "old.so")
            source.write_text("int gpucholmod_abi(void) { return 1; }\n")
            try:
                subprocess.run(["cc", "-shared", "-fPIC", source, "-o", made], check=True)
            except OSError:
                self.skipTest("there is no compiler")
            self.assertRegex(tried(GPUCHOLMOD_LIBRARY=str(made)), "^LibraryNotFound .* version 1 ")


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


if __name__ == "__main__":
    unittest.main()
