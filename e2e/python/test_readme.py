"""The first session in the README works as it stands there, but for the address."""

import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_session_of_the_readme_works(member):
    (snippet,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert "127.0.0.1:5701" in snippet
    program = snippet.replace("127.0.0.1:5701", member.address)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Paris 2\n"
