"""Starts and ends the members of a cluster."""

import json
import os
import random
import signal
import socket
import threading

import psycopg

from member import Member, program
from postgres_tools import dsn

# Below the ports that the operating system gives to connections: such a port could be taken by any
# connection before its member listens.
PORTS = range(15_000, 32_000)


def is_free(port):
    """Whether nobody listens on a port."""
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_ports(count):
    """Ports that are free now."""
    ports = []
    while len(ports) < count:
        port = random.choice(PORTS)
        if port not in ports and is_free(port):
            ports.append(port)
    return ports


def together(start, whats):
    """Starts members at once: what `start` gives for each. If one fails, all that have started end."""
    started, failures = [None] * len(whats), []

    def run(at, what):
        try:
            started[at] = start(what)
        except Exception as error:
            failures.append(error)

    starting = [threading.Thread(target=run, args=each) for each in enumerate(whats)]
    for each in starting:
        each.start()
    for each in starting:
        each.join()
    if failures:
        for member in filter(None, started):
            os.kill(member.process_id, signal.SIGKILL)
            member.stop()
        raise failures[0]
    return started


def status(member):
    """What a member tells of its cluster."""
    code, output, errors = program("cluster", "--host", f"127.0.0.1:{member.http_port}", "status", "--json")
    assert code == 0, errors
    return json.loads(output)


def is_whole(member, members):
    """Whether so many members are in the cluster, this one holds all data, and each group has a leader."""
    told = status(member)
    groups = told["groups"]
    return len(told["members"]) == members and told["replicas"]["held"] == members and all(g["leader"] for g in groups)


class Cluster:
    """Members that start at once, with the settings of all suites."""

    def __init__(self, count=3):
        self.join = [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.members = together(self._launch, self.join)

    def start(self, address):
        self.members.append(self._launch(address))

    def start_together(self, addresses):
        """Starts members that wait for each other."""
        self.members.extend(together(self._launch, addresses))

    def _launch(self, address):
        flags = ["--join", ",".join(self.join), "--member-listen", address]
        member = Member(arguments=flags)
        member.join_address = address
        return member

    def end(self, member, in_order):
        """As an operator does, or as a power cut does."""
        if not in_order:
            os.kill(member.process_id, signal.SIGKILL)
        member.stop()
        self.members.remove(member)

    def close(self):
        # At once: two that are left of three cannot leave in order before the third is taken for dead.
        for member in self.members:
            os.kill(member.process_id, signal.SIGKILL)
            member.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Sessions:
    """One session with each member."""

    def __init__(self, cluster):
        self._open = [psycopg.connect(dsn(member), autocommit=True) for member in cluster.members]

    def __getitem__(self, number):
        return self._open[number]

    def __iter__(self):
        return iter(self._open)

    def close(self):
        for each in self._open:
            each.close()
