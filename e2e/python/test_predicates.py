"""Predicates: which entries each one selects, over every format whose fields a member can read."""

import datetime
import decimal
import uuid

import pytest
from hazelcast.config import IntType
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastError
from hazelcast.predicate import (
    and_,
    between,
    equal,
    false,
    greater,
    greater_or_equal,
    ilike,
    in_,
    instance_of,
    less,
    less_or_equal,
    like,
    not_,
    not_equal,
    or_,
    regex,
    sql,
    true,
)

from formats import PEOPLE, as_dict

SELECTED = {
    "equal text": (equal("name", "Ada"), [1]),
    "equal int": (equal("age", 41), [3]),
    "equal long": (equal("balance", 100), [5]),
    "equal double": (equal("height", 1.5), [2]),
    "equal boolean": (equal("active", False), [3, 4]),
    "equal nothing that is there": (equal("name", "Nobody"), []),
    "equal null": (equal("nickname", None), [1, 4]),
    "equal nested": (equal("address.city", "London"), [1, 3]),
    "equal key": (equal("__key", 4), [4]),
    "equal item by position": (equal("tags[0]", "blue"), [2]),
    "equal item by a position that few have": (equal("tags[1]", "red"), [3]),
    "equal any item": (equal("tags[any]", "blue"), [1, 2]),
    "equal any number": (equal("scores[any]", 1), [1, 3]),
    "equal number by position": (equal("scores[0]", 5), [3]),
    "equal field of any item": (equal("homes[any].city", "Oslo"), [3, 5]),
    "equal field of an item by position": (equal("homes[1].number", 2), [1]),
    "not equal": (not_equal("age", 36), [2, 3, 4, 5]),
    "not equal null": (not_equal("nickname", None), [2, 3, 5]),
    "not equal where there is null": (not_equal("nickname", "Prof"), [1, 2, 4, 5]),
    "greater": (greater("age", 41), [2, 4]),
    "greater or equal": (greater_or_equal("age", 41), [2, 3, 4]),
    "less": (less("age", 41), [1, 5]),
    "less or equal": (less_or_equal("age", 41), [1, 3, 5]),
    "less, negative": (less("balance", 0), [2]),
    "greater text": (greater("name", "Grace"), [4, 5]),
    "greater double": (greater("height", 1.65), [3, 5]),
    "greater where there is null": (greater("nickname", "A"), [2, 3]),
    "greater of any item": (greater("scores[any]", 4), [3, 5]),
    "less key": (less("__key", 3), [1, 2]),
    "between": (between("age", 36, 47), [1, 3, 4]),
    "between nobody": (between("age", 50, 40), []),
    "between text": (between("name", "Ada", "Grace"), [1, 2, 3]),
    "in": (in_("name", "Ada", "Alan", "Nobody"), [1, 3]),
    "in numbers": (in_("age", 20, 85), [2, 5]),
    "in nothing": (in_("age"), []),
    "in nested": (in_("address.city", "Oslo", "Paris"), [2, 4, 5]),
    "like": (like("name", "A%"), [1, 3]),
    "like one letter": (like("name", "A_a"), [1]),
    "like without a pattern's sign": (like("name", "Alan"), [3]),
    "like with an escaped sign": (like("name", "ada\\_x"), [5]),
    "like with an escaped percent sign": (like("nickname", "50\\%"), [5]),
    "like, letters beyond ASCII": (like("name", "É%"), [4]),
    "like null": (like("nickname", None), [1, 4]),
    "like, dots are plain": (like("name", "A.a"), []),
    "ilike": (ilike("name", "ada%"), [1, 5]),
    "ilike one letter": (ilike("name", "GRAC_"), [2]),
    "ilike, letters beyond ASCII": (ilike("name", "é%"), [4]),
    "ilike null": (ilike("nickname", None), [1, 4]),
    "regex": (regex("name", "A.*a.*"), [1, 3]),
    "regex matches the whole text": (regex("name", "da"), []),
    "regex classes": (regex("name", "[a-z]+_\\w"), [5]),
    "regex null": (regex("nickname", None), [1, 4]),
    "and": (and_(equal("active", True), greater("age", 30)), [1, 2]),
    "and of nothing": (and_(), [1, 2, 3, 4, 5]),
    "and of one": (and_(equal("name", "Ada")), [1]),
    "or": (or_(equal("name", "Ada"), equal("name", "Alan")), [1, 3]),
    "or of nothing": (or_(), []),
    "not": (not_(equal("active", True)), [3, 4]),
    "not not": (not_(not_(equal("name", "Ada"))), [1]),
    "not of a comparison is the opposite comparison": (not_(greater("nickname", "A")), [5]),
    "not of like takes nulls": (not_(like("nickname", "A%")), [1, 3, 4, 5]),
    "not of in takes nulls": (not_(in_("nickname", "Prof")), [1, 2, 4, 5]),
    "not of between takes nulls": (not_(between("nickname", "A", "Z")), [1, 4, 5]),
    "not of and": (not_(and_(equal("active", True), greater("age", 30))), [3, 4, 5]),
    "nested and, or, not": (
        and_(or_(like("name", "A%"), like("name", "G%")), not_(equal("address.city", "Paris"))),
        [1, 3],
    ),
    "true": (true(), [1, 2, 3, 4, 5]),
    "false": (false(), []),
}

