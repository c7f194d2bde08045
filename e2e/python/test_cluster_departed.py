"""Members and clients that go: their locks are given back, and the members that stay tell of it."""

import os
import re
import signal

import hazelcast
import pytest

from cluster import Cluster
from member import eventually


@pytest.fixture
def cluster():
    running = Cluster()
    yield running
    running.close()


def connect(member, smart):
    return hazelcast.HazelcastClient(
        cluster_members=[member.address], smart_routing=smart, invocation_timeout=60, cluster_connect_timeout=60
    )


def keys_led_by(client, member, count):
    """Keys of partitions that a member leads, as clients are told."""
    leader = eventually(
        lambda: next((m for m in client.cluster_service.get_members() if m.address.port == member.port), None)
    )
    partitions = client.partition_service
    eventually(lambda: any(partitions.get_partition_owner(n) == leader.uuid for n in range(271)))
    led = (n for n in range(100_000) if partitions.get_partition_owner(partitions.get_partition_id(n)) == leader.uuid)
    return [next(led) for _ in range(count)]


@pytest.mark.parametrize("smart", [True, False], ids=["smart", "unisocket"])
def test_locks_end_with_their_client_at_leaders_that_it_has_asked_nothing(cluster, smart):
    entry, stays, dies = cluster.members
    owner, other = connect(entry, smart), connect(stays, True)
    try:
        keys = keys_led_by(other, dies, 40)
        ours, theirs = (client.get_map("locked").blocking() for client in (owner, other))
        for key in keys:
            ours.lock(key)
        cluster.end(dies, in_order=False)
        # The locks have moved with their partitions, and hold.
        assert not any(theirs.try_lock(key) for key in keys)
        owner.shutdown()
        eventually(lambda: all(theirs.try_lock(key) for key in keys))
    finally:
        owner.shutdown()
        other.shutdown()


def test_locks_are_kept_while_their_client_is_connected_to_any_member(cluster):
    entry, stays, dies = cluster.members
    owner, other = connect(entry, False), connect(stays, True)
    try:
        keys = keys_led_by(other, dies, 10)
        ours, theirs = (client.get_map("locked").blocking() for client in (owner, other))
        for key in keys:
            ours.lock(key)
        cluster.end(dies, in_order=False)
        # Long enough for the leaders to have looked several times.
        assert not any(theirs.try_lock(key, timeout=1) for key in keys)
        for key in keys:
            ours.unlock(key)
        assert all(theirs.try_lock(key) for key in keys)
    finally:
        owner.shutdown()
        other.shutdown()


def test_members_tell_who_comes_and_goes_and_nothing_of_the_library(cluster):
    first, second, third = cluster.members

    def tells(member, sentence):
        eventually(lambda: re.search(sentence, member.output()))

    for member in cluster.members:
        tells(member, "the cluster's members: member ")
    address = re.escape(third.join_address)
    os.kill(third.process_id, signal.SIGSTOP)
    for member in (first, second):
        tells(member, rf"member \d at {address} has not been heard of for 3 s: it is down or cut off")
    os.kill(third.process_id, signal.SIGCONT)
    for member in (first, second):
        tells(member, rf"member \d at {address} is heard of again")
    cluster.end(third, in_order=True)
    for member in (first, second):
        tells(member, rf"member \d at {address} leaves: it hands over the partitions that it holds")
        tells(member, rf"member \d at {address} is no member any more, the cluster has 2 members")
        assert "openraft" not in member.output()
        assert len(member.output().splitlines()) < 60, member.output()
