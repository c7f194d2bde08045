"""Entry listeners with a predicate: they hear of what is, enters and leaves the result."""

from hazelcast.core import HazelcastJsonValue
from hazelcast.predicate import and_, equal, greater, like, sql

from formats import FORMATS, PEOPLE
from test_listeners import Recorder


def facts(events):
    return [(event.key, event.value, event.old_value) for event in events]


def test_only_what_the_predicate_selects_is_told(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 1)
    numbers.put("b", 11)
    numbers.put("c", 2)
    numbers.put("d", 12)
    numbers.remove("a")
    numbers.remove("b")
    events = recorder.wait("added", "added", "removed")
    assert facts(events) == [("b", 11, None), ("d", 12, None), ("b", None, 11)]


def test_an_update_within_the_result_is_an_update(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 11)
    numbers.put("a", 12)
    assert facts(recorder.wait("added", "updated")) == [("a", 11, None), ("a", 12, 11)]


def test_an_update_that_enters_the_result_is_an_addition(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 1)
    numbers.put("a", 11)
    (added,) = recorder.wait("added")
    assert (added.key, added.value) == ("a", 11)


def test_an_update_that_leaves_the_result_is_a_removal(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 11)
    numbers.put("a", 1)
    numbers.put("a", 2)
    numbers.put("b", 99)
    _, removed, _ = recorder.wait("added", "removed", "added")
    assert (removed.key, removed.old_value) == ("a", 11)


def test_a_predicate_with_a_key(numbers):
    recorder = Recorder(numbers, key="mine", include_value=True, predicate=greater("this", 10))
    numbers.put("other", 11)
    numbers.put("mine", 1)
    numbers.put("mine", 12)
    numbers.remove("mine")
    assert facts(recorder.wait("added", "removed")) == [("mine", 12, recorder.events[0][1].old_value), ("mine", None, 12)]


def test_values_stay_away_when_not_asked_for(numbers):
    recorder = Recorder(numbers, include_value=False, predicate=greater("this", 10))
    numbers.put("a", 1)
    numbers.put("b", 11)
    (added,) = recorder.wait("added")
    assert (added.key, added.value) == ("b", None)


def test_fields_of_every_format_are_looked_at(people_client, name):
    for kind, make in FORMATS.items():
        people = people_client.get_map(f"{name}-{kind}").blocking()
        recorder = Recorder(people, include_value=False, predicate=and_(equal("active", True), like("name", "A%")))
        for key, person in PEOPLE.items():
            people.put(key, make(person))
        people.put(3, make({**PEOPLE[3], "active": True}))
        people.put(1, make({**PEOPLE[1], "active": False}))
        people.remove(3)
        events = recorder.wait("added", "added", "removed", "removed")
        assert [event.key for event in events] == [1, 3, 1, 3]


def test_expiry_in_the_result_is_told(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 11, ttl=1)
    numbers.put("b", 1, ttl=1)
    _, expired = recorder.wait("added", "expired")
    assert expired.key == "a"


def test_clearing_is_told_to_all(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=greater("this", 10))
    numbers.put("a", 11)
    numbers.clear()
    _, cleared = recorder.wait("added", "clear_all")
    assert cleared.number_of_affected_entries == 1


def test_a_removed_listener_hears_nothing_more(numbers):
    recorder = Recorder(numbers, include_value=True, predicate=sql("a > 1"))
    numbers.put(1, HazelcastJsonValue('{"a": 2}'))
    recorder.wait("added")
    assert numbers.remove_entry_listener(recorder.registration)
    numbers.put(2, HazelcastJsonValue('{"a": 3}'))
    other = Recorder(numbers, include_value=True, predicate=sql("a > 1"))
    numbers.put(3, HazelcastJsonValue('{"a": 4}'))
    other.wait("added")
    recorder.wait("added")
