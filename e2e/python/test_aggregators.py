"""Aggregators: every one of the client, with and without an attribute and a predicate."""

import decimal

import pytest
from hazelcast.aggregator import (
    count,
    distinct,
    double_avg,
    double_sum,
    fixed_point_sum,
    floating_point_sum,
    int_avg,
    int_sum,
    long_avg,
    long_sum,
    max_,
    max_by,
    min_,
    min_by,
    number_avg,
)
from hazelcast.config import IntType
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastError
from hazelcast.predicate import equal, false, greater, less, true

from formats import PEOPLE, as_dict

LONDON = equal("address.city", "London")

# Of any format: JSON has no integers of 32 bits, so what needs these is below.
AGGREGATED = {
    "count": (count(), None, 5),
    "count of an attribute": (count("name"), None, 5),
    "count of an attribute with nulls": (count("nickname"), None, 5),
    "count where": (count(), LONDON, 2),
    "count of nobody": (count(), false(), 0),
    "count of everybody": (count(), true(), 5),
    "count of items": (count("scores[any]"), None, 8),
    "distinct": (distinct("address.city"), None, {"London", "Paris", "Oslo"}),
    "distinct numbers": (distinct("age"), LONDON, {36, 41}),
    "distinct with null": (distinct("nickname"), None, {None, "Amazing", "Prof", "50%"}),
    "distinct booleans": (distinct("active"), None, {True, False}),
    "distinct of nobody": (distinct("name"), false(), set()),
    "distinct of any item": (distinct("tags[any]"), LONDON, {"red", "blue", "green"}),
    "double average": (double_avg("height"), LONDON, (1.65 + 1.78) / 2),
    "double sum": (double_sum("height"), LONDON, 1.65 + 1.78),
    "double sum of nobody": (double_sum("height"), false(), 0.0),
    "fixed point sum": (fixed_point_sum("age"), None, 229),
    "fixed point sum where": (fixed_point_sum("age"), greater("age", 45), 132),
    "fixed point sum of longs": (fixed_point_sum("balance"), None, 2**40 + 107),
    "fixed point sum cuts": (fixed_point_sum("height"), None, 5),
    "floating point sum": (floating_point_sum("age"), LONDON, 77.0),
    "floating point sum of doubles": (floating_point_sum("height"), LONDON, 1.65 + 1.78),
    "number average": (number_avg("age"), None, 45.8),
    "number average of doubles": (number_avg("height"), LONDON, (1.65 + 1.78) / 2),
    "long sum": (long_sum("balance"), None, 2**40 + 107),
    "long average": (long_avg("balance"), None, (2**40 + 107) / 5),
    "max": (max_("age"), None, 85),
    "max long": (max_("balance"), None, 2**40),
    "max double": (max_("height"), None, 1.9),
    "max text": (max_("name"), None, "Édith"),
    "max nested": (max_("address.number"), None, 3),
    "max with nulls": (max_("nickname"), None, "Prof"),
    "max of nobody": (max_("age"), false(), None),
    "max of any item": (max_("scores[any]"), None, 9),
    "max of keys": (max_("__key"), None, 5),
    "min": (min_("age"), None, 20),
    "min double": (min_("height"), None, 1.42),
    "min text": (min_("name"), None, "Ada"),
    "min with nulls": (min_("nickname"), None, "50%"),
    "min where": (min_("age"), greater("age", 41), 47),
    "min of nobody": (min_("age"), false(), None),
}


@pytest.mark.parametrize("case", AGGREGATED)
def test_an_aggregator_tells(people, case):
    aggregator, predicate, expected = AGGREGATED[case]
    actual = people.aggregate(aggregator, predicate)
    assert actual == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert isinstance(actual, type(expected))


@pytest.mark.parametrize("people", ["portable", "compact"], indirect=True)
def test_an_int_aggregator_tells(people):
    assert people.aggregate(int_sum("age")) == 229
    assert people.aggregate(int_sum("age"), LONDON) == 77
    assert people.aggregate(int_sum("age"), false()) == 0
    assert people.aggregate(int_avg("age")) == pytest.approx(45.8)
    assert people.aggregate(int_avg("address.number"), less("age", 45)) == pytest.approx(5 / 3)


