"""The examples of the guide "From PostgreSQL's tools" work as they stand there, but for the port."""

import pathlib
import re
import subprocess
import sys

from postgres_tools import psql

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/from-postgresql.md"


def snippets(language):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    found = [block for name, block in blocks if name == language]
    assert found
    return found


def test_the_session(member):
    (session,) = snippets("")
    for step in session.split("=> ")[1:]:
        statement, _, expected = step.partition("\n")
        shown = psql(member, statement).stdout
        assert shown.split("\n") == expected.split("\n"), statement


def test_programs(member):
    for snippet in snippets("python"):
        program = snippet.replace("port=5432", f"port={member.postgres_port}")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_tools(member):
    for snippet in snippets("sh"):
        for line in snippet.splitlines():
            command = line.replace("-p 5432", f"-p {member.postgres_port} -U ann -X")
            done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
