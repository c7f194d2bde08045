"""Advisory locks of PostgreSQL's sessions, as migration tools take them, and functions that wait."""

import contextlib
import threading
import time

import psycopg
import pytest

from postgres_tools import dsn

# Each kind of lock: the function's name behind `pg_advisory` and `pg_try_advisory`, and whether it ends with a transaction.
KINDS = [("lock", False), ("lock_shared", False), ("xact_lock", True), ("xact_lock_shared", True)]


@pytest.fixture
def sessions(member):
    """Opens sessions of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(psycopg.connect(dsn(member), autocommit=True, **settings))


@pytest.fixture
def alone(sessions):
    """Two sessions at a member without a cluster."""
    one, two = sessions(), sessions()
    try:
        value(one, "SELECT pg_try_advisory_lock(0)")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("members of a cluster reject advisory locks")
    value(one, "SELECT pg_advisory_unlock(0)")
    return one, two


def value(connection, statement):
    return connection.execute(statement).fetchone()[0]


def is_free(connection, numbers, shared=""):
    """Whether another session may take the lock now."""
    taken = value(connection, f"SELECT pg_try_advisory_lock{shared}({numbers})")
    if taken:
        assert value(connection, f"SELECT pg_advisory_unlock{shared}({numbers})")
    return taken


@pytest.mark.parametrize("numbers", ["77", "-77", "7, 7"])
@pytest.mark.parametrize("kind, of_transaction", KINDS)
def test_every_kind_is_taken_counted_and_given_back(alone, kind, of_transaction, numbers):
    one, two = alone
    for function in [f"pg_advisory_{kind}", f"pg_try_advisory_{kind}"]:
        if of_transaction:
            one.execute("BEGIN")
        assert value(one, f"SELECT {function}({numbers})") in ("", True)
        assert value(one, f"SELECT {function}({numbers})") in ("", True)
        assert not is_free(two, numbers)
        assert is_free(two, numbers, "_shared") == ("shared" in kind)
        if of_transaction:
            one.execute("COMMIT")
        else:
            unlock = kind.replace("lock", "unlock")
            assert value(one, f"SELECT pg_advisory_{unlock}({numbers})")
            assert not is_free(two, numbers)
            assert value(one, f"SELECT pg_advisory_{unlock}({numbers})")
            assert not value(one, f"SELECT pg_advisory_{unlock}({numbers})")
        assert is_free(two, numbers)


def test_one_number_and_two_numbers_do_not_meet(alone):
    one, two = alone
    assert value(one, "SELECT pg_try_advisory_lock(1)")
    assert is_free(two, "0, 1") and is_free(two, "1, 0") and not is_free(two, "1")
    value(one, "SELECT pg_advisory_unlock_all()")
    assert is_free(two, "1")


def test_a_lock_of_a_transaction_ends_with_the_statement_outside_of_one(alone):
    one, two = alone
    one.execute("SELECT pg_advisory_xact_lock(2)")
    assert is_free(two, "2")
    with pytest.raises(psycopg.errors.DivisionByZero):
        one.execute("SELECT pg_advisory_xact_lock(2), 1 / (SELECT 0)")
    assert is_free(two, "2")
    with pytest.raises(psycopg.errors.DivisionByZero), one.transaction():
        one.execute("SELECT pg_advisory_xact_lock(2)")
        assert not is_free(two, "2")
        one.execute("SELECT 1 / 0")
    assert is_free(two, "2")


def test_locks_end_with_their_session(alone, sessions):
    one, two = alone
    third = sessions()
    third.execute("SELECT pg_advisory_lock(3), pg_advisory_lock(3)")
    assert not is_free(two, "3")
    third.close()
    deadline = time.monotonic() + 5
    while not is_free(two, "3"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    one.execute("SELECT pg_advisory_lock(3)")
    one.execute("DISCARD ALL")
    assert is_free(two, "3")


def test_a_waiter_gets_the_lock_when_it_is_given_back(alone):
    one, two = alone
    one.execute("SELECT pg_advisory_lock(4)")
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(value(two, "SELECT pg_advisory_lock(4)")))
    waiter.start()
    time.sleep(0.2)
    assert taken == []
    one.execute("SELECT pg_advisory_unlock(4)")
    waiter.join(5)
    assert taken == [""]
    assert not is_free(one, "4")
    two.execute("SELECT pg_advisory_unlock(4)")


def test_a_wait_ends_by_timeouts_and_cancel_requests(alone):
    one, two = alone
    one.execute("SELECT pg_advisory_lock(5)")
    two.execute("SET lock_timeout = '50ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        two.execute("SELECT pg_advisory_lock(5)")
    two.execute("SET lock_timeout = 0")
    two.execute("SET statement_timeout = '50ms'")
    for wait in ["pg_advisory_lock(5)", "pg_sleep(60)"]:
        with pytest.raises(psycopg.errors.QueryCanceled):
            two.execute(f"SELECT {wait}")
    two.execute("SET statement_timeout = 0")
    for wait in ["pg_advisory_xact_lock(5)", "pg_sleep(60)"]:
        cancel = threading.Timer(0.1, two.cancel)
        cancel.start()
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            two.execute(f"SELECT {wait}")
        assert time.monotonic() - began < 10
        cancel.join()
    # Nobody who has given up gets the lock.
    one.execute("SELECT pg_advisory_unlock(5)")
    assert is_free(one, "5") and is_free(two, "5")


def test_sessions_that_wait_for_each_other_are_told(alone):
    one, two = alone
    one.execute("SELECT pg_advisory_lock(6)")
    two.execute("SELECT pg_advisory_lock(7)")
    waiter = threading.Thread(target=lambda: two.execute("SELECT pg_advisory_lock(6)"))
    waiter.start()
    time.sleep(0.2)
    with pytest.raises(psycopg.errors.DeadlockDetected):
        one.execute("SELECT pg_advisory_lock(7)")
    one.execute("SELECT pg_advisory_unlock(6)")
    waiter.join(5)
    assert not waiter.is_alive()
    two.execute("SELECT pg_advisory_unlock_all()")


def test_waits_hold_no_thread(alone, sessions):
    one, two = alone
    one.execute("SELECT pg_advisory_lock(8)")
    others = [sessions() for _ in range(20)]
    waiters = [threading.Thread(target=other.execute, args=("SELECT pg_advisory_lock_shared(8)",)) for other in others]
    for waiter in waiters:
        waiter.start()
    time.sleep(0.2)
    began = time.monotonic()
    assert value(two, "SELECT sum(x) FROM generate_series(1, 10) AS g(x)") == 55
    assert time.monotonic() - began < 2
    one.execute("SELECT pg_advisory_unlock(8)")
    for waiter in waiters:
        waiter.join(5)
        assert not waiter.is_alive()


def test_null_locks_nothing_and_an_unlock_in_vain_warns(alone):
    one, two = alone
    notices = []
    one.add_notice_handler(lambda notice: notices.append((notice.severity, notice.message_primary)))
    assert value(one, "SELECT pg_advisory_lock(NULL)") is None
    assert value(one, "SELECT pg_try_advisory_lock(NULL)") is None
    assert not value(one, "SELECT pg_advisory_unlock(9)")
    assert notices == [("WARNING", "you don't own a lock of type ExclusiveLock")]