def test_the_average_of_nothing_is_none(people):
    for average in (int_avg("age"), long_avg("balance"), double_avg("height"), number_avg("age")):
        assert people.aggregate(average, false()) is None


def test_the_entry_with_the_most_and_least(people):
    oldest = people.aggregate(max_by("age"))
    assert (oldest.key, as_dict(oldest.value)) == (2, PEOPLE[2])
    youngest = people.aggregate(min_by("age"), greater("age", 36))
    assert (youngest.key, as_dict(youngest.value)) == (3, PEOPLE[3])
    assert people.aggregate(max_by("age"), false()) is None


INTS = [3, -7, 10, 2**31 - 1]


def test_plain_ints(numbers):
    numbers.put_all(dict(enumerate(INTS)))
    assert numbers.aggregate(count()) == 4
    assert numbers.aggregate(int_sum("this")) == sum(INTS)
    assert numbers.aggregate(int_sum()) == sum(INTS)
    assert numbers.aggregate(int_avg("this")) == pytest.approx(sum(INTS) / 4)
    assert numbers.aggregate(max_("this")) == 2**31 - 1
    assert numbers.aggregate(min_()) == -7
    assert numbers.aggregate(distinct("this")) == set(INTS)
    assert numbers.aggregate(max_by("this")).key == 3
    assert numbers.aggregate(number_avg("this"), less("this", 10)) == -2.0
    assert numbers.aggregate(fixed_point_sum("this"), greater("this", 3)) == 2**31 + 9


def test_plain_longs(connect, name):
    numbers = connect(default_int_type=IntType.LONG).get_map(name).blocking()
    numbers.put_all({i: 2**i for i in range(50)})
    assert numbers.aggregate(long_sum("this")) == 2**50 - 1
    assert numbers.aggregate(long_avg("this")) == pytest.approx((2**50 - 1) / 50)
    assert numbers.aggregate(max_("this")) == 2**49
    assert numbers.aggregate(long_sum("__key")) == 1225


def test_plain_doubles(numbers):
    numbers.put_all({i: i / 4 for i in range(-8, 9)})
    assert numbers.aggregate(double_sum("this")) == 0.0
    assert numbers.aggregate(double_avg("this"), greater("this", 0)) == 1.125
    assert numbers.aggregate(floating_point_sum("this")) == 0.0
    assert numbers.aggregate(max_("this")) == 2.0
    assert numbers.aggregate(min_("this")) == -2.0


def test_decimals(numbers):
    numbers.put_all({1: decimal.Decimal("1.5"), 2: decimal.Decimal("-2.25"), 3: decimal.Decimal("1e20")})
    assert numbers.aggregate(max_("this")) == decimal.Decimal("1e20")
    assert numbers.aggregate(min_("this")) == decimal.Decimal("-2.25")
    assert numbers.aggregate(number_avg("this"), less("this", decimal.Decimal(10))) == -0.375


def test_an_empty_map(numbers):
    assert numbers.aggregate(count()) == 0
    assert numbers.aggregate(int_sum("this")) == 0
    assert numbers.aggregate(double_avg("this")) is None
    assert numbers.aggregate(max_("this")) is None
    assert numbers.aggregate(distinct("this")) == set()


def test_keys_are_aggregated(numbers):
    numbers.put_all({HazelcastJsonValue({"a": i}): "" for i in range(10)})
    assert numbers.aggregate(max_("__key.a")) == 9
    assert numbers.aggregate(fixed_point_sum("__key.a")) == 45


def test_what_is_no_number_is_an_error(numbers):
    numbers.put(1, "text")
    for aggregator in (int_sum("this"), long_avg("this"), double_sum("this"), number_avg("this")):
        with pytest.raises(HazelcastError):
            numbers.aggregate(aggregator)
    assert numbers.aggregate(count()) == 1


def test_many_entries(numbers):
    numbers.put_all({i: i for i in range(20_000)})
    assert numbers.aggregate(count()) == 20_000
    assert numbers.aggregate(fixed_point_sum("this")) == sum(range(20_000))
    assert len(numbers.aggregate(distinct("this"), less("this", 5000))) == 5000
