"""Indexes: answers are the same with and without them, whenever they were made, and follow every change."""

import random

import pytest
from hazelcast.aggregator import count, max_, min_
from hazelcast.config import IndexType, UniqueKeyTransformation
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastError
from hazelcast.predicate import (
    and_,
    between,
    equal,
    greater,
    greater_or_equal,
    in_,
    less,
    less_or_equal,
    like,
    not_equal,
    or_,
    paging,
    sql,
)

from formats import FORMATS, PEOPLE
from member import eventually

INDEXES = {
    "none": [],
    "hash": [dict(attributes=["name"], index_type=IndexType.HASH), dict(attributes=["age"], index_type=IndexType.HASH)],
    "sorted": [
        dict(attributes=["name"], index_type=IndexType.SORTED),
        dict(attributes=["age"], index_type=IndexType.SORTED),
        dict(attributes=["height"], index_type=IndexType.SORTED),
    ],
    "bitmap": [
        dict(attributes=["name"], index_type=IndexType.BITMAP, bitmap_index_options={"unique_key": "__key"}),
        dict(attributes=["active"], index_type=IndexType.BITMAP),
    ],
    "composite": [
        dict(attributes=["name", "age"], index_type=IndexType.SORTED),
        dict(attributes=["active", "age"], index_type=IndexType.HASH),
        dict(attributes=["age", "height"], index_type=IndexType.SORTED),
    ],
    "nested": [
        dict(attributes=["address.city"], index_type=IndexType.HASH),
        dict(attributes=["address.number"], index_type=IndexType.SORTED),
    ],
    "items": [
        dict(attributes=["tags[any]"], index_type=IndexType.HASH),
        dict(attributes=["scores[any]"], index_type=IndexType.SORTED),
    ],
    "key": [dict(attributes=["__key"], index_type=IndexType.SORTED)],
    "nullable": [
        dict(attributes=["nickname"], index_type=IndexType.SORTED),
        dict(attributes=["nickname"], index_type=IndexType.HASH),
    ],
}

SELECTED = {
    "equal": (equal("name", "Ada"), [1]),
    "equal number": (equal("age", 41), [3]),
    "not equal": (not_equal("name", "Ada"), [2, 3, 4, 5]),
    "in": (in_("name", "Ada", "Alan", "Nobody"), [1, 3]),
    "range": (greater("age", 41), [2, 4]),
    "closed range": (greater_or_equal("age", 41), [2, 3, 4]),
    "below": (less("age", 41), [1, 5]),
    "closed below": (less_or_equal("age", 41), [1, 3, 5]),
    "between": (between("age", 36, 47), [1, 3, 4]),
    "prefix": (like("name", "A%"), [1, 3]),
    "both of a composite": (and_(equal("name", "Ada"), equal("age", 36)), [1]),
    "a prefix of a composite and a range": (and_(equal("name", "Ada"), greater("age", 30)), [1]),
    "a boolean and a number": (and_(equal("active", True), equal("age", 85)), [2]),
    "either": (or_(equal("name", "Ada"), equal("age", 41)), [1, 3]),
    "equal boolean": (equal("active", True), [1, 2, 5]),
    "nested": (equal("address.city", "London"), [1, 3]),
    "nested range": (greater("address.number", 1), [2, 4, 5]),
    "any item": (equal("tags[any]", "blue"), [1, 2]),
    "any number above": (greater("scores[any]", 4), [3, 5]),
    "key": (equal("__key", 3), [3]),
    "key range": (between("__key", 2, 4), [2, 3, 4]),
    "null": (equal("nickname", None), [1, 4]),
    "not null": (not_equal("nickname", None), [2, 3, 5]),
    "range beside nulls": (greater("nickname", "A"), [2, 3]),
    "words": (sql("age > 30 and name like 'A%'"), [1, 3]),
    "double range": (between("height", 1.5, 1.65), [1, 2]),
}


@pytest.fixture(scope="module", params=INDEXES)
def index(request):
    return request.param


@pytest.fixture(scope="module", params=FORMATS)
def indexed(request, people_client, index):
    """A map in one format with one kind of indexes, made when half of the entries were there."""
    people = people_client.get_map(f"indexed-{request.param}-{index}").blocking()
    entries = {key: FORMATS[request.param](person) for key, person in PEOPLE.items()}
    people.put_all({key: entries[key] for key in (1, 2)})
    people.put(3, entries[1])
    people.put(9, entries[2])
    for definition in INDEXES[index]:
        people.add_index(**definition)
    people.put_all(entries)
    people.remove(9)
    return people


