"""Sessions: who is let in, what a client learns of the cluster, and that it comes back after a restart."""

import pathlib

import pytest
from hazelcast.errors import HazelcastError, IllegalStateError
from hazelcast.security import BasicTokenProvider
import hazelcast

from member import MEMBERS, REAL_HAZELCAST, SHARED, Member, eventually

needs_security = pytest.mark.skipif(REAL_HAZELCAST, reason="passwords need a licence in Hazelcast")


def test_a_client_sees_the_members_and_all_partitions(client, member):
    members = client.cluster_service.get_members()
    assert len(members) == MEMBERS
    assert member.port in {each.address.port for each in members}
    client.get_map("any").blocking().set(1, 1)
    eventually(lambda: client.partition_service.get_partition_count() == 271)
    owner_of = client.partition_service.get_partition_owner
    eventually(lambda: {owner_of(i) for i in range(271)} == {each.uuid for each in members})


def test_a_wrong_cluster_name_is_refused(member):
    with pytest.raises((HazelcastError, ValueError)):
        hazelcast.HazelcastClient(
            cluster_members=[member.address], cluster_name="somewhere else", cluster_connect_timeout=0.2
        )


@pytest.fixture(scope="module")
def guarded():
    with Member(config=SHARED / "member-with-password.yaml") as running:
        yield running


@needs_security
def test_the_right_password_is_accepted(guarded):
    client = hazelcast.HazelcastClient(
        cluster_members=[guarded.address], creds_username="ada", creds_password="correct horse"
    )
    client.get_map("m").blocking().set("k", "v")
    assert client.get_map("m").blocking().get("k") == "v"
    client.shutdown()


@needs_security
@pytest.mark.parametrize(
    "settings",
    [
        {"creds_username": "ada", "creds_password": "wrong"},
        {"creds_username": "eve", "creds_password": "correct horse"},
        {"token_provider": BasicTokenProvider("no such token")},
        {},
    ],
    ids=["wrong password", "unknown user", "wrong token", "nothing"],
)
def test_wrong_credentials_are_refused(guarded, settings):
    with pytest.raises(HazelcastError):
        hazelcast.HazelcastClient(cluster_members=[guarded.address], cluster_connect_timeout=0.2, **settings)


@needs_security
def test_a_token_is_accepted_and_no_other():
    with Member(config=SHARED / "member-with-token.yaml") as guarded:
        client = hazelcast.HazelcastClient(
            cluster_members=[guarded.address], token_provider=BasicTokenProvider("a token of the team")
        )
        client.get_map("m").blocking().set("k", "v")
        assert client.get_map("m").blocking().get("k") == "v"
        client.shutdown()
        for settings in ({"token_provider": BasicTokenProvider("another token")}, {}):
            with pytest.raises(HazelcastError):
                hazelcast.HazelcastClient(
                    cluster_members=[guarded.address], cluster_connect_timeout=0.2, **settings
                )


def test_a_client_that_reports_statistics_is_served(connect, name):
    client = connect(statistics_enabled=True, statistics_period=1)
    numbers = client.get_map(name).blocking()
    for i in range(200):
        numbers.set(i, i)
    assert numbers.size() == 200


def test_distributed_objects_are_listed_announced_and_destroyed(client, connect, name):
    events = []
    listener = client.add_distributed_object_listener(events.append).result()
    other = connect()
    other.get_map(name).blocking().set(1, 1)
    seen = lambda kind: any(e.name == name and e.event_type == kind for e in list(events))
    eventually(lambda: seen("CREATED"))
    assert name in [proxy.name for proxy in client.get_distributed_objects()]
    assert other.get_map(name).blocking().destroy()
    eventually(lambda: seen("DESTROYED"))
    assert client.get_map(name).blocking().size() == 0
    assert client.remove_distributed_object_listener(listener).result()


def test_a_client_reconnects_after_the_member_restarts_on_its_port(tmp_path):
    events = []
    first = Member()
    client = hazelcast.HazelcastClient(
        cluster_members=[first.address],
        lifecycle_listeners=[events.append],
        cluster_connect_timeout=60,
        retry_initial_backoff=0.05,
        retry_max_backoff=0.2,
    )
    try:
        added = []
        numbers = client.get_map("numbers").blocking()
        numbers.add_entry_listener(added_func=lambda event: added.append(event.key), include_value=False)
        numbers.set("before", 1)
        eventually(lambda: "before" in added)
        first.stop()
        eventually(lambda: "DISCONNECTED" in events)
        with Member(port=first.port):
            eventually(lambda: events.count("CONNECTED") == 2)
            assert numbers.get("before") is None
            eventually(lambda: numbers.put("after", 2) is not None)
            eventually(lambda: "after" in added)
    finally:
        client.shutdown()
        first.stop()
