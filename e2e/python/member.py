"""Starts and ends the member under test: the real program in a process of its own, on an ephemeral loopback port."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

SHARED = pathlib.Path(__file__).resolve().parent.parent / "shared"
REAL_HAZELCAST = os.environ.get("FILBERT_E2E_TARGET") == "hazelcast"
# Members of the cluster that most tests use.
MEMBERS = int(os.environ.get("FILBERT_E2E_MEMBERS", "1"))
# The members that hold each partition, in a cluster.
REPLICAS = 3
_READY = re.compile(r"^ready: .*(127\.0\.0\.\d+):(\d+)")
_SERVES = re.compile(r"^serves: (HTTP|PostgreSQL) on 127\.0\.0\.\d+:(\d+)")


def _command():
    command = os.environ.get("FILBERT_E2E_MEMBER")
    if command is None:
        raise RuntimeError("FILBERT_E2E_MEMBER is not set; run `cargo xtask e2e python`")
    return json.loads(command)


def program(*arguments):
    """Runs one of the program's other commands to its end: exit code, output, errors."""
    done = subprocess.run(_command() + list(arguments), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Member:
    """A running member; `stop` ends it, and so does leaving the `with` block.

    `words`, where given, are all that the program is told; `within` is a program that runs it.
    """

    def __init__(self, port=0, config=SHARED / "member.yaml", arguments=(), words=None, within=()):
        if words is None:
            words = ["--listen", f"127.0.0.1:{port}", "--config", str(config), *arguments]
        command = [*within, *_command(), *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._lines = []
        self.host = None
        self._ready = threading.Event()
        self.port = None
        self.http_port = None
        self.postgres_port = None
        threading.Thread(target=self._read_output, daemon=True).start()
        self._ready.wait(60)
        if self.port is None:
            self.stop()
            raise RuntimeError("the member did not become ready: " + "".join(self._lines))

    def _read_output(self):
        for line in self._process.stdout:
            self._lines.append(line)
            serves = _SERVES.search(line)
            if serves and serves.group(1) == "HTTP":
                self.http_port = int(serves.group(2))
            elif serves:
                self.postgres_port = int(serves.group(2))
            found = _READY.search(line)
            if found and self.port is None:
                self.host, self.port = found.group(1), int(found.group(2))
                self._ready.set()
        self._ready.set()

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def process_id(self):
        return self._process.pid

    def has_ended(self):
        return self._process.poll() is not None

    def wait(self):
        """Waits until the member has ended by itself and returns its exit status."""
        return self._process.wait(60)

    def output(self):
        """What it has written."""
        return "".join(self._lines)

    def stop(self):
        """Ends the member as an operator does and returns its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def eventually(check, within_s=60.0):
    """Waits until `check` returns something true and returns that; a generous limit turns a hang into a failure."""
    deadline = time.monotonic() + within_s
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("the condition did not come true")
        time.sleep(0.02)
