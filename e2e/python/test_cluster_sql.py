"""Statements over three members: whichever is asked answers for all, over every door, and one may die meanwhile."""

import json
import threading
import urllib.request

import hazelcast
import psycopg
import pytest
from hazelcast.predicate import between, sql

from cluster import Cluster
from member import eventually
from postgres_tools import dsn


@pytest.fixture
def cluster():
    with Cluster() as running:
        yield running


def rows(session, statement, parameters=None):
    return session.execute(statement, parameters).fetchall()


def over_http(member, statement, args=()):
    """The rows of a statement of CrateDB's tools."""
    return sent_over_http(member, {"stmt": statement, "args": list(args)})["rows"]


def sent_over_http(member, content):
    body = json.dumps(content).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{member.http_port}/_sql", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_a_table_is_the_same_at_every_member_and_over_every_door(cluster, sessions):
    sessions[0].execute("create table people (id int primary key, name text not null, born date, check (id > 0))")
    for number in range(1, 301):
        sessions[number % 3].execute("insert into people values (%s, %s, '2000-01-02')", (number, f"name {number}"))
    for session in sessions:
        assert rows(session, "select count(*), min(id), max(id), count(distinct name) from people") == [(300, 1, 300, 300)]
        assert rows(session, "select name from people where id = %s", (77,)) == [("name 77",)]
    assert sessions[1].execute("update people set name = upper(name) where id <= 100").rowcount == 100
    assert sessions[2].execute("delete from people where id > 200").rowcount == 100
    for member in cluster.members:
        counted = "select count(*) from people where name like 'NAME%'"
        assert over_http(member, counted) == [[100]]
    client = hazelcast.HazelcastClient(cluster_members=[cluster.members[2].address])
    try:
        result = client.sql.execute("SELECT id FROM people WHERE id BETWEEN 5 AND 7 ORDER BY id").result()
        assert [row["id"] for row in result] == [5, 6, 7]
        assert client.get_map("people").blocking().size() == 200
    finally:
        client.shutdown()
    with pytest.raises(psycopg.errors.UniqueViolation):
        sessions[1].execute("insert into people values (1000, 'new', null), (5, 'there', null)")
    with pytest.raises(psycopg.errors.CheckViolation):
        sessions[2].execute("insert into people values (-1, 'negative', null)")
    for session in sessions:
        assert rows(session, "select count(*) from people where id in (1000, -1)") == [(0,)]
    sessions[2].execute("drop table people")
    for session in sessions:
        with pytest.raises(psycopg.errors.UndefinedTable):
            session.execute("select 1 from people")


def test_what_is_declared_at_one_member_is_known_at_the_next_statement_of_another(sessions):
    for number in range(20):
        ours, theirs = sessions[number % 3], sessions[(number + 1) % 3]
        ours.execute(f"create table t{number} (id bigint primary key, a int default 7 + 1)")
        theirs.execute(f"insert into t{number} (id) values (1)")
        ours.execute(f"alter table t{number} add column b text")
        theirs.execute(f"insert into t{number} (id, b) values (2, 'b')")
        assert rows(ours, f"select * from t{number} order by id") == [(1, 8, None), (2, 8, "b")]
        theirs.execute(f"create index on t{number} (a)")
        plan = "\n".join(row[0] for row in rows(ours, f"explain select id from t{number} where a = 8"))
        assert "index" in plan, plan
        ours.execute(f"create view v{number} as select a from t{number}")
        assert rows(theirs, f"select sum(a) from v{number}") == [(16,)]
        theirs.execute(f"comment on table t{number} is 'told'")
        ours.execute(f"truncate t{number}")
        assert rows(theirs, f"select count(*) from t{number}") == [(0,)]


DUPLICATE_TABLE = "42P07"


def test_a_table_that_all_members_are_told_to_make_at_once_is_made_by_one(sessions):
    outcomes = []

    def make(session):
        try:
            session.execute("create table contested (a int)")
            outcomes.append("made")
        except psycopg.Error as error:
            outcomes.append(error.sqlstate)

    # Once it was dropped, the same name is as good as new.
    for _ in range(2):
        outcomes.clear()
        makers = [threading.Thread(target=make, args=(session,)) for session in sessions]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        assert sorted(outcomes) == [DUPLICATE_TABLE, DUPLICATE_TABLE, "made"]
        sessions[0].execute("drop table contested")


def test_numbers_of_rows_are_given_once_whichever_member_gives_them(sessions):
    sessions[0].execute("create table counted (id bigint generated always as identity, by int)")
    sessions[1].execute("create table plain (by int)")

    def write(number):
        for _ in range(100):
            sessions[number].execute("insert into counted (by) values (%s)", (number,))
            sessions[number].execute("insert into plain values (%s), (%s)", (number, number))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    for session in sessions:
        assert rows(session, "select count(*), count(distinct id), min(id) from counted") == [(300, 300, 1)]
        assert rows(session, "select count(*) from plain") == [(600,)]


def test_changes_of_one_row_at_all_members_are_none_of_them_lost(sessions):
    sessions[0].execute("create table sums (id int primary key, n bigint)")
    sessions[1].execute("insert into sums select g, 0 from generate_series(1, 20) as g")

    def add(session):
        for number in range(40):
            key = (number % 5 + 1,)
            session.execute("update sums set n = n + 1 where id = %s", key)
            session.execute("update sums set n = n + 1 where id + 0 = %s", key)
            session.execute("insert into sums values (%s, 1) on conflict (id) do update set n = sums.n + 1", key)
            if number % 4 == 0:
                session.execute("update sums set n = n + 1")

    writers = [threading.Thread(target=add, args=(session,)) for session in sessions]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    for session in sessions:
        assert rows(session, "select sum(n) from sums") == [(3 * (3 * 40 + 10 * 20),)]


