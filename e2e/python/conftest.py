"""What every test of this suite shares: one member, a client factory, a map of the test's own."""

import itertools
import re

import hazelcast
import pytest
from hazelcast.sql import HazelcastSqlError

from cluster import Cluster, Sessions
from formats import FORMATS, PEOPLE, SETTINGS
from member import MEMBERS, Member


@pytest.fixture(scope="session")
def member():
    """The member of all suites; with FILBERT_E2E_MEMBERS=3 the first of a cluster of three."""
    if MEMBERS == 1:
        with Member() as running:
            yield running
        return
    with Cluster(MEMBERS) as running:
        yield running.members[0]


@pytest.fixture
def sessions(cluster):
    """One session with each member of the test's own cluster."""
    running = Sessions(cluster)
    yield running
    running.close()


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


_numbers = itertools.count(1)


@pytest.fixture
def name(request):
    """A name of the test's own, for structures that no other test touches."""
    plain = re.sub(r"\W+", "-", request.node.name)
    return f"{plain[:60]}-{next(_numbers)}"


@pytest.fixture
def numbers(client, name):
    return client.get_map(name).blocking()


@pytest.fixture(scope="session")
def people_client(member):
    """A client that knows the people of `formats` in every format."""
    client = start_client(member, **SETTINGS)
    yield client
    client.shutdown()


@pytest.fixture(scope="module", params=FORMATS)
def people(request, people_client):
    """A map of all people in one format; it is shared by the tests of a module, which only read it."""
    people = people_client.get_map(f"{request.module.__name__}-people-{request.param}").blocking()
    people.put_all({key: FORMATS[request.param](person) for key, person in PEOPLE.items()})
    return people


class Sql:
    """Statements in one line each; `map` in a statement stands for the test's own map."""

    def __init__(self, client, name):
        self.client, self.name = client, f'"{name}"'

    def execute(self, text, *parameters, **settings):
        return self.client.sql.execute(text.replace("{map}", self.name), *parameters, **settings).result()

    def rows(self, text, *parameters, **settings):
        """All rows, in the order in which they come."""
        with self.execute(text, *parameters, **settings) as result:
            return [tuple(row[i] for i in range(len(row))) for row in result]

    def row_set(self, text, *parameters, **settings):
        """All rows of a statement that orders nothing, in an order that can be compared."""
        return sorted(self.rows(text, *parameters, **settings), key=repr)

    def value(self, text, *parameters, **settings):
        """The one value of a statement that has one row of one column."""
        ((value,),) = self.rows(text, *parameters, **settings)
        return value

    def columns(self, text, *parameters):
        """Names and types of the columns."""
        with self.execute(text, *parameters) as result:
            return [(column.name, column.type) for column in result.get_row_metadata().columns]

    def update(self, text, *parameters, **settings):
        """The update count of a statement that changes something."""
        result = self.execute(text, *parameters, **settings)
        assert not result.is_row_set()
        return result.update_count()

    def error(self, text, *parameters, **settings):
        """The error of a statement that cannot succeed, wherever it shows."""
        with pytest.raises(HazelcastSqlError) as raised:
            self.rows(text, *parameters, **settings)
        return raised.value

    def mapping(self, key, value, columns="", options=""):
        """Makes a mapping for the test's map."""
        options = f", {options}" if options else ""
        columns = f"({columns})" if columns else ""
        self.update(
            f"CREATE OR REPLACE MAPPING {self.name} {columns} TYPE IMap"
            f" OPTIONS ('keyFormat' = '{key}', 'valueFormat' = '{value}'{options})"
        )


@pytest.fixture
def sql(client, name):
    return Sql(client, name)
