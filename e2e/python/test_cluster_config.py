"""A cluster by hazelcast.yaml: members named by tcp-ip, on the port that clients use as well, and one that holds no data."""

import pathlib
import threading

import hazelcast
import pytest

from cluster import Cluster, free_ports, status
from member import Member, eventually, program

CONFIG = """
hazelcast:
  network:
    join:
      multicast:
        enabled: false
      tcp-ip:
        enabled: true
        member-list: [{members}]
  lite-member:
    enabled: {lite}
  map:
    default:
      backup-count: 2
"""


def start(configs):
    """Members that start at once, each by its port and configuration file."""
    members = [None] * len(configs)

    def run(at, port, config):
        members[at] = Member(port=port, config=config)

    starting = [threading.Thread(target=run, args=(at, *each)) for at, each in enumerate(configs)]
    for each in starting:
        each.start()
    for each in starting:
        each.join()
    return members


@pytest.fixture
def members(tmp_path):
    """Three members with data and a lite one."""
    ports = free_ports(4)
    named = ", ".join(f"'127.0.0.1:{port}'" for port in ports[:3])
    files = []
    for at, port in enumerate(ports):
        file = pathlib.Path(tmp_path) / f"hazelcast-{at}.yaml"
        file.write_text(CONFIG.format(members=named, lite="true" if at == 3 else "false"))
        files.append((port, file))
    running = start(files)
    yield running
    for member in running:
        if member:
            member.stop()


def test_members_and_clients_share_a_port_and_a_lite_member_holds_nothing(members):
    assert all(members)
    eventually(lambda: all(status(member)["replicas"]["held"] == 3 for member in members))
    told = eventually(lambda: (told := status(members[3]))["warnings"] == [] and told)
    assert len(told["members"]) == 4
    assert all(each["address"] == each["client_address"] for each in told["members"])
    lite = next(each for each in told["members"] if each["lite"])
    assert (lite["id"], lite["leads"], lite["votes"]) == (told["member"], 0, 0)
    assert "maps ask for up to 2 backups, and have 2" in members[0].output()
    assert "this one is a lite member" in members[3].output()
    # By the lite member alone, which has every request made by others.
    client = hazelcast.HazelcastClient(cluster_members=[members[3].address], smart_routing=False)
    try:
        shown = {str(each.uuid): each.lite_member for each in client.cluster_service.get_members()}
        assert shown == {each["uuid"]: each["lite"] for each in told["members"]}
        capitals = client.get_map("capitals").blocking()
        for n in range(200):
            capitals.set(n, str(n))
        assert all(capitals.get(n) == str(n) for n in range(200))
        assert capitals.size() == 200
    finally:
        client.shutdown()
    # A client that finds the others by it sends nothing to it.
    client = hazelcast.HazelcastClient(cluster_members=[members[3].address])
    try:
        capitals = client.get_map("capitals").blocking()
        assert all(capitals.get(n) == str(n) for n in range(200))
        # The lite member leaves in order, and nothing is lost.
        assert members[3].stop() == 0
        eventually(lambda: len(status(members[0])["members"]) == 3)
        assert all(capitals.get(n) == str(n) for n in range(200))
    finally:
        client.shutdown()


def test_flags_about_a_cluster_need_one():
    code, _, errors = program("--listen", "127.0.0.1:0", "--replicas", "2")
    assert code == 2 and "--replicas is about a cluster" in errors, errors


def test_a_member_that_cannot_serve_its_clients_does_not_join():
    """It would take its share of the data, and be missed at once."""
    with Cluster() as cluster:
        first = cluster.members[0]
        eventually(lambda: status(first)["replicas"]["held"] == 3)
        before = [each["uuid"] for each in status(first)["members"]]
        taken = first.address
        for door in ["--listen", "--http", "--postgres"]:
            (port,) = free_ports(1)
            doors = {"--listen": "127.0.0.1:0", "--http": "127.0.0.1:0", "--postgres": "127.0.0.1:0", door: taken}
            flags = [word for flag in doors.items() for word in flag]
            more = ["--join", ",".join(cluster.join), "--member-listen", f"127.0.0.1:{port}"]
            code, output, errors = program(*flags, *more)
            assert code == 4 and f"cannot listen on {taken} for" in errors, errors
            assert "is in the cluster" not in output + errors
        assert [each["uuid"] for each in status(first)["members"]] == before
