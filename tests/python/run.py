"""Runs the tests of the Python package, which is found on PYTHONPATH or installed.

The last line is "N passed, N failed, N skipped".
"""

import sys
import unittest
from pathlib import Path

here = Path(__file__).parent
sys.path.insert(0, str(here))
tests = unittest.defaultTestLoader.discover(str(here))
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(tests)
failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
for test, reason in result.skipped:
    print(f"skipped  {test.id()}: {reason}")
not_run = sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)  # others are classes of tests
print(f"{result.testsRun - failed - not_run} passed, {failed} failed, {len(result.skipped)} skipped")
sys.exit(failed > 0)