@pytest.mark.parametrize("case", SELECTED)
def test_an_index_changes_no_answer(indexed, case):
    predicate, expected = SELECTED[case]
    assert sorted(indexed.key_set(predicate)) == expected
    assert indexed.aggregate(count(), predicate) == len(expected)


def test_minimum_and_maximum_with_an_index(indexed):
    assert (indexed.aggregate(min_("age")), indexed.aggregate(max_("age"))) == (20, 85)
    assert (indexed.aggregate(min_("name")), indexed.aggregate(max_("name"))) == ("Ada", "Édith")


@pytest.mark.parametrize("index_type", [IndexType.HASH, IndexType.SORTED, IndexType.BITMAP])
def test_an_index_follows_random_changes(client, name, index_type):
    numbers = client.get_map(name).blocking()
    numbers.add_index(["a"], index_type)
    random.seed(4711)
    model = {}
    for _ in range(20):
        batch = {random.randrange(200): random.randrange(10) for _ in range(50)}
        numbers.put_all({key: HazelcastJsonValue({"a": value}) for key, value in batch.items()})
        model.update(batch)
        for key in random.sample(sorted(model), 10):
            numbers.remove(key)
            del model[key]
        for value in (0, 5, 9):
            assert sorted(numbers.key_set(equal("a", value))) == sorted(k for k, v in model.items() if v == value)
        assert sorted(numbers.key_set(in_("a", 1, 2))) == sorted(k for k, v in model.items() if v in (1, 2))
        if index_type == IndexType.SORTED:
            assert sorted(numbers.key_set(greater("a", 6))) == sorted(k for k, v in model.items() if v > 6)
    numbers.clear()
    assert numbers.key_set(equal("a", 5)) == []


def test_an_index_over_many_entries(numbers):
    numbers.put_all({i: i % 1000 for i in range(20_000)})
    numbers.add_index(["this"], IndexType.SORTED)
    assert sorted(numbers.key_set(equal("this", 7))) == list(range(7, 20_000, 1000))
    assert len(numbers.key_set(greater_or_equal("this", 990))) == 200
    page = paging(between("this", 1, 2), 15)
    assert len(numbers.key_set(page)) == 15


def test_an_index_made_twice_is_one(numbers):
    for _ in range(2):
        numbers.add_index(["a"], IndexType.HASH, name="same")
    numbers.put(1, HazelcastJsonValue({"a": 1}))
    assert numbers.key_set(equal("a", 1)) == [1]


def test_a_bitmap_index_with_options(numbers):
    numbers.add_index(
        ["kind"],
        IndexType.BITMAP,
        bitmap_index_options={
            "unique_key": "__key",
            "unique_key_transformation": UniqueKeyTransformation.LONG,
        },
    )
    numbers.put_all({i: HazelcastJsonValue({"kind": i % 3}) for i in range(30)})
    assert sorted(numbers.key_set(equal("kind", 1))) == list(range(1, 30, 3))
    assert sorted(numbers.key_set(and_(not_equal("kind", 1), not_equal("kind", 2)))) == list(range(0, 30, 3))


@pytest.mark.parametrize("attributes", [["a", "b"]])
def test_a_bitmap_index_has_one_attribute(numbers, attributes):
    with pytest.raises((HazelcastError, ValueError, AssertionError)):
        numbers.add_index(attributes, IndexType.BITMAP)


def test_entries_without_the_attribute_are_found_as_null(numbers):
    numbers.add_index(["a"], IndexType.HASH)
    numbers.put_all({1: HazelcastJsonValue('{"a": 1}'), 2: HazelcastJsonValue('{"b": 1}')})
    assert numbers.key_set(equal("a", None)) == [2]
    assert numbers.key_set(equal("a", 1)) == [1]


def test_numbers_of_mixed_types_are_one_key(numbers):
    numbers.add_index(["a"], IndexType.SORTED)
    numbers.put_all({1: HazelcastJsonValue('{"a": 1}'), 2: HazelcastJsonValue('{"a": 1.0}')})
    assert sorted(numbers.key_set(equal("a", 1))) == [1, 2]
    assert sorted(numbers.key_set(less("a", 1.5))) == [1, 2]


def test_expired_entries_leave_the_index(numbers):
    numbers.add_index(["this"], IndexType.HASH)
    numbers.put("a", 1, ttl=1)
    numbers.put("b", 1)
    eventually(lambda: numbers.key_set(equal("this", 1)) == ["b"])
