"""The examples of the guide "From CrateDB" work as they stand there, but for the port."""

import pathlib
import re
import subprocess
import sys

from crate_tools import Http, run

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/from-cratedb.md"


def snippets(language):
    found = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found


def test_statements(member):
    http = Http(member.http_port)
    for snippet in snippets("sql"):
        answers = [http.sql(statement) for statement in snippet.split(";") if statement.strip()]
        assert answers[2]["rows"] == [["Dr. Ann", "Main"]] and answers[-1]["rows"] == [[1]]
    http.sql("drop table users")


def test_programs(member):
    for snippet in snippets("python"):
        program = snippet.replace(":4200", f":{member.http_port}")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_tools(member, tmp_path):
    (tmp_path / "statements.sql").write_text("select 1;")
    (snippet,) = snippets("sh")
    for line in snippet.replace(":4200", f":{member.http_port}").splitlines():
        words = re.findall(r'"([^"]*)"|(\S+)', line)
        words = [quoted or plain for quoted, plain in words]
        if "<" in words:
            stdin = (tmp_path / words[-1]).read_text()
            words = words[: words.index("<")]
        else:
            stdin = None
        run(*words, stdin=stdin)
