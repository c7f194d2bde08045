"""CrateDB's own Python client (DB API), which packs larger requests with gzip."""

import datetime
from decimal import Decimal

import pytest
from crate import client
from crate.client.converter import DefaultTypeConverter
from crate.client.exceptions import IntegrityError, ProgrammingError


@pytest.fixture(scope="module")
def connection(member):
    connection = client.connect(f"http://127.0.0.1:{member.http_port}")
    yield connection
    connection.close()


@pytest.fixture
def cursor(connection):
    return connection.cursor()


@pytest.fixture
def table(cursor, name):
    table = f'"{name}"'
    cursor.execute(f"create table {table} (id integer primary key, name text, born timestamp, cash numeric(10, 2), tags array(text), o object)")
    yield table
    cursor.execute(f"drop table {table}")


def test_the_client_knows_the_server(connection):
    assert connection.lowest_server_version.major == 5
    with client.connect(f"http://127.0.0.1:{connection.client.active_servers[0].rsplit(':', 1)[1]}", username="ann") as other:
        cursor = other.cursor()
        cursor.execute("select current_user")
        assert cursor.fetchone() == ["ann"]


def test_rows_and_their_description(cursor):
    cursor.execute("select 1 as one, 'two' as two, null as three")
    assert [column[0] for column in cursor.description] == ["one", "two", "three"]
    assert cursor.rowcount == 1 and cursor.duration > 0
    assert cursor.fetchall() == [[1, "two", None]]
    cursor.execute("select * from generate_series(1, 10000)")
    assert cursor.fetchmany(3) == [[1], [2], [3]]
    assert len(cursor.fetchall()) == 9997


def test_values_go_in_and_come_back(connection, cursor, table):
    born = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.timezone.utc)
    row = (1, "Ann", born, Decimal("12.50"), ["x", "y"], {"k": {"n": 1}})
    cursor.execute(f"insert into {table} (id, name, born, cash, tags, o) values (?, ?, ?, ?, ?, ?)", row)
    assert cursor.rowcount == 1
    cursor.execute(f"select id, name, born, tags, o from {table} where born = ?", (born,))
    assert cursor.fetchall() == [[1, "Ann", 1577934245678, ["x", "y"], {"k": {"n": 1}}]]
    typed = connection.cursor(converter=DefaultTypeConverter())
    typed.execute(f"select born from {table}")
    assert typed.fetchone() == [born]
    cursor.execute(f"select cash from {table} where cash = ?", (Decimal("12.50"),))
    assert Decimal(str(cursor.fetchone()[0])) == Decimal("12.50")


def test_named_parameters(cursor, table):
    cursor.execute(f"insert into {table} (id, name) values (%(id)s, %(name)s)", {"id": 1, "name": "Ann"})
    cursor.execute(f"select name from {table} where id = %(id)s", {"id": 1})
    assert cursor.fetchone() == ["Ann"]


def test_many_rows_at_once(cursor, table):
    rows = [(number, f"name {number}" * 10) for number in range(5000)]
    results = cursor.executemany(f"insert into {table} (id, name) values (?, ?)", rows)
    assert cursor.rowcount == 5000 and len(results) == 5000
    results = cursor.executemany(f"insert into {table} (id, name) values (?, ?)", [(5000, "x"), (1, "y"), (5001, "z")])
    assert [result["rowcount"] for result in results] == [1, -2, 1]
    cursor.execute(f"select count(*) from {table}")
    assert cursor.fetchone() == [5002]


def test_errors_are_the_clients_own(cursor, table):
    cursor.execute(f"insert into {table} (id) values (1)")
    with pytest.raises(IntegrityError, match="DuplicateKeyException"):
        cursor.execute(f"insert into {table} (id) values (1)")
    with pytest.raises(ProgrammingError, match="RelationUnknown"):
        cursor.execute("select * from nowhere")
    with pytest.raises(ProgrammingError, match="SQLParseException"):
        cursor.execute("selec 1")


def test_settings_last_as_long_as_the_connection(connection, cursor, table):
    cursor.execute(f"insert into {table} (id) values (1)")
    cursor.execute("set search_path to other, doc")
    cursor.execute("select current_schema")
    assert cursor.fetchone() == ["other"]
    cursor.execute("set search_path to doc")
