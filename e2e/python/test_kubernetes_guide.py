"""The members of the guide "A cluster in Kubernetes", with the arguments that stand there, on loopback addresses in place of pods'."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.request

import hazelcast
import pytest

from cluster import free_ports, together
from guide import Guide
from member import Member, eventually, program

GUIDE = Guide("kubernetes.md")


class Pods:
    """The pods of the StatefulSet: processes on addresses of their own, which end as Kubernetes ends them."""

    def __init__(self, folder):
        (self.manifest,) = GUIDE.blocks("yaml")
        (self.port,) = free_ports(1)
        self.secret = folder / "secret"
        self.secret.write_text("a secret of the members, and of nobody else")
        self.running = {}

    def ip(self, number):
        return f"127.0.0.{10 + number}"

    def arguments(self, number):
        """The container's arguments, as Kubernetes and DNS would fill them in."""
        arguments = re.findall(r"^ +- (--\S+)$", self.manifest, re.MULTILINE)
        assert len(arguments) == 6
        text = "\n".join(arguments).replace("$(POD_NAME)", f"filbert-{number}").replace("$(POD_IP)", self.ip(number))
        text = re.sub(r"filbert-(\d)\.filbert-members", lambda found: self.ip(int(found.group(1))), text)
        # One machine has no two members on each of its addresses, and its port 5701 may be taken.
        text = re.sub(r"0\.0\.0\.0:\d+", f"{self.ip(number)}:0", text).replace(":5701", f":{self.port}")
        text = text.replace("/etc/filbert/secret", str(self.secret))
        assert "$" not in text and "filbert-members" not in text
        return text.splitlines()

    def start(self, *numbers):
        members = together(lambda number: Member(words=self.arguments(number)), numbers)
        self.running.update(zip(numbers, members, strict=True))

    def end(self, *numbers):
        """SIGTERM, and the grace period that the guide gives."""
        (grace_s,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", self.manifest)
        members = [self.running.pop(number) for number in numbers]
        for member in members:
            os.kill(member.process_id, signal.SIGTERM)
        deadline = time.monotonic() + int(grace_s)
        for member in members:
            eventually(lambda member=member: member.has_ended(), deadline - time.monotonic())
            assert member.wait() == 0, member.output()

    def http(self, number):
        return f"{self.ip(number)}:{self.running[number].http_port}"

    def probes(self, number):
        """The paths of the manifest's probes, with the status with which each is answered."""
        paths = set(re.findall(r"httpGet: \{path: (\S+), port: 4200\}", self.manifest))
        statuses = {}
        for path in paths:
            with urllib.request.urlopen(f"http://{self.http(number)}{path}", timeout=60) as answer:
                statuses[path] = answer.status
        return statuses

    def execute(self, command):
        """What follows `kubectl exec filbert-N --`."""
        found = re.fullmatch(r"kubectl exec filbert-(\d) -- filbert (cluster .*)", command)
        text = re.sub(r"filbert-(\d)\.filbert-members", lambda name: self.ip(int(name.group(1))), found.group(2))
        words = shlex.split(text.replace(":5701", f":{self.port}"))
        code, output, errors = program(words[0], "--host", self.http(int(found.group(1))), *words[1:])
        assert code == 0, errors
        return output

    def status(self):
        return json.loads(self.execute("kubectl exec filbert-0 -- filbert cluster status --json"))

    def close(self):
        for member in self.running.values():
            os.kill(member.process_id, signal.SIGKILL)
            member.stop()


@pytest.fixture
def pods(tmp_path):
    running = Pods(tmp_path)
    yield running
    running.close()


def test_start_rolling_restart_scaling_and_a_lost_node(pods):
    status, remove = [line for line in GUIDE.lines("sh") if line.startswith("kubectl exec")]
    pods.start(0, 1, 2)
    eventually(lambda: pods.status()["warnings"] == [])
    served = {"/_health": 200, "/_ready": 200}
    assert all(pods.probes(number) == served for number in range(3))
    assert "active" in pods.execute(status)
    client = hazelcast.HazelcastClient(cluster_members=[pods.running[1].address])
    try:
        kept = client.get_map("kept").blocking()
        for n in range(200):
            kept.set(n, n)
        # The greatest number first, as StatefulSets do it, and the next one when it is ready.
        for number in (2, 1, 0):
            pods.end(number)
            pods.start(number)
            assert pods.probes(number) == served
            assert all(kept.get(n) == n for n in range(200))
        to = [int(n) for n in re.findall(r"kubectl scale \S+ --replicas=(\d)", " ".join(GUIDE.lines("sh")))]
        assert to == [5, 3]
        pods.start(3, 4)
        eventually(lambda: len(pods.status()["members"]) == 5 and pods.status()["warnings"] == [])
        assert all(kept.get(n) == n for n in range(200))
        pods.end(3, 4)
        eventually(lambda: len(pods.status()["members"]) == 3 and pods.status()["warnings"] == [])
        assert all(kept.get(n) == n for n in range(200))
        # A node is lost.
        lost = pods.running.pop(2)
        os.kill(lost.process_id, signal.SIGKILL)
        lost.stop()
        pods.execute(remove)
        assert len(pods.status()["members"]) == 2
        assert all(kept.get(n) == n for n in range(200))
    finally:
        client.shutdown()


def within_namespace(hosts):
    """Runs a program with a file of host names of its own."""
    return ["unshare", "--mount", "sh", "-c", f'mount --bind {shlex.quote(str(hosts))} /etc/hosts && exec "$@"', "sh"]


def test_a_name_with_several_addresses_is_as_many_members(tmp_path):
    hosts = tmp_path / "hosts"
    ips = [f"127.0.0.{n}" for n in (21, 22, 23)]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{ip} filbert-members\n" for ip in ips))
    within = within_namespace(hosts)
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system of its own can be mounted here")
    ((join,),) = [re.findall(r"(--join=filbert-members:\d+)", GUIDE.text)]
    (port,) = free_ports(1)
    join = re.sub(r":\d+$", f":{port}", join)

    def start(ip):
        return Member(words=[f"--listen={ip}:{port}", "--http=off", "--postgres=off", join], within=within)

    members = together(start, ips)
    try:
        client = hazelcast.HazelcastClient(cluster_members=[members[0].address])
        try:
            found = {each.address.host for each in client.cluster_service.get_members()}
            assert found == set(ips)
        finally:
            client.shutdown()
    finally:
        for member in members:
            os.kill(member.process_id, signal.SIGKILL)
            member.stop()
