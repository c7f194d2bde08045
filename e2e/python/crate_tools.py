"""What the tests of CrateDB's tools share: statements over HTTP, the tools as processes, tables of a test's own."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

TOOLS = Path(sys.executable).parent


class Http:
    """Statements over HTTP by nothing but the standard library."""

    def __init__(self, port):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def request(self, path, body=None, headers=None, method=None):
        """Status, headers and text of an answer."""
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(self.url + path, data=data, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def post(self, stmt, path="/_sql", headers=None, **fields):
        """Status and JSON of a statement's answer."""
        status, _, text = self.request(path, json.dumps({"stmt": stmt, **fields}), headers)
        return status, json.loads(text)

    def sql(self, stmt, *args, **fields):
        """The answer of a statement that must succeed."""
        status, answer = self.post(stmt, args=list(args), **fields) if args else self.post(stmt, **fields)
        assert status == 200, answer
        return answer

    def rows(self, stmt, *args):
        return self.sql(stmt, *args)["rows"]

    def error(self, stmt, **fields):
        """Status and code of a statement that must fail."""
        status, answer = self.post(stmt, **fields)
        assert "error" in answer, answer
        return status, answer["error"]["code"]


def run(tool, *arguments, stdin=None, fails=False):
    """Runs one of CrateDB's tools to its end; what it wrote."""
    done = subprocess.run(
        [str(TOOLS / tool), *map(str, arguments)],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode != 0) == fails, (done.args, done.stdout, done.stderr)
    return done.stdout + done.stderr
