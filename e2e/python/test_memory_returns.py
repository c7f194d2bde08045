"""The memory of a statement returns to the operating system after its end."""

import psycopg

from member import Member, eventually
from postgres_tools import dsn

# Correlated subqueries: planned on one thread, computed on all, dropped by another one.
SUBQUERIES = 60
# What may remain, in MiB: the allocator keeps some pages for each thread.
KEPT_MAX = 40


def resident(member):
    with open(f"/proc/{member.process_id}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS"))


def test_a_large_statement_leaves_little_behind():
    with Member() as member, psycopg.connect(dsn(member), autocommit=True) as connection:
        connection.execute("CREATE TABLE crowd (id int PRIMARY KEY, a int)")
        connection.execute("INSERT INTO crowd SELECT i, i % 100 FROM generate_series(1, 200000) i")
        items = [f"(SELECT max(x.a) FROM crowd x WHERE x.id = c.id + {i})" for i in range(SUBQUERIES)]
        text = f"SELECT {', '.join(items)} FROM crowd c ORDER BY id LIMIT 1"
        before = resident(member)
        assert connection.execute(text).fetchone()[:2] == (1, 2)
        # Nothing is asked of the member meanwhile.
        eventually(lambda: resident(member) < before + KEPT_MAX)
