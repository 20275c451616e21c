import re
import unittest
from pathlib import Path

try:
    import scipy
except ImportError:
    scipy = None


class Readme(unittest.TestCase):
    @unittest.skipUnless(scipy, "scipy is not there")
    def test_its_programs_run(self):
        page = Path(__file__).parents[2] / "inst" / "python" / "README.md"
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
        self.assertGreater(len(blocks), 4)
        exec(compile("\n".join(blocks), str(page), "exec"), {})


if __name__ == "__main__":
    unittest.main()
