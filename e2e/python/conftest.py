"""What every test of this suite shares: one member, a client factory, a map of the test's own."""

import hazelcast
import pytest

from member import Member


@pytest.fixture(scope="session")
def member():
    with Member() as running:
        yield running


def start_client(member, **settings):
    settings.setdefault("cluster_members", [member.address])
    settings.setdefault("cluster_connect_timeout", 30)
    return hazelcast.HazelcastClient(**settings)


@pytest.fixture
def connect(member):
    """Makes clients that the test need not close."""
    clients = []

    def make(**settings):
        clients.append(start_client(member, **settings))
        return clients[-1]

    yield make
    for client in clients:
        client.shutdown()


@pytest.fixture(scope="session")
def client(member):
    client = start_client(member)
    yield client
    client.shutdown()


@pytest.fixture
def name(request):
    """The test's own name, for structures that no other test touches."""
    return request.node.name


@pytest.fixture
def numbers(client, name):
    return client.get_map(name).blocking()
