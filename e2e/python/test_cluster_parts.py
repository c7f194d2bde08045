"""Statements and queries at members that hold a part of the partitions, or none: they see what all hold."""

import pathlib
import threading

import hazelcast
import psycopg
import pytest
from hazelcast.aggregator import count, int_sum
from hazelcast.predicate import between, paging, sql

from cluster import Cluster, free_ports, status, together
from member import Member, eventually
from postgres_tools import dsn
from test_cluster_sql import over_http, rows

ROWS = 5_000
LITE = """
hazelcast:
  network:
    join:
      tcp-ip:
        enabled: true
        member-list: [{members}]
  lite-member:
    enabled: true
"""


def is_spread(member, members, replicas=3):
    """Whether each of so many members holds its part of the groups."""
    told = status(member)
    groups = [group["voters"] for group in told["groups"] if group["group"] != "registry"]
    voters = [voter["member"] for group in groups for voter in group]
    part = len(groups) * replicas // members
    return len(told["members"]) == members and all(voters.count(each["id"]) == part for each in told["members"])


@pytest.fixture(scope="module")
def cluster():
    with Cluster(4) as running:
        eventually(lambda: is_spread(running.members[0], 4))
        yield running


@pytest.fixture
def numbers(sessions):
    """A table that each member has written a part of."""
    sessions[0].execute("create table numbers (id int primary key, grp int, name text, amount numeric(10, 2))")
    for at, session in enumerate(sessions):
        session.execute(
            "insert into numbers select g, g %% 100, 'name ' || g, g / 4.0 from generate_series(%s::int, %s::int, 4) g",
            (at + 1, ROWS),
        )
    yield
    sessions[0].execute("drop table numbers")