SQL = {
    "age = 41": [3],
    "age == 41": [3],
    "age != 41": [1, 2, 4, 5],
    "age <> 41": [1, 2, 4, 5],
    "age > 41": [2, 4],
    "age >= 41 and active = false": [3, 4],
    "name = 'Ada' OR name = 'Alan'": [1, 3],
    "active": [1, 2, 5],
    "active and age < 40": [1, 5],
    "not active": [3, 4],
    "NOT (age > 41)": [1, 3, 5],
    "age between 36 and 41": [1, 3],
    "age BETWEEN 36 AND 41 OR name LIKE 'G%'": [1, 2, 3],
    "name in ('Ada', 'Grace')": [1, 2],
    "name not in ('Ada', 'Grace')": [3, 4, 5],
    "age in (20, 85)": [2, 5],
    "name like 'A%'": [1, 3],
    "name not like 'A%'": [2, 4, 5],
    "name ilike 'ADA%'": [1, 5],
    "name regex '^A.*'": [1, 3],
    "address.city = 'London'": [1, 3],
    "tags[any] = 'blue'": [1, 2],
    "tags[0] = red": [1],
    "__key > 3": [4, 5],
    "nickname = null": [1, 4],
    "nickname != null": [2, 3, 5],
    "height > 1.7": [3, 5],
    "balance < 0": [2],
    "(age > 41 and active) or (age < 41 and name = 'Ada')": [1, 2],
    "name = 'Ada' and age = 36 and active = true": [1],
}


def keys(numbers, predicate):
    return sorted(numbers.key_set(predicate))


@pytest.mark.parametrize("case", SELECTED)
def test_a_predicate_selects(people, case):
    predicate, expected = SELECTED[case]
    assert keys(people, predicate) == expected


@pytest.mark.parametrize("text", SQL)
def test_a_predicate_in_words_selects(people, text):
    assert keys(people, sql(text)) == SQL[text]


def test_values_and_entries_come_whole(people):
    selected = greater("age", 45)
    assert sorted((as_dict(value) for value in people.values(selected)), key=lambda it: it["age"]) == [
        PEOPLE[4],
        PEOPLE[2],
    ]
    assert {key: as_dict(value) for key, value in people.entry_set(selected)} == {4: PEOPLE[4], 2: PEOPLE[2]}


VALUES = {
    "int": ([1, 2, 3], greater("this", 1), [2, 3]),
    "int, compared with a float": ([1, 2, 3], greater("this", 1.5), [2, 3]),
    "double": ([0.5, 1.5, -2.5], less("this", 0), [-2.5]),
    "text": (["a", "b", "ä"], in_("this", "ä", "b"), ["b", "ä"]),
    "boolean": ([True, False], equal("this", True), [True]),
    "date": (
        [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)],
        greater("this", datetime.date(2000, 1, 1)),
        [datetime.date(2024, 2, 29)],
    ),
    "time": (
        [datetime.time(1, 2, 3, 4), datetime.time(23, 59, 59)],
        less("this", datetime.time(12)),
        [datetime.time(1, 2, 3, 4)],
    ),
    "timestamp with time zone": (
        [
            datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
            datetime.datetime(2025, 2, 28, 12, tzinfo=datetime.timezone.utc),
        ],
        greater("this", datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)),
        [datetime.datetime(2025, 2, 28, 12, tzinfo=datetime.timezone.utc)],
    ),
    "decimal": (
        [decimal.Decimal("1.10"), decimal.Decimal("-3"), decimal.Decimal("1e20")],
        greater_or_equal("this", decimal.Decimal("1.1")),
        [decimal.Decimal("1.10"), decimal.Decimal("1e20")],
    ),
    "uuid": ([uuid.UUID(int=1), uuid.UUID(int=2**127)], equal("this", uuid.UUID(int=1)), [uuid.UUID(int=1)]),
    "texts with an any": (["a", "ab"], like("this", "a_"), ["ab"]),
}


