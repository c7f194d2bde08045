"""The commands of the guides "A cluster" and "What is promised" work as they stand there, but for ports and members' numbers."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from cluster import free_ports, together
from guide import Guide
from member import Member, eventually, program

CLUSTER, PROMISES = Guide("cluster.md"), Guide("promises.md")
# Several members of one machine, and no ports that others use.
DOORS = ["--http", "127.0.0.1:0", "--postgres", "127.0.0.1:0"]


def started(ports):
    """The members of the guide's first example."""
    lines = [line for line in CLUSTER.lines("sh") if line.startswith("filbert --listen ")]
    assert len(lines) == len(ports)
    named = sorted(set(re.findall(r":(57\d\d)", " ".join(lines))))
    of = dict(zip(named, ports, strict=True))

    def start(line):
        words = shlex.split(re.sub(r":(57\d\d)", lambda found: f":{of[found.group(1)]}", line))
        assert words[0] == "filbert"
        return Member(words=[*words[1:], *DOORS])

    return together(start, lines)


def http(member, method, body=None):
    """Status and answer of the path that the guide names."""
    (path,) = CLUSTER.quoted(rf"{method} (/\S+)")
    url = f"http://127.0.0.1:{member.http_port}{path.split()[1]}"
    request = urllib.request.Request(url, method=method, data=body and body.encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_cluster(tmp_path):
    ports = free_ports(4)
    join = ",".join(f"127.0.0.1:{port}" for port in ports[:3])
    members = started(ports[:3])
    try:
        first = members[0]

        def ask(command, **names):
            words = shlex.split(command)
            assert words[:2] == ["filbert", "cluster"]
            words = [str(names.get(word, word)) for word in words[2:]]
            return program("cluster", "--host", f"127.0.0.1:{first.http_port}", *words)

        def status():
            code, output, errors = ask("filbert cluster status --json")
            assert code == 0, errors
            return json.loads(output)

        def is_whole(count):
            told = status()
            return len(told["members"]) == count and told["replicas"]["held"] == 3 and told["warnings"] == []

        def id_of(port):
            return next(each["id"] for each in status()["members"] if each["address"].endswith(f":{port}"))

        commands = {command.split()[2]: command for command in CLUSTER.quoted(r"filbert cluster \w+( MEMBER)?")}
        assert commands.keys() == {"status", "leave", "remove", "recover"}
        eventually(lambda: is_whole(3))
        for flags in ("", " --groups", " --json"):
            code, output, errors = ask(commands["status"] + flags)
            assert code == 0 and output, errors
        # With the same list, and an address of its own.
        members.append(Member(words=["--listen", f"127.0.0.1:{ports[3]}", "--join", join, *DOORS]))
        eventually(lambda: is_whole(4))
        code, output, errors = ask(commands["leave"], MEMBER=id_of(ports[3]))
        assert code == 0 and "has left" in output, errors
        assert members.pop().wait() == 0
        # Over HTTP: what `status --json` prints, and an order, which a member that is not there does not get.
        eventually(lambda: is_whole(3))
        code, told = http(first, "GET")
        assert code == 200 and told.keys() == status().keys()
        orders = {order["order"]: order for order in map(json.loads, CLUSTER.quoted(r"\{.*\}"))}
        assert orders.keys() == {"leave", "recover"}
        code, told = http(first, "POST", json.dumps({**orders["leave"], "member": id_of(ports[2])}))
        assert code == 200, told
        assert members.pop().wait() == 0
        # A third again, which dies and is taken out.
        members.append(Member(words=["--listen", f"127.0.0.1:{ports[2]}", "--join", join, *DOORS]))
        eventually(lambda: is_whole(3))
        dead = id_of(ports[2])
        os.kill(members[2].process_id, signal.SIGKILL)
        members.pop().stop()
        code, _, errors = ask(commands["remove"], MEMBER=dead)
        assert code == 0, errors
        assert len(status()["members"]) == 2
        # Nothing is lost, so there is nothing to recover.
        for flags in ("", " --accept-data-loss"):
            code, _, errors = ask(commands["recover"] + flags)
            assert code == 1 and errors
        code, told = http(first, "POST", json.dumps(orders["recover"]))
        assert code >= 400, told
    finally:
        for member in members:
            os.kill(member.process_id, signal.SIGKILL)
            member.stop()
    for number, text in enumerate(CLUSTER.blocks("yaml")):
        file = tmp_path / f"hazelcast-{number}.yaml"
        file.write_text(text)
        code, output, errors = program("--config", str(file), "--check-config", "--strict")
        assert code == 0, output + errors


def test_what_is_promised(member):
    for snippet in PROMISES.blocks("python"):
        assert "127.0.0.1:5701" in snippet
        text = snippet.replace("127.0.0.1:5701", member.address)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        expected = re.findall(r"^# prints (.*)$", snippet, re.MULTILINE)
        assert expected and done.stdout.splitlines() == expected


def test_the_chores_that_show_it_are_there():
    for command in PROMISES.quoted("cargo xtask .*"):
        done = subprocess.run([*shlex.split(command), "--help"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
