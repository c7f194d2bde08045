"""SQL where there is much of something: of text, of parameters, of depth, of cursors, of changes while a query runs."""

import threading

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.sql import HazelcastSqlError

from conftest import Sql
from member import REAL_HAZELCAST

pytestmark = pytest.mark.skipif(REAL_HAZELCAST, reason="these are limits of this program's own")


@pytest.fixture
def thousand(sql, numbers):
    sql.mapping("int", "int")
    numbers.put_all({i: i for i in range(1000)})
    return sql


def alive(sql):
    assert sql.value("SELECT COUNT(*) FROM {map}") == 1000


def test_a_statement_of_many_megabytes_is_answered_or_refused(thousand):
    for megabytes in (1, 9, 11):
        text = "SELECT COUNT(*) FROM {map} WHERE __key <> 0 OR '" + "x" * (megabytes * 1024 * 1024) + "' = 'y'"
        try:
            assert thousand.value(text) == 999
        except HazelcastSqlError as error:
            assert megabytes > 1 and len(str(error)) < 10_000
        alive(thousand)


def test_as_many_parameters_as_postgresql_takes(thousand):
    marks = ", ".join("?" * 65_535)
    rows = thousand.rows(f"SELECT COUNT(*) FROM {{map}} WHERE this IN ({marks})", *range(500, 66_035))
    assert rows == [(500,)]
    thousand.error(f"SELECT COUNT(*) FROM {{map}} WHERE this IN ({marks}, ?)", *range(65_536))
    alive(thousand)


@pytest.mark.parametrize("opening, closing", [("(", ")"), ("NOT ", ""), ("-", ""), ("ABS(", ")"), ("CASE WHEN ", " THEN 1 END")])
def test_deep_nesting_is_answered_or_refused(thousand, opening, closing):
    for depth in (10, 1000, 100_000):
        try:
            thousand.rows("SELECT " + opening * depth + "1 = 1" + closing * depth + " FROM {map} WHERE __key = 1")
        except HazelcastSqlError as error:
            assert len(str(error)) < 10_000
        alive(thousand)


def test_a_long_chain_of_conditions(thousand):
    chain = " OR ".join(f"this = {i}" for i in range(500, 1500))
    try:
        assert thousand.value(f"SELECT COUNT(*) FROM {{map}} WHERE {chain}") == 500
    except HazelcastSqlError as error:
        assert "deep" in str(error) or "nest" in str(error) or "recursion" in str(error)
    alive(thousand)


def test_a_client_with_a_thousand_cursors_goes(connect, thousand):
    gone = connect()
    for _ in range(1000):
        gone.sql.execute(f"SELECT * FROM {thousand.name}", cursor_buffer_size=1).result()
    gone.shutdown()
    alive(thousand)


def test_a_scan_goes_on_while_the_map_is_cleared_and_filled(sql, numbers):
    sql.mapping("int", "int")
    entries = {i: i for i in range(20_000)}
    numbers.put_all(entries)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            numbers.clear()
            numbers.put_all(entries)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(20):
            rows = sql.rows("SELECT __key, this FROM {map}", cursor_buffer_size=100)
            assert len({key for key, _ in rows}) == len(rows) <= 20_000
            assert all(key == value for key, value in rows)
            assert 0 <= sql.value("SELECT COUNT(*) FROM {map} WHERE this >= 0") <= 20_000
    finally:
        stop.set()
        changer.join()
    assert sql.value("SELECT COUNT(*) FROM {map}") == 20_000


def test_an_index_is_made_under_load(connect, sql, numbers, name):
    sql.mapping("int", "int")
    writer = connect().get_map(name)
    stop = threading.Event()

    def change():
        i = 0
        while not stop.is_set():
            writer.put_all({(i + k) % 5000: (i + k) % 50 for k in range(100)}).result()
            i += 100

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for kind in ("SORTED", "HASH", "BITMAP"):
            sql.update(f'CREATE INDEX "{name}-{kind}" ON {{map}} (this) TYPE {kind}')
            for _ in range(20):
                rows = sql.rows("SELECT __key, this FROM {map} WHERE this = 7")
                assert all(value == 7 and key % 50 == 7 for key, value in rows)
    finally:
        stop.set()
        changer.join()
    assert sql.value("SELECT COUNT(*) FROM {map} WHERE this = 7") == len(
        [value for value in numbers.values() if value == 7]
    )


def test_many_clients_at_once(connect, thousand):
    failures = []

    def ask(client):
        sql = Sql(client, thousand.name.strip('"'))
        try:
            for i in range(50):
                assert sql.rows("SELECT this FROM {map} WHERE __key = ?", i) == [(i,)]
                assert sql.value("SELECT SUM(this) FROM {map} WHERE this < ?", i) == (sum(range(i)) if i else None)
        except Exception as error:  # seen by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(connect(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_invalid_json_in_one_of_many_rows_is_named_by_its_key(sql, numbers):
    sql.mapping("int", "json-flat", "__key INT, a INT")
    numbers.put_all({i: HazelcastJsonValue(f'{{"a": {i}}}') for i in range(5000)})
    numbers.put(4711, HazelcastJsonValue('{"a": nonsense}'))
    assert "4711" in str(sql.error("SELECT SUM(a) FROM {map}"))
    assert sql.rows("SELECT a FROM {map} WHERE __key = 4710") == [(4710,)]
