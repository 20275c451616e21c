import contextlib
import io
import re
import unittest
from pathlib import Path

from cases import missing

try:
    import scipy
except ImportError:
    scipy = None


ROOT = Path(__file__).parents[2]


def run(page, kind="python"):
    """Runs the blocks of a kind on a page, one after the other. Returns what they print."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), re.S | re.M)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n".join(blocks), str(page), "exec"), {})
    return printed.getvalue()


class Pages(unittest.TestCase):
    @unittest.skipUnless(scipy, "scipy is not there")
    def test_the_programs_of_the_readme_run(self):
        run(ROOT / "inst" / "python" / "README.md")  # they assert

    @unittest.skipIf(missing("torch"), missing("torch"))
    def test_the_program_for_a_gpu_runs(self):
        run(ROOT / "inst" / "python" / "README.md", "python gpu")  # it asserts

    def test_the_program_of_the_vignette_runs(self):
        self.assertEqual(run(ROOT / "vignettes" / "from-c.Rmd"), "1\n")


if __name__ == "__main__":
    unittest.main()
