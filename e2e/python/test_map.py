"""Every map operation of the client that needs neither locks, nor listeners, nor the clock."""

import pytest
from hazelcast.config import IndexType
from hazelcast.core import HazelcastJsonValue
from hazelcast.predicate import equal, true

from member import MEMBERS, REAL_HAZELCAST, eventually


def test_put_returns_the_old_value_and_get_the_newest(numbers):
    assert numbers.put("a", 1) is None
    assert numbers.put("a", 2) == 1
    assert numbers.get("a") == 2
    assert numbers.get("b") is None


def test_set_replaces_without_returning(numbers):
    assert numbers.set("a", 1) is None
    numbers.set("a", 2)
    assert numbers.get("a") == 2


def test_put_if_absent_keeps_the_first_value(numbers):
    assert numbers.put_if_absent("a", 1) is None
    assert numbers.put_if_absent("a", 2) == 1
    assert numbers.get("a") == 1


def test_replace_needs_an_entry(numbers):
    assert numbers.replace("a", 1) is None
    assert not numbers.contains_key("a")
    numbers.set("a", 1)
    assert numbers.replace("a", 2) == 1
    assert numbers.get("a") == 2


def test_replace_if_same_compares_the_value(numbers):
    numbers.set("a", 1)
    assert not numbers.replace_if_same("a", 7, 2)
    assert numbers.replace_if_same("a", 1, 2)
    assert numbers.get("a") == 2


def test_remove_returns_the_old_value(numbers):
    numbers.set("a", 1)
    assert numbers.remove("a") == 1
    assert numbers.remove("a") is None
    assert numbers.size() == 0


def test_remove_if_same_compares_the_value(numbers):
    numbers.set("a", 1)
    assert not numbers.remove_if_same("a", 2)
    assert numbers.remove_if_same("a", 1)
    assert not numbers.contains_key("a")


def test_delete_removes_without_returning(numbers):
    numbers.set("a", 1)
    numbers.delete("a")
    assert not numbers.contains_key("a")
    numbers.delete("a")


def test_try_put_and_try_remove_work_on_a_free_key(numbers):
    assert numbers.try_put("a", 1, 1)
    assert numbers.get("a") == 1
    assert numbers.try_remove("a", 1)
    assert not numbers.try_remove("a", 1)


def test_put_transient_stores(numbers):
    numbers.put_transient("a", 1)
    assert numbers.get("a") == 1


def test_contains_key_and_contains_value_tell_what_is_there(numbers):
    numbers.set("a", 1)
    assert numbers.contains_key("a")
    assert not numbers.contains_key("b")
    assert numbers.contains_value(1)
    assert not numbers.contains_value(2)


def test_put_all_and_get_all_move_many_entries(numbers):
    entries = {i: i * i for i in range(2_000)}
    numbers.put_all(entries)
    assert numbers.size() == 2_000
    assert numbers.get_all(list(entries)) == entries
    assert numbers.get_all([1, -1]) == {1: 1}
    assert numbers.get_all([]) == {}
    numbers.put_all({})


def test_key_set_values_and_entry_set_return_everything(numbers):
    entries = {i: str(i) for i in range(500)}
    numbers.put_all(entries)
    assert sorted(numbers.key_set()) == list(range(500))
    assert sorted(numbers.values(), key=int) == [str(i) for i in range(500)]
    assert dict(numbers.entry_set()) == entries


def test_size_is_empty_and_clear_agree(numbers):
    assert numbers.is_empty()
    numbers.put_all({i: i for i in range(100)})
    assert not numbers.is_empty()
    assert numbers.size() == 100
    numbers.clear()
    assert numbers.is_empty()
    assert numbers.size() == 0


def test_evict_and_evict_all_remove(numbers):
    numbers.put_all({i: i for i in range(100)})
    assert numbers.evict(5)
    assert not numbers.evict(5)
    assert numbers.size() == 99
    numbers.evict_all()
    assert numbers.is_empty()


def test_remove_all_with_the_always_true_predicate_clears(numbers):
    numbers.put_all({i: i for i in range(100)})
    numbers.remove_all(true())
    assert numbers.is_empty()


def test_flush_does_nothing_without_a_map_store(numbers):
    numbers.set("a", 1)
    numbers.flush()
    assert numbers.get("a") == 1


@pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast refuses it where no map store is configured")
def test_load_all_does_nothing_without_a_map_store(numbers):
    numbers.set("a", 1)
    numbers.load_all()
    numbers.load_all(["a", "b"])
    assert numbers.get("a") == 1


def test_entry_view_counts_hits_and_versions(numbers):
    assert numbers.get_entry_view("a") is None
    numbers.put("a", 1)
    numbers.get("a")
    numbers.put("a", 2)
    numbers.get("a")
    view = numbers.get_entry_view("a")
    assert (view.key, view.value) == ("a", 2)
    assert view.hits >= 2
    assert view.version == 1
    assert view.cost > 0
    assert view.creation_time <= view.last_update_time
    assert view.last_access_time >= view.creation_time


def test_indexes_can_be_declared_again(numbers):
    for _ in range(2):
        numbers.add_index(attributes=["age"], index_type=IndexType.HASH, name="by age")
        numbers.add_index(attributes=["name", "age"])
    numbers.set("a", HazelcastJsonValue('{"name": "Ada", "age": 36}'))
    assert numbers.key_set(equal("age", 36)) == ["a"]


def test_many_calls_in_flight_are_answered_each_with_its_own(client, name):
    numbers = client.get_map(name)
    for future in [numbers.set(i, i) for i in range(2_000)]:
        future.result()
    answers = [numbers.get(i) for i in range(2_000)]
    assert [answer.result() for answer in answers] == list(range(2_000))


def test_two_clients_share_a_map(client, connect, name):
    client.get_map(name).blocking().set("from", "one")
    assert connect().get_map(name).blocking().get("from") == "one"


def test_a_client_without_smart_routing_reaches_every_key(connect, name):
    numbers = connect(smart_routing=False).get_map(name).blocking()
    numbers.put_all({i: i for i in range(300)})
    assert all(numbers.get(i) == i for i in range(300))


# In a cluster, a change has at most 8 MiB.
@pytest.mark.parametrize("size", [0, 1, 100_000, 20_000_000 if MEMBERS == 1 else 7_000_000])
def test_values_of_any_size_come_back_unchanged(client, name, size):
    blobs = client.get_map(name).blocking()
    value = bytearray(bytes(range(256)) * (size // 256 + 1))[:size]
    blobs.set("k", value)
    assert blobs.get("k") == value


def test_text_of_every_plane_comes_back_unchanged(numbers):
    text = "ascii, ümlaut, ελληνικά, 漢字, 🌰, \u0000"
    numbers.set(text, text)
    assert numbers.get(text) == text


def test_none_is_refused_before_it_is_sent(numbers):
    with pytest.raises(AssertionError):
        numbers.set(None, 1)


def test_a_bounded_map_stays_within_its_size(client):
    numbers = client.get_map("bounded-python").blocking()
    numbers.put_all({i: i for i in range(20_000)})
    eventually(lambda: numbers.size() <= 1_500)
    assert numbers.size() > 500
