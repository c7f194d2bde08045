"""Tables of a cluster that one member alters while the others read and write them."""

import threading

import hazelcast
import psycopg
import pytest

from cluster import Cluster, Sessions, is_whole, status
from member import eventually, program
from postgres_tools import dsn
from test_cluster_sql import rows

ROWS = 2_000


@pytest.fixture(scope="module", params=[3, 4], ids=["3 members", "4 members with 3 replicas"])
def cluster(request):
    with Cluster(request.param) as running:
        eventually(lambda: len(status(running.members[0])["members"]) == request.param)
        yield running


@pytest.fixture
def table(sessions):
    sessions[0].execute("create table t (id int primary key, name text, amount int)")
    sessions[1].execute("create index t_name on t (name)")
    sessions[0].execute("insert into t select g, 'name ' || g, g from generate_series(1, %s) g", (ROWS,))
    yield
    sessions[0].execute("drop table if exists t, u")


def everywhere(sessions, statement):
    """The rows of a statement, which are the same at every member."""
    found = [rows(session, statement) for session in sessions]
    assert all(each == found[0] for each in found), found
    return found[0]


def test_a_table_that_one_member_alters_is_altered_for_all(sessions, table):
    sessions[1].execute("alter table t rename column name to label")
    assert everywhere(sessions, "select count(*), max(label) from t") == [(ROWS, "name 999")]
    assert everywhere(sessions, "select id from t where label = 'name 7'") == [(7,)]
    plan = rows(sessions[2], "explain select id from t where label = 'name 7'")
    assert "index t_name" in plan[0][0]
    sessions[2].execute("alter table t add column extra int default 5")
    assert everywhere(sessions, "select sum(extra) from t") == [(5 * ROWS,)]
    sessions[2].execute("alter table t drop column extra")
    sessions[0].execute("alter table t add column extra int")
    assert everywhere(sessions, "select count(extra) from t") == [(0,)]
    sessions[0].execute("alter table t alter column amount type bigint using amount * 2")
    assert everywhere(sessions, "select sum(amount) from t") == [(ROWS * (ROWS + 1),)]
    with pytest.raises(psycopg.errors.CheckViolation):
        sessions[1].execute("alter table t add constraint positive check (amount > 100)")
    sessions[1].execute("alter table t add constraint positive check (amount > 0)")
    for session in sessions:
        with pytest.raises(psycopg.errors.CheckViolation):
            session.execute("insert into t values (%s, 'x', -1)", (ROWS + 1,))
    sessions[2].execute("alter table t drop constraint t_pkey, add primary key (label)")
    for session in sessions:
        with pytest.raises(psycopg.errors.UniqueViolation):
            session.execute("insert into t values (%s, 'name 9', 1)", (ROWS + 1,))
    sessions[1].execute("insert into t values (1, 'other', 1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        sessions[0].execute("alter table t drop constraint t_pkey, add primary key (id)")
    assert everywhere(sessions, "select count(*) from t where id = 1") == [(2,)]
    sessions[2].execute("alter table t rename to u")
    assert everywhere(sessions, "select count(*) from u") == [(ROWS + 1,)]
    sessions[0].execute("create table t (id int primary key)")
    assert everywhere(sessions, "select count(*) from t") == [(0,)]


def test_entries_keep_their_lifetimes_and_the_map_its_listeners(cluster, sessions, table):
    client = hazelcast.HazelcastClient(cluster_members=[member.address for member in cluster.members])
    try:
        entries, removed = client.get_map("t").blocking(), []
        entries.add_entry_listener(removed_func=lambda event: removed.append(event.key))
        assert entries.set_ttl(7, 6)
        sessions[1].execute("alter table t add column extra int default 5")
        assert everywhere(sessions, "select sum(extra) from t where id between 6 and 8") == [(15,)]
        entries.delete(8)
        eventually(lambda: removed == [8])
        eventually(lambda: rows(sessions[2], "select count(*) from t where id = 7") == [(0,)])
        assert everywhere(sessions, "select count(*) from t") == [(ROWS - 2,)]
    finally:
        client.shutdown()


def test_an_altered_table_whose_map_a_client_destroys_is_empty(cluster, sessions, table):
    sessions[1].execute("alter table t add column extra int default 5")
    client = hazelcast.HazelcastClient(cluster_members=[member.address for member in cluster.members])
    try:
        client.get_map("t").blocking().destroy()
    finally:
        client.shutdown()
    assert everywhere(sessions, "select count(*), sum(extra) from t") == [(0, None)]
    sessions[2].execute("insert into t values (1, 'new', 1)")
    assert everywhere(sessions, "select id, extra from t") == [(1, 5)]


def test_a_lock_of_a_client_keeps_a_table_as_it_is(cluster, sessions, table):
    client = hazelcast.HazelcastClient(cluster_members=[member.address for member in cluster.members])
    try:
        entries = client.get_map("t").blocking()
        entries.lock(7)
        statement = "alter table t add column extra int default 5"
        waits = threading.Thread(target=lambda: sessions[1].execute(statement))
        waits.start()
        running = "select count(*) from sys.jobs where stmt = %s"
        with psycopg.connect(dsn(cluster.members[1]), autocommit=True) as watching:
            eventually(lambda: rows(watching, running, (statement,)) == [(1,)])
        assert rows(sessions[0], "select count(*) from t") == [(ROWS,)]
        assert waits.is_alive()
        entries.unlock(7)
        waits.join()
        assert everywhere(sessions, "select sum(extra) from t") == [(5 * ROWS,)]
    finally:
        client.shutdown()


CHANGES = [
    "alter table t add column extra int default 5",
    "alter table t drop column extra",
    "alter table t alter column amount type bigint",
    "alter table t add constraint positive check (id > 0)",
    "alter table t drop constraint positive",
    "alter table t alter column amount type int",
]


class Writer(threading.Thread):
    """Adds rows, and one to the amount of others, by SQL until it is told to end."""

    def __init__(self, member, number, ends):
        super().__init__(daemon=True)
        self.rows, self.added, self.problems = 0, 0, []
        self._member, self._number, self._ends = member, number, ends
        self.start()

    def run(self):
        with psycopg.connect(dsn(self._member), autocommit=True) as session:
            while not self._ends.is_set():
                try:
                    key = 1_000_000 * (self._number + 1) + self.rows
                    session.execute("insert into t (id, name, amount) values (%s, 'new', 0)", (key,))
                    self.rows += 1
                    self.added += session.execute(
                        "update t set amount = amount + 1 where id = %s", (self.rows % ROWS + 1,)
                    ).rowcount
                    counted = session.execute("select count(*) from t where id <= %s", (ROWS,)).fetchone()[0]
                    if counted != ROWS:
                        self.problems.append(counted)
                except psycopg.Error as error:
                    # A read of the former table can be repeated.
                    if error.sqlstate != "40001" or "read" not in str(error):
                        self.problems.append((error.sqlstate, str(error)))


def test_writers_of_other_members_notice_nothing_of_it(cluster, sessions, table):
    ends = threading.Event()
    writers = [Writer(member, number, ends) for number, member in enumerate(cluster.members)]
    for statement in CHANGES * 2:
        sessions[1].execute(statement)
        before = [writer.rows for writer in writers]
        eventually(lambda: all(writer.rows > then for writer, then in zip(writers, before)))
    ends.set()
    for writer in writers:
        writer.join()
    assert [writer.problems for writer in writers] == [[]] * len(writers)
    added, new = sum(writer.added for writer in writers), sum(writer.rows for writer in writers)
    assert everywhere(sessions, "select count(*), sum(amount) from t") == [(ROWS + new, ROWS * (ROWS + 1) // 2 + added)]


def counted(session):
    """The number of rows. A query fails if the table is replaced while the query reads."""
    while True:
        try:
            return rows(session, "select count(*) from t")[0][0]
        except psycopg.errors.SerializationFailure:
            pass


def test_a_table_is_emptied_as_a_whole_whoever_alters_it(sessions, table):
    problems = []

    def alter():
        for statement in 10 * CHANGES[:2]:
            try:
                sessions[1].execute(statement)
            except psycopg.Error as error:
                problems.append((error.sqlstate, str(error)))

    altering = threading.Thread(target=alter)
    altering.start()
    try:
        sessions[2].execute("truncate t")
        for _ in range(20):
            sessions[0].execute("insert into t (id, name) select g, 'new' from generate_series(1, 500) g")
            sessions[2].execute("truncate t")
            assert counted(sessions[0]) == 0
    finally:
        altering.join()
    assert problems == []


def test_members_that_alter_a_table_at_once_do_so_one_after_the_other(sessions, table):
    problems = []

    def alter(session, number):
        try:
            session.execute(f"alter table t add column of_{number} int default {number}")
        except psycopg.Error as error:
            problems.append((error.sqlstate, str(error)))

    altering = [threading.Thread(target=alter, args=(session, number)) for number, session in enumerate(sessions)]
    for each in altering:
        each.start()
    for each in altering:
        each.join()
    assert problems == []
    assert everywhere(sessions, "select sum(of_0), sum(of_1), sum(of_2) from t") == [(0, ROWS, 2 * ROWS)]


def test_a_table_stays_as_it_was_if_the_member_that_alters_it_dies():
    with Cluster(3) as cluster:
        eventually(lambda: is_whole(cluster.members[0], 3))
        first, second, third = cluster.members
        dead = next(each["id"] for each in status(first)["members"] if each["address"] == third.join_address)
        sessions = Sessions(cluster)
        sessions[0].execute("create table t (id int primary key, name text)")
        sessions[0].execute("insert into t select g, 'x' from generate_series(1, %s) g", (ROWS,))
        client = hazelcast.HazelcastClient(cluster_members=[first.address, second.address])
        entries = client.get_map("t").blocking()

        def alter():
            with pytest.raises(psycopg.OperationalError):
                sessions[2].execute("alter table t alter column name type text using name || 'y'")

        with psycopg.connect(dsn(first), autocommit=True) as impatient:
            # The statement waits for this key, and has claimed those of other partitions meanwhile.
            entries.lock(7)
            altering = threading.Thread(target=alter)
            altering.start()
            impatient.execute("set statement_timeout = 500")

            def waits():
                try:
                    impatient.execute("update t set name = 'z' where id = 1")
                    return False
                except psycopg.errors.QueryCanceled:
                    return True

            eventually(waits)
            cluster.end(third, in_order=False)
        altering.join()
        entries.unlock(7)
        assert rows(sessions[1], "select count(*) from t where name like '%y'") == [(0,)]
        eventually(lambda: program("cluster", "--host", f"127.0.0.1:{first.http_port}", "remove", str(dead))[0] == 0)
        sessions[1].execute("update t set name = 'z' where id = 1")
        sessions[0].execute("alter table t rename column name to label")
        assert rows(sessions[1], "select count(*), max(label) from t") == [(ROWS, "z")]
        client.shutdown()