def test_queries_of_the_map_api_see_what_all_members_hold(cluster):
    clients = [
        hazelcast.HazelcastClient(cluster_members=[member.address], smart_routing=smart)
        for member, smart in zip(cluster.members, [True, False, True])
    ]
    try:
        maps = [client.get_map("scores").blocking() for client in clients]
        maps[0].put_all({number: number % 100 for number in range(3_000)})
        maps[1].add_index(attributes=["this"])
        for each in maps:
            assert len(each.values(between("this", 10, 19))) == 300
            assert sorted(each.key_set(sql("this = 42 and __key < 1000"))) == list(range(42, 1000, 100))
            assert each.aggregate(hazelcast.aggregator.count()) == 3_000
            assert each.aggregate(hazelcast.aggregator.long_sum(), sql("this < 10")) == 30 * 45
        maps[2].remove_all(sql("this >= 50"))
        assert [each.size() for each in maps] == [1_500] * 3
    finally:
        for client in clients:
            client.shutdown()


def test_rows_that_were_acknowledged_outlive_a_member(cluster):
    with psycopg.connect(dsn(cluster.members[0]), autocommit=True) as session:
        session.execute("create table kept (id int primary key, n int)")
        session.execute("create index kept_n on kept (n)")
    acknowledged, unknown, stop = [], [], threading.Event()

    def write(member, first):
        with psycopg.connect(dsn(member), autocommit=True) as session:
            for number in range(first, 1_000_000, 2):
                if stop.is_set():
                    return
                try:
                    session.execute("insert into kept values (%s, %s)", (number, number % 10))
                    acknowledged.append(number)
                except psycopg.Error as error:
                    # It may have been made: the member that led it died.
                    unknown.append((number, error.sqlstate))

    survivors = [cluster.members[0], cluster.members[2]]
    writers = [threading.Thread(target=write, args=(member, first)) for first, member in enumerate(survivors)]
    for each in writers:
        each.start()
    eventually(lambda: len(acknowledged) > 300)
    dies = cluster.members[1]
    cluster.end(dies, in_order=False)
    before = len(acknowledged)
    eventually(lambda: len(acknowledged) > before + 300)
    stop.set()
    for each in writers:
        each.join()
    print(f"{len(acknowledged)} acknowledged, unknown or refused: {unknown}")
    cluster.start(dies.join_address)
    for member in cluster.members:
        with psycopg.connect(dsn(member), autocommit=True) as session:
            found = {row[0] for row in rows(session, "select id from kept")}
            assert set(acknowledged) <= found
            assert found <= set(acknowledged) | {number for number, _ in unknown}
            counted = rows(session, "select count(*) from kept where n = 3")
            assert counted == [(len([number for number in found if number % 10 == 3]),)]


def test_a_session_goes_on_at_a_member_that_reaches_no_other(cluster):
    with psycopg.connect(dsn(cluster.members[0])) as session:
        session.execute("create table lonely (id int primary key)")
        session.commit()
        while len(cluster.members) > 1:
            cluster.end(cluster.members[1], in_order=False)
        session.execute("set statement_timeout = 1000")
        with pytest.raises(psycopg.OperationalError):
            session.execute("insert into lonely values (1)")
        session.rollback()
        session.execute("set application_name = 'still here'")
        session.rollback()


def test_each_row_of_a_bulk_insert_has_its_own_outcome(cluster, sessions):
    sessions[0].execute("create table lots (id int primary key, n int not null, check (n < 100))")
    sessions[1].execute("insert into lots values (5, 0), (3000, 0)")
    rows_sent = [[number, 1] for number in range(4000)]
    # Keys of the same request, once close to each other and once far away; rows that cannot be written.
    rows_sent[11] = rows_sent[10]
    rows_sent[3500] = [20, 2]
    rows_sent[30] = [30, None]
    rows_sent[31] = [31, 100]
    rows_sent[32] = ["no number", 1]
    wrong = {5, 3000, 11, 3500, 30, 31, 32}
    client = hazelcast.HazelcastClient(cluster_members=[cluster.members[2].address])
    try:
        # A locked key is waited for; the rows around it are written meanwhile.
        locked = client.get_map("lots").blocking()
        locked.lock(40)
        answer, request = [], {"stmt": "insert into lots values (?, ?)", "bulk_args": rows_sent}
        sending = threading.Thread(target=lambda: answer.append(sent_over_http(cluster.members[0], request)))
        sending.start()
        eventually(lambda: rows(sessions[1], "select count(*) > 900 from lots") == [(True,)])
        assert sending.is_alive()
        locked.unlock(40)
        sending.join()
    finally:
        client.shutdown()
    found = {number for number, row in enumerate(answer[0]["results"]) if row["rowcount"] != 1}
    assert found == wrong
    expected = 4000 - len(wrong) + 2
    for session in sessions:
        assert rows(session, "select count(*), sum(n) from lots") == [(expected, 4000 - len(wrong))]
    upsert = "insert into lots values (?, ?) on conflict (id) do update set n = excluded.n"
    again = sent_over_http(cluster.members[1], {"stmt": upsert, "bulk_args": [[7, 9], [7, 8]]})
    assert [row["rowcount"] for row in again["results"]] == [1, 1]
    assert rows(sessions[2], "select n from lots where id = 7") == [(8,)]