READS = [
    ("select count(*) from numbers", [(ROWS,)]),
    ("select count(*), sum(id), min(id), max(id) from numbers", [(ROWS, ROWS * (ROWS + 1) // 2, 1, ROWS)]),
    ("select name from numbers where id = 777", [("name 777",)]),
    ("select id from numbers where id in (5, 1, 6000, 3) order by id", [(1,), (3,), (5,)]),
    ("select id from numbers where id between 10 and 12 order by id", [(10,), (11,), (12,)]),
    ("select count(*), sum(id) from numbers where grp = 7", [(50, sum(range(7, ROWS, 100)))]),
    ("select grp, count(*) from numbers group by grp order by grp limit 2", [(0, 50), (1, 50)]),
    ("select count(distinct name) from numbers", [(ROWS,)]),
    ("select count(*) from numbers a join numbers b on a.id = b.grp", [(99 * 50,)]),
    ("select count(*) from numbers where name like '%99'", [(50,)]),
    ("select id from numbers order by id desc limit 2", [(ROWS,), (ROWS - 1,)]),
    ("select max(id) from numbers where grp = (select min(grp) + 3 from numbers)", [(4903,)]),
    ("select count(*) from (select id from numbers limit 10) limited", [(10,)]),
]


@pytest.mark.parametrize("with_index", [False, True])
def test_every_member_answers_every_query(cluster, sessions, numbers, with_index):
    if with_index:
        sessions[1].execute("create index on numbers (grp)")
        sessions[2].execute("create index on numbers (id)")
    for query, expected in READS:
        for session in sessions:
            assert rows(session, query) == expected, query
    for member in cluster.members:
        assert over_http(member, "select sum(id) from numbers where grp = 1") == [[sum(range(1, ROWS, 100))]]


def test_an_index_of_values_that_one_member_alone_has_converted_is_not_believed(cluster):
    """A member has seen the values of its own partitions only."""
    client = hazelcast.HazelcastClient(cluster_members=[each.address for each in cluster.members])
    try:
        mixed = client.get_map("mixed").blocking()
        mixed.add_index(["this"], name="by value")
        mixed.put_all({number: number for number in range(300)})
        # One of them is a text, in a partition of some members.
        mixed.set(300, "7")
        client.sql.execute("CREATE MAPPING mixed TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')").result()
        assert sorted(mixed.key_set(sql("this = 7"))) == sorted(mixed.key_set(sql("this in (7, 1000)")))
        found = set()
        for member in cluster.members:
            alone = hazelcast.HazelcastClient(cluster_members=[member.address], smart_routing=False)
            try:
                answer = alone.sql.execute("SELECT __key FROM mixed WHERE this = 7").result()
                found.add(tuple(sorted(row["__key"] for row in answer)))
            finally:
                alone.shutdown()
        assert found == {(7, 300)}
        client.sql.execute("DROP MAPPING mixed").result()
    finally:
        client.shutdown()


def test_changes_at_every_member_see_rows_of_all(sessions, numbers):
    for at, session in enumerate(sessions):
        other = sessions[(at + 1) % 4]
        assert session.execute("update numbers set name = %s where grp = %s", (f"by {at}", at)).rowcount == 50
        assert rows(other, "select count(*) from numbers where name = %s", (f"by {at}",)) == [(50,)]
        # By key, one row after the other, and the next read at another member.
        for number in range(40, 60):
            assert session.execute("update numbers set amount = amount + 1 where id = %s", (number,)).rowcount == 1
            assert rows(other, "select amount > id / 4.0 + %s from numbers where id = %s", (at, number)) == [(True,)]
        upserted = "insert into numbers values (%s, 0, 'new', 0) on conflict (id) do update set name = numbers.name || '!'"
        names = [rows(session, upserted + " returning name", (number,)) for number in (7, 8, 9)]
        assert all(name[0][0].endswith("!" * (at + 1)) for name in names), names
        assert session.execute("insert into numbers values (1, 0, 'x', 0) on conflict do nothing").rowcount == 0
        with pytest.raises(psycopg.errors.UniqueViolation):
            session.execute("insert into numbers values (%s, 0, 'x', 0), (20, 0, 'x', 0)", (10_000 + at,))
        assert session.execute("delete from numbers where id > %s", (ROWS - (at + 1) * 10,)).rowcount == 10
    assert [rows(session, "select count(*) from numbers") for session in sessions] == [[(ROWS - 40,)]] * 4
    copied = sessions[2].execute("insert into numbers select id + 100000, grp, name, amount from numbers").rowcount
    assert copied == ROWS - 40
    assert [rows(session, "select count(*) from numbers") for session in sessions] == [[(2 * (ROWS - 40),)]] * 4
    with sessions[1].cursor().copy("copy numbers to stdout") as copy:
        assert sum(1 for _ in copy.rows()) == 2 * (ROWS - 40)


def test_locked_rows_anywhere_keep_a_table_from_being_emptied(cluster, sessions, numbers):
    client = hazelcast.HazelcastClient(cluster_members=[cluster.members[0].address])
    try:
        keys = client.get_map("numbers").blocking().key_set()[:20]
        for key in keys:
            client.get_map("numbers").blocking().lock(key)
        for session in sessions:
            with pytest.raises(psycopg.errors.LockNotAvailable, match="20 rows"):
                session.execute("truncate numbers")
        for key in keys:
            client.get_map("numbers").blocking().unlock(key)
        sessions[3].execute("truncate numbers")
        assert rows(sessions[1], "select count(*) from numbers") == [(0,)]
    finally:
        client.shutdown()


def test_predicates_see_all_entries_wherever_they_are_asked(cluster):
    client = hazelcast.HazelcastClient(cluster_members=[each.address for each in cluster.members])
    try:
        plain = client.get_map("plain").blocking()
        plain.put_all({number: number for number in range(2_000)})
    finally:
        client.shutdown()
    for indexed in [False, True]:
        for member in cluster.members:
            alone = hazelcast.HazelcastClient(cluster_members=[member.address], smart_routing=False)
            try:
                plain = alone.get_map("plain").blocking()
                if indexed:
                    plain.add_index(["this"], name="by value")
                assert sorted(plain.values(between("this", 100, 149))) == list(range(100, 150))
                assert sorted(plain.key_set(sql("this in (1, 2, 5000)"))) == [1, 2]
                assert plain.aggregate(count()) == 2_000
                assert plain.aggregate(int_sum("this"), sql("this < 10")) == 45
                assert len(plain.project(hazelcast.projection.single_attribute("this"))) == 2_000
                page = paging(sql("__key >= 0"), 500)
                pages = []
                while found := plain.key_set(page):
                    pages.extend(found)
                    page.next_page()
                assert pages == list(range(2_000))
            finally:
                alone.shutdown()


def test_statements_go_on_when_leaders_die():
    with Cluster(4) as cluster:
        eventually(lambda: is_spread(cluster.members[0], 4))
        with psycopg.connect(dsn(cluster.members[0]), autocommit=True) as session:
            session.execute("create table kept (id int primary key, name text)")
            for first in range(1, 20_000, 2_000):
                session.execute("insert into kept select g, repeat(chr(120), 300) from generate_series(%s::int, %s::int) g", (first, first + 1_999))
        problems, counts, stop = [], [0, 0, 0], threading.Event()

        def read(at, member):
            queries = [("select count(*) from kept", (20_000,)), ("select sum(id), min(length(name)) from kept", (200_010_000, 300))]
            with psycopg.connect(dsn(member), autocommit=True) as session:
                while not stop.is_set():
                    for query, expected in queries:
                        try:
                            found = session.execute(query).fetchone()
                            if found != expected:
                                problems.append((query, found))
                            counts[at] += 1
                        except psycopg.Error as error:
                            problems.append((query, error.sqlstate, str(error)))

        readers = [threading.Thread(target=read, args=each) for each in enumerate(cluster.members[:3])]
        for each in readers:
            each.start()
        for _ in range(2):
            before = list(counts)
            eventually(lambda: all(now >= then + 3 for now, then in zip(counts, before)))
            dies = cluster.members[3]
            cluster.end(dies, in_order=False)
            before = list(counts)
            eventually(lambda: all(now >= then + 3 for now, then in zip(counts, before)))
            cluster.start(dies.join_address)
            eventually(lambda: is_spread(cluster.members[0], 4))
        stop.set()
        for each in readers:
            each.join()
        assert problems == []


def test_every_member_estimates_the_number_of_all_rows(sessions, numbers):
    for session in sessions:
        for estimate in (
            "select reltuples from pg_class where relname = 'numbers'",
            "select n_live_tup from pg_stat_user_tables where relname = 'numbers'",
            "select num_docs from sys.shards where table_name = 'numbers'",
        ):
            assert 0.8 * ROWS < rows(session, estimate)[0][0] < 1.2 * ROWS, estimate


class Counter(threading.Thread):
    """Adds one to its own entries by SQL of a Hazelcast client, until it is told to end."""

    def __init__(self, client, keys):
        super().__init__(daemon=True)
        self.count, self.problems, self._ends = 0, [], threading.Event()
        self._client, self._keys = client, keys
        self.start()

    def run(self):
        while not self._ends.is_set():
            for key in self._keys:
                try:
                    self._client.sql.execute("UPDATE counted SET this = this + 1 WHERE __key = ?", key).result()
                    self.count += 1
                except Exception as error:
                    self.problems.append(repr(error))

    def end(self):
        self._ends.set()
        self.join()


def test_clients_notice_neither_members_that_join_nor_members_that_leave():
    with Cluster(3) as cluster:
        stay = list(cluster.members)
        clients = [hazelcast.HazelcastClient(cluster_members=[member.address for member in stay]) for _ in range(2)]
        counted = clients[0].get_map("counted").blocking()
        counted.put_all({key: 0 for key in range(40)})
        clients[0].sql.execute("CREATE MAPPING counted TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')").result()
        counters = [Counter(clients[at % 2], range(at, 40, 4)) for at in range(4)]
        with psycopg.connect(dsn(stay[0])) as session:
            session.execute("create table kept (id int primary key, name text)")
            session.execute("insert into kept select g, repeat(chr(120), 300) from generate_series(1, 20000) g")
            session.commit()
            cursor = session.cursor("reading")
            cursor.itersize = 100
            cursor.execute("select id from kept")
            read = cursor.fetchmany(100)
            for joined in (1, 2):
                cluster.start(f"127.0.0.1:{free_ports(1)[0]}")
                # The first member keeps the replicas that its cursor reads.
                eventually(lambda: all(given_up(member) >= joined for member in stay[1:]))
                assert given_up(stay[0]) == 0
                before = [each.count for each in counters]
                eventually(lambda: all(each.count > then + 10 for each, then in zip(counters, before)))
                cluster.end(cluster.members[3], in_order=True)
            read += cursor.fetchall()
            assert sorted(row[0] for row in read) == list(range(1, 20_001))
        for each in counters:
            each.end()
        assert [each.problems for each in counters] == [[]] * 4
        assert sum(counted.values()) == sum(each.count for each in counters)
        for client in clients:
            client.shutdown()


def given_up(member):
    """How often a member has freed replicas that others have taken over."""
    return member.output().count("were given up here")


def test_a_lite_member_answers_statements(tmp_path):
    ports = free_ports(4)
    named = ", ".join(f"'127.0.0.1:{port}'" for port in ports[:3])
    file = pathlib.Path(tmp_path) / "hazelcast.yaml"
    file.write_text(LITE.format(members=named))
    join = ",".join(f"127.0.0.1:{port}" for port in ports[:3])

    def start(port):
        listen = ["--member-listen", f"127.0.0.1:{port}"]
        return Member(config=file, arguments=listen) if port == ports[3] else Member(arguments=["--join", join, *listen])

    members = together(start, ports)
    lite = members[3]
    try:
        eventually(lambda: len(status(lite)["members"]) == 4)
        with psycopg.connect(dsn(lite), autocommit=True) as session:
            session.execute("create table people (id int primary key, name text)")
            session.execute("insert into people select g, 'name ' || g from generate_series(1, 1000) g")
            assert session.execute("update people set name = 'changed' where id % 10 = 0").rowcount == 100
            assert rows(session, "select count(*), max(id) from people where name = 'changed'") == [(100, 1000)]
            assert rows(session, "select name from people where id = 5") == [("name 5",)]
        with psycopg.connect(dsn(members[0]), autocommit=True) as session:
            assert rows(session, "select count(*) from people where name = 'changed'") == [(100,)]
    finally:
        for member in members:
            member.stop()