@pytest.mark.parametrize("case", VALUES)
def test_plain_values_are_compared(numbers, case):
    values, predicate, expected = VALUES[case]
    numbers.put_all(dict(enumerate(values)))
    assert sorted(numbers.values(predicate)) == sorted(expected)


def test_longs_are_compared(connect, name):
    numbers = connect(default_int_type=IntType.LONG).get_map(name).blocking()
    numbers.put_all({2**i: 2**i for i in range(60)})
    assert sorted(numbers.values(greater("this", 2**55))) == [2**i for i in range(56, 60)]
    assert numbers.values(equal("this", 2**41)) == [2**41]
    assert numbers.values(equal("__key", 2**40)) == [2**40]


def test_keys_are_compared_by_their_fields(numbers):
    numbers.put_all({HazelcastJsonValue({"a": i, "b": {"c": str(i)}}): i for i in range(10)})
    assert sorted(numbers.values(equal("__key.a", 3))) == [3]
    assert sorted(numbers.values(in_("__key.b.c", "4", "5"))) == [4, 5]


JSON = {
    '{"a": 1}': "number",
    '{"a": "1"}': "text",
    '{"a": true}': "boolean",
    '{"a": null}': "null",
    '{"b": 1}': "missing",
    '{"a": 1.0}': "float",
    '{"a": [1, 2]}': "list",
    '{"a": {"b": 1}}': "object",
}


def test_json_values_of_mixed_types(numbers):
    numbers.put_all({what: HazelcastJsonValue(text) for text, what in JSON.items() if what not in ("text", "boolean")})
    assert keys(numbers, equal("a", 1)) == ["float", "number"]
    assert keys(numbers, equal("a.b", 1)) == ["object"]
    assert keys(numbers, equal("a[any]", 2)) == ["list"]
    assert keys(numbers, equal("a[0]", 1)) == ["list"]


def test_a_field_that_json_does_not_have_is_null(numbers):
    numbers.put_all({1: HazelcastJsonValue('{"a": 1}'), 2: HazelcastJsonValue('{"b": 1}')})
    assert keys(numbers, equal("a", None)) == [2]
    assert keys(numbers, not_equal("a", None)) == [1]
    assert keys(numbers, equal("x.y.z", None)) == [1, 2]


def test_text_that_is_a_number_is_compared_as_the_field(numbers):
    numbers.put_all({1: HazelcastJsonValue('{"a": 1}'), 2: HazelcastJsonValue('{"a": 2}')})
    assert keys(numbers, equal("a", "2")) == [2]


@pytest.mark.parametrize("class_name", ["java.lang.String", "java.lang.Integer", "java.lang.Number"])
def test_instance_of_selects_by_class(numbers, class_name):
    numbers.put_all({1: "text", 2: 2, 3: 1.5})
    expected = {"java.lang.String": [1], "java.lang.Integer": [2], "java.lang.Number": [2, 3]}
    assert keys(numbers, instance_of(class_name)) == expected[class_name]


def test_remove_all_removes_what_is_selected(numbers):
    numbers.put_all({i: i for i in range(100)})
    numbers.remove_all(greater_or_equal("this", 10))
    assert sorted(numbers.key_set()) == list(range(10))
    numbers.remove_all(false())
    assert numbers.size() == 10
    numbers.remove_all(true())
    assert numbers.size() == 0


def test_a_predicate_sees_changes(numbers):
    numbers.put("a", 1)
    assert keys(numbers, equal("this", 2)) == []
    numbers.put("a", 2)
    assert keys(numbers, equal("this", 2)) == ["a"]
    numbers.remove("a")
    assert keys(numbers, equal("this", 2)) == []


def test_a_million_bytes_of_values_come_back(numbers):
    numbers.put_all({i: "x" * 1000 for i in range(1000)})
    assert numbers.values(like("this", "x%")) == ["x" * 1000] * 1000


@pytest.mark.parametrize("text", ["age >", "(age = 1", "age in", "between 1 and 2"])
def test_broken_words_are_an_error(numbers, text):
    numbers.put(1, HazelcastJsonValue('{"age": 1}'))
    with pytest.raises(HazelcastError):
        numbers.values(sql(text))
    assert numbers.size() == 1


def test_a_broken_regular_expression_is_an_error(numbers):
    numbers.put(1, "a")
    with pytest.raises(HazelcastError):
        numbers.values(regex("this", "(("))
    assert numbers.size() == 1


@pytest.mark.parametrize("path", ["a[", "a[-1]", "a]"])
def test_a_broken_path_is_an_error(numbers, path):
    numbers.put(1, HazelcastJsonValue('{"a": [1]}'))
    with pytest.raises((HazelcastError, AssertionError, ValueError)):
        numbers.values(equal(path, 1))
    assert numbers.size() == 1
