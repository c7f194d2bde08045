"""PostgreSQL's own benchmark, unmodified: its tables, and its scripts that change and look up accounts."""

import re
import subprocess

import pytest

from postgres_tools import psql, rows

TRANSACTIONS = 200


@pytest.fixture(scope="module")
def accounts(member):
    pgbench(member, "-i", "-s", "1")
    assert rows(member, "select count(*), sum(abalance) from pgbench_accounts") == ["100000|0"]
    yield
    psql(member, "drop table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers")


def pgbench(member, *arguments):
    """What pgbench prints."""
    words = ["pgbench", "-h", "127.0.0.1", "-p", str(member.postgres_port), "-U", "ann", *arguments, "filbert"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def transactions(member, *arguments):
    """Runs a script with four clients; every transaction has to succeed."""
    out = pgbench(member, "-n", "-c", "4", "-t", str(TRANSACTIONS // 4), *arguments)
    assert re.search(rf"actually processed: {TRANSACTIONS}/{TRANSACTIONS}", out), out
    assert "number of failed transactions: 0" in out


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_accounts_are_updated(member, accounts, protocol):
    psql(member, "truncate pgbench_history")
    before = rows(member, "select sum(abalance) from pgbench_accounts")
    transactions(member, "--builtin", "simple-update", "-M", protocol)
    (history,) = rows(member, "select count(*), sum(delta) from pgbench_history")
    count, changed = (int(part) for part in history.split("|"))
    after = rows(member, "select sum(abalance) from pgbench_accounts")
    assert count == TRANSACTIONS
    assert int(after[0]) - int(before[0]) == changed


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_accounts_are_looked_up(member, accounts, protocol):
    transactions(member, "--builtin", "select-only", "-M", protocol)
