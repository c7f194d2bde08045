"""Two members: what is left of them stops, unless it is told to go on alone; and who comes back then drops what it has."""

import os
import re
import signal

import hazelcast
import pytest

from cluster import Cluster, is_whole, status
from member import eventually


@pytest.fixture
def pair(request, monkeypatch):
    monkeypatch.setenv("FILBERT_CLUSTER_PAIR", request.param)
    monkeypatch.setenv("FILBERT_CLUSTER_HEARTBEAT", "3")
    with Cluster(2) as running:
        yield running


def connect(member):
    return hazelcast.HazelcastClient(cluster_members=[member.address], invocation_timeout=60, cluster_connect_timeout=60)


def seconds_silent(member):
    return max((each["silent_ms"] or 0) for each in status(member)["members"]) / 1_000


@pytest.mark.parametrize("pair", ["stop"], indirect=True)
def test_what_is_left_of_a_pair_stops_and_says_so(pair):
    first, second = pair.members
    eventually(lambda: is_whole(first, 2))
    assert "neither goes on without the other one" in first.output()
    assert "A third member is recommended" in first.output()
    pair.end(second, in_order=False)
    eventually(lambda: all(group["leader"] is None for group in status(first)["groups"]))
    # Longer than it would go on after.
    eventually(lambda: seconds_silent(first) > 9)
    told = status(first)
    assert told["recoveries"] == 0 and all(group["leader"] is None for group in told["groups"])
    assert "serves neither reads nor writes" in first.output()


@pytest.mark.parametrize("pair", ["continue"], indirect=True)
def test_what_is_left_of_a_pair_goes_on_and_who_comes_back_starts_anew(pair):
    first, second = pair.members
    eventually(lambda: is_whole(first, 2))
    assert "goes on alone (filbert.cluster.pair: continue)" in first.output()
    client = connect(first)
    try:
        numbers = client.get_map("numbers").blocking()
        for n in range(200):
            numbers.set(n, n)
        os.kill(second.process_id, signal.SIGSTOP)
        # The client waits meanwhile, and is served by the one that is left.
        for n in range(200, 300):
            eventually(lambda: put(numbers, n))
        assert status(first)["recoveries"] == 1
        os.kill(second.process_id, signal.SIGCONT)
        # It was stopped before it knew that the last of them are committed, or after that.
        eventually(lambda: re.search(r"what this one holds is dropped \(\d+ entries of 1 maps", second.output()))
        eventually(lambda: is_whole(first, 2))
        assert [n for n in range(300) if numbers.get(n) != n] == []
        # It is a member like any other, and the other one may go now.
        pair.end(first, in_order=False)
        eventually(lambda: status(second)["recoveries"] == 2)
        client.shutdown()
        client = connect(second)
        numbers = client.get_map("numbers").blocking()
        assert [n for n in range(300) if numbers.get(n) != n] == []
    finally:
        client.shutdown()


def put(numbers, n):
    """Puts a number; again, where it is not known whether it was put."""
    try:
        numbers.set(n, n)
        return True
    except hazelcast.errors.HazelcastError:
        return False
