"""Starts and ends the members of a cluster."""

import os
import signal
import socket
import threading

from member import Member


def free_ports(count):
    """Ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Cluster:
    """Members that start at once, with the settings of all suites."""

    def __init__(self, count=3):
        self.join = [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.members = []
        failures = []

        def start(address):
            try:
                self.start(address)
            except Exception as error:
                failures.append(error)

        starting = [threading.Thread(target=start, args=(address,)) for address in self.join]
        for each in starting:
            each.start()
        for each in starting:
            each.join()
        if failures:
            # Nobody else can end those that have started.
            self.close()
            raise failures[0]

    def start(self, address):
        flags = ["--join", ",".join(self.join), "--member-listen", address]
        member = Member(arguments=flags)
        member.join_address = address
        self.members.append(member)

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
