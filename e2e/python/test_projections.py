"""Projections: attributes of entries, alone or several, with and without a predicate."""

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastError
from hazelcast.predicate import equal, false, greater
from hazelcast.projection import identity, multi_attribute, single_attribute

from formats import PEOPLE, as_dict
from member import REAL_HAZELCAST

SINGLE = {
    "text": ("name", ["Ada", "Grace", "Alan", "Édith", "ada_x"]),
    "int": ("age", [36, 85, 41, 47, 20]),
    "long": ("balance", [2**40, -5, 0, 12, 100]),
    "double": ("height", [1.65, 1.5, 1.78, 1.42, 1.9]),
    "boolean": ("active", [True, True, False, False, True]),
    "with nulls": ("nickname", [None, "Amazing", "Prof", None, "50%"]),
    "nested": ("address.city", ["London", "Paris", "London", "Paris", "Oslo"]),
    "item": ("tags[0]", ["red", "blue", "green", None, "yellow"]),
    "key": ("__key", [1, 2, 3, 4, 5]),
}


def in_any_order(values):
    return sorted(values, key=repr)


@pytest.mark.parametrize("case", SINGLE)
def test_one_attribute(people, case):
    path, expected = SINGLE[case]
    assert in_any_order(people.project(single_attribute(path))) == in_any_order(expected)


@pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast cannot serialize what it finds")
def test_a_field_of_an_item(people):
    expected = ["Paris", None, "Oslo", None, None]
    assert in_any_order(people.project(single_attribute("homes[1].city"))) == in_any_order(expected)


def no_json(people):
    if REAL_HAZELCAST and people.name.endswith("json"):
        pytest.skip("Hazelcast answers with a class of its own that clients cannot read")


def test_the_value_itself(people):
    no_json(people)
    projected = people.project(single_attribute("this"), equal("name", "Ada"))
    assert [as_dict(value) for value in projected] == [PEOPLE[1]]


def test_an_object_within(people):
    no_json(people)
    projected = people.project(single_attribute("address"), equal("name", "Grace"))
    assert [as_dict(value) for value in projected] == [PEOPLE[2]["address"]]


def test_several_attributes(people):
    projected = people.project(multi_attribute("name", "address.number", "nickname"), greater("age", 40))
    expected = [["Grace", 2, "Amazing"], ["Alan", 1, "Prof"], ["Édith", 2, None]]
    assert in_any_order(projected) == in_any_order(expected)


def test_whole_entries(people):
    projected = people.project(identity(), equal("active", False))
    assert {entry.key: as_dict(entry.value) for entry in projected} == {3: PEOPLE[3], 4: PEOPLE[4]}
    assert len(people.project(identity())) == 5


def test_nobody(people):
    assert people.project(single_attribute("name"), false()) == []
    assert people.project(multi_attribute("name", "age"), equal("name", "Nobody")) == []


def test_plain_values(numbers):
    numbers.put_all({i: i * i for i in range(10)})
    assert sorted(numbers.project(single_attribute("this"))) == [i * i for i in range(10)]
    assert sorted(numbers.project(multi_attribute("__key", "this"), greater("this", 50))) == [[8, 64], [9, 81]]


def test_an_attribute_that_json_does_not_have_is_none(numbers):
    numbers.put_all({1: HazelcastJsonValue('{"a": 1}'), 2: HazelcastJsonValue('{"b": 2}')})
    assert in_any_order(numbers.project(single_attribute("a"))) == [1, None]
    assert in_any_order(numbers.project(multi_attribute("a", "b"))) == [[1, None], [None, 2]]


def test_any_item_is_refused(people):
    with pytest.raises((HazelcastError, ValueError, AssertionError)):
        people.project(single_attribute("tags[any]"))
    assert people.size() == 5


def test_many_entries(numbers):
    numbers.put_all({i: str(i) for i in range(20_000)})
    assert sorted(map(int, numbers.project(single_attribute("this")))) == list(range(20_000))
