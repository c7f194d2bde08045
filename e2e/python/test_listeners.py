"""Entry listeners: which events come, in which order, with what in them."""

import pytest
from hazelcast.proxy.base import EntryEventType

from member import eventually

KINDS = ("added", "updated", "removed", "evicted", "expired", "clear_all", "evict_all")


class Recorder:
    """Registers for every kind of event and keeps what arrives, in order."""

    def __init__(self, numbers, **settings):
        self.events = []
        callbacks = {f"{kind}_func": self._record(kind) for kind in KINDS}
        self.registration = numbers.add_entry_listener(**callbacks, **settings)

    def _record(self, kind):
        return lambda event: self.events.append((kind, event))

    def kinds(self):
        return [kind for kind, _ in self.events]

    def wait(self, *kinds):
        eventually(lambda: len(self.events) >= len(kinds))
        assert self.kinds() == list(kinds)
        return [event for _, event in self.events]


def test_changes_arrive_in_order_with_values(numbers):
    recorder = Recorder(numbers, include_value=True)
    numbers.put("a", 1)
    numbers.put("a", 2)
    numbers.remove("a")
    added, updated, removed = recorder.wait("added", "updated", "removed")
    assert (added.key, added.value, added.old_value) == ("a", 1, None)
    assert (updated.key, updated.value, updated.old_value) == ("a", 2, 1)
    assert (removed.key, removed.old_value) == ("a", 1 + 1)
    assert added.event_type == EntryEventType.ADDED
    assert added.number_of_affected_entries == 1
    assert added.uuid is not None


def test_values_stay_away_when_not_asked_for(numbers):
    recorder = Recorder(numbers, include_value=False)
    numbers.put("a", 1)
    numbers.put("a", 2)
    added, updated = recorder.wait("added", "updated")
    assert (added.key, added.value) == ("a", None)
    assert (updated.value, updated.old_value) == (None, None)


def test_a_listener_of_one_key_hears_of_that_key_alone(numbers):
    recorder = Recorder(numbers, key="mine", include_value=True)
    numbers.put("other", 1)
    numbers.put("mine", 2)
    numbers.remove("other")
    numbers.remove("mine")
    added, removed = recorder.wait("added", "removed")
    assert (added.key, removed.key) == ("mine", "mine")


def test_clear_and_evict_all_are_one_event_with_a_count(numbers):
    recorder = Recorder(numbers)
    numbers.put_all({i: i for i in range(10)})
    eventually(lambda: len(recorder.events) == 10)
    numbers.clear()
    eventually(lambda: recorder.kinds()[10:] == ["clear_all"])
    assert recorder.events[10][1].number_of_affected_entries == 10
    numbers.put_all({i: i for i in range(5)})
    eventually(lambda: len(recorder.events) == 16)
    numbers.evict_all()
    eventually(lambda: recorder.kinds()[16:] == ["evict_all"])
    assert recorder.events[16][1].number_of_affected_entries == 5


def test_evict_is_told_as_evicted(numbers):
    recorder = Recorder(numbers)
    numbers.set("a", 1)
    numbers.evict("a")
    recorder.wait("added", "evicted")


def test_expiry_is_told_without_anyone_reading(numbers):
    recorder = Recorder(numbers, include_value=True)
    numbers.put("a", 1, ttl=1)
    eventually(lambda: "expired" in recorder.kinds())
    expired = [event for kind, event in recorder.events if kind == "expired"]
    assert expired[0].key == "a"


def test_only_the_kinds_asked_for_arrive(numbers):
    removed = []
    numbers.add_entry_listener(removed_func=lambda event: removed.append(event.key))
    numbers.set("a", 1)
    numbers.set("a", 2)
    numbers.remove("a")
    numbers.set("b", 1)
    numbers.remove("b")
    # Events of different keys come in any order.
    eventually(lambda: sorted(removed) == ["a", "b"])


def test_a_removed_listener_hears_nothing(numbers):
    silent = Recorder(numbers)
    loud = Recorder(numbers)
    assert numbers.remove_entry_listener(silent.registration)
    numbers.set("a", 1)
    loud.wait("added")
    assert silent.events == []


def test_changes_of_other_clients_arrive(connect, numbers, name):
    recorder = Recorder(numbers, include_value=True)
    other = connect().get_map(name).blocking()
    for i in range(100):
        other.set(i, i)
    eventually(lambda: len(recorder.events) == 100)
    assert sorted(event.value for _, event in recorder.events) == list(range(100))


def test_put_if_absent_replace_and_try_put_are_told(numbers):
    recorder = Recorder(numbers, include_value=True)
    numbers.put_if_absent("a", 1)
    numbers.put_if_absent("a", 2)
    numbers.replace("a", 3)
    numbers.replace_if_same("a", 3, 4)
    numbers.replace_if_same("a", 3, 5)
    numbers.try_remove("a")
    numbers.delete("a")
    numbers.try_put("a", 6)
    events = recorder.wait("added", "updated", "updated", "removed", "added")
    assert [event.value for event in events[:3]] == [1, 3, 4]
    assert events[4].value == 6
