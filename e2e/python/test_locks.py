"""Locks on keys: reentrant by thread, contended between clients, leased, and released when their client goes."""

import threading

import pytest
from hazelcast.errors import IllegalMonitorStateError

from member import eventually


@pytest.fixture
def other(connect, name):
    return connect().get_map(name).blocking()


def in_thread(action):
    """Runs `action` in a thread of its own, which is another lock owner, and returns its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    thread.join()
    return results[0]


def test_a_lock_is_reentrant_for_its_thread(numbers):
    numbers.lock("k")
    numbers.lock("k")
    assert numbers.try_lock("k")
    for _ in range(3):
        assert numbers.is_locked("k")
        numbers.unlock("k")
    assert not numbers.is_locked("k")


def test_another_thread_of_the_same_client_is_another_owner(numbers):
    numbers.lock("k")
    assert not in_thread(lambda: numbers.try_lock("k"))
    numbers.unlock("k")
    assert in_thread(lambda: numbers.try_lock("k"))
    numbers.force_unlock("k")


def test_only_the_owner_unlocks(numbers, other):
    numbers.lock("k")
    with pytest.raises(IllegalMonitorStateError):
        other.unlock("k")
    numbers.unlock("k")
    with pytest.raises(IllegalMonitorStateError):
        numbers.unlock("k")


def test_a_lock_keeps_writers_out_and_lets_readers_in(numbers, other):
    numbers.set("k", 1)
    numbers.lock("k")
    assert other.get("k") == 1
    assert other.contains_key("k")
    assert not other.try_put("k", 2)
    assert not other.try_put("k", 2, 0.1)
    assert not other.try_remove("k", 0.1)
    assert not other.try_lock("k", timeout=0.1)
    numbers.put("k", 3)
    numbers.unlock("k")
    assert other.try_put("k", 2)
    assert numbers.get("k") == 2


def test_a_write_waits_until_the_key_is_free(client, numbers, other):
    numbers.lock("k")
    waiting = other._wrapped.put("k", 2)
    numbers.set("other key", 1)
    assert not waiting.done()
    numbers.set("k", 1)
    numbers.unlock("k")
    assert waiting.result() == 1
    assert numbers.get("k") == 2


def test_a_lock_waits_until_the_key_is_free(numbers, other):
    numbers.lock("k")
    waiting = other._wrapped.lock("k")
    assert not waiting.done()
    numbers.unlock("k")
    waiting.result()
    assert numbers.is_locked("k")
    assert not numbers.try_lock("k")
    other.unlock("k")


def test_try_lock_waits_for_its_time(numbers, other):
    numbers.lock("k")
    waiting = other._wrapped.try_lock("k", timeout=60)
    assert not waiting.done()
    numbers.unlock("k")
    assert waiting.result()
    other.unlock("k")


def test_a_leased_lock_ends_by_itself(numbers, other):
    numbers.lock("k", lease_time=1)
    assert numbers.is_locked("k")
    other.put("k", 1)
    assert numbers.get("k") == 1
    assert numbers.try_lock("k", lease_time=1, timeout=1)
    eventually(lambda: not other.is_locked("k"))


def test_force_unlock_frees_anyones_key(numbers, other):
    numbers.lock("k")
    numbers.lock("k")
    other.force_unlock("k")
    assert not numbers.is_locked("k")


def test_a_clients_locks_go_with_the_client(connect, numbers, name):
    leaving = connect()
    leaving.get_map(name).blocking().lock("k")
    assert numbers.is_locked("k")
    waiting = numbers._wrapped.put("k", "taken over")
    leaving.shutdown()
    waiting.result()
    eventually(lambda: not numbers.is_locked("k"))
    assert numbers.get("k") == "taken over"


def test_clear_and_evict_all_spare_locked_keys(numbers, other):
    numbers.put_all({i: i for i in range(50)})
    numbers.lock(7)
    other.evict_all()
    assert numbers.key_set() == [7]
    numbers.put_all({i: i for i in range(50)})
    other.clear()
    assert numbers.key_set() == [7]
    numbers.unlock(7)


def test_a_key_without_an_entry_can_be_locked(numbers):
    numbers.lock("nothing here")
    assert numbers.is_locked("nothing here")
    assert numbers.size() == 0
    numbers.unlock("nothing here")


def test_increments_under_a_lock_are_never_lost(connect, name):
    maps = [connect().get_map(name).blocking() for _ in range(3)]
    maps[0].set("counter", 0)

    def count(numbers):
        for _ in range(50):
            numbers.lock("counter")
            numbers.set("counter", numbers.get("counter") + 1)
            numbers.unlock("counter")

    threads = [threading.Thread(target=count, args=(numbers,)) for numbers in maps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert maps[0].get("counter") == 150
