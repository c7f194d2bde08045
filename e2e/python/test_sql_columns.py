"""Maps that keep columns beside their entries: every answer is what it is without them, after every kind of change."""

import random

import pytest
from hazelcast.config import IndexType
from hazelcast.sql import _SqlErrorCode

from conftest import Sql
from formats import PEOPLE, as_compact, as_json, as_portable
from member import REAL_HAZELCAST, eventually
from test_sql_formats import COMPACT, EVERYTHING, LITERALS, PERSON, PORTABLE, Everything

pytestmark = pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast has no columns")

FORMATS = {
    "json": (as_json, "json-flat", ""),
    "portable": (as_portable, "portable", PORTABLE),
    "compact": (as_compact, "compact", COMPACT),
}

QUESTIONS = [
    "SELECT * FROM {map} ORDER BY __key",
    "SELECT COUNT(*), COUNT(nickname), SUM(age), MIN(balance), MAX(height), AVG(age), MIN(name), MAX(nickname) FROM {map}",
    "SELECT active, COUNT(*), SUM(balance), MAX(name) FROM {map} GROUP BY active ORDER BY active",
    "SELECT nickname, COUNT(*) FROM {map} GROUP BY nickname ORDER BY nickname NULLS FIRST",
    "SELECT name FROM {map} WHERE age > 30 AND height < 1.7 ORDER BY name",
    "SELECT name FROM {map} WHERE nickname IS NULL ORDER BY name",
    "SELECT name FROM {map} WHERE nickname LIKE '%a%' OR NOT active ORDER BY name",
    "SELECT COUNT(*) FROM {map} WHERE name IN ('Ada', 'Alan') AND balance BETWEEN -10 AND 10",
    "SELECT age, __key FROM {map} WHERE active ORDER BY age DESC, __key LIMIT 3",
    "SELECT a.name, b.name FROM {map} a JOIN {map} b ON a.age = b.__key AND a.active = b.active ORDER BY 1, 2",
    "SELECT DISTINCT age % 10 FROM {map} ORDER BY 1",
    "SELECT COUNT(DISTINCT name) FROM {map}",
    "SELECT name FROM {map} WHERE __key = 3",
    "SELECT SUM(age * 2 + 1), SUM(height) FROM {map} WHERE age < 0",
]


def mixed(number):
    """A person of the five, made different from the others."""
    person = dict(PEOPLE[number % 5 + 1])
    return {**person, "age": number % 97, "balance": number * 7 - 100, "name": f"{person['name']} {number % 13}"}


def same(row):
    """Sums of floats may differ in their last digits, as rows are added in another order."""
    return tuple(pytest.approx(value) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_change_no_answer(people_client, name, kind):
    make, value_format, options = FORMATS[kind]
    plain, columnar = Sql(people_client, f"{name}-plain"), Sql(people_client, f"{name}-columnar")
    comma = ", " if options else ""
    plain.mapping("int", value_format, f"__key INT, {PERSON}", options)
    maps = [people_client.get_map(f"{name}-{which}").blocking() for which in ("plain", "columnar")]

    def check():
        for question in QUESTIONS:
            assert columnar.rows(question) == [same(row) for row in plain.rows(question)], question

    def put(numbers):
        entries = {number: make(mixed(number)) for number in numbers}
        for each in maps:
            each.put_all(entries)

    put(range(0, 600))
    columnar.mapping("int", value_format, f"__key INT, {PERSON}", f"{options}{comma}'columnar'='true'")
    check()
    put(range(500, 1200))
    check()
    random.seed(4711)
    for _ in range(5):
        gone = random.sample(range(1200), 150)
        for each in maps:
            for number in gone:
                each.delete(number)
        changed = random.sample(range(1200), 100)
        entries = {number: make(mixed(number * 3)) for number in changed}
        for each in maps:
            each.put_all(entries)
        for sql in (plain, columnar):
            sql.update("UPDATE {map} SET age = age + 1, nickname = NULL WHERE age % 7 = 0")
            sql.update("DELETE FROM {map} WHERE balance % 11 = 0")
        check()
    for each in maps:
        each.add_index(["age"], IndexType.SORTED)
        each.add_index(["name"], IndexType.HASH)
    check()
    for each in maps:
        each.clear()
    check()
    put(range(10))
    check()


@pytest.mark.parametrize("value_format", EVERYTHING)
def test_every_type_is_kept_in_columns(sql, value_format):
    # Columns of decimals need to know their digits.
    kinds = {column: kind.replace("DECIMAL", "DECIMAL(30, 3)") for column, (kind, _) in Everything.FIELDS.items()}
    columns = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
    options = ", ".join(option for option in (EVERYTHING[value_format], "'columnar'='true'") if option)
    sql.mapping("int", value_format, f"__key INT, {columns}", options)
    sql.update(f"INSERT INTO {{map}} VALUES (1, {', '.join(LITERALS.values())})")
    assert sql.rows("SELECT * FROM {map}") == [(1, *(value for _, value in Everything.FIELDS.values()))]
    for column, literal in LITERALS.items():
        assert sql.rows(f"SELECT __key FROM {{map}} WHERE {column} = {literal}") == [(1,)], column
        assert sql.rows(f"SELECT __key FROM {{map}} WHERE {column} <> {literal}") == [], column
        smallest, biggest = sql.rows(f"SELECT MIN({column}), MAX({column}) FROM {{map}} WHERE {column} IS NOT NULL")[0]
        assert smallest == biggest == Everything.FIELDS[column][1], column


def test_plain_values_are_kept_in_columns(sql, numbers):
    sql.mapping("int", "varchar", "__key INT, this VARCHAR", "'columnar'='true'")
    numbers.put_all({i: "long text beyond what fits inline " * (i % 3) + str(i) for i in range(5000)})
    assert sql.value("SELECT COUNT(*) FROM {map} WHERE this LIKE '%inline%'") == len([i for i in range(5000) if i % 3])
    assert sql.value("SELECT this FROM {map} WHERE __key = 3") == "3"
    numbers.put(3, "x" * 100_000)
    assert sql.value("SELECT CHAR_LENGTH(MAX(this)) FROM {map}") == 100_000
    numbers.clear()
    assert sql.value("SELECT MAX(this) FROM {map}") is None


def test_a_value_that_does_not_fit_its_column_is_written_and_named_when_read(sql, numbers):
    sql.mapping("int", "int", "__key INT, this INT", "'columnar'='true'")
    numbers.put_all({i: i for i in range(100)})
    numbers.put(4711, "text")
    assert numbers.get(4711) == "text"
    error = sql.error("SELECT SUM(this) FROM {map}")
    assert error._code == _SqlErrorCode.DATA_EXCEPTION and "4711" in str(error)
    numbers.remove(4711)
    assert sql.value("SELECT SUM(this) FROM {map}") == sum(range(100))


def test_expired_entries_leave_the_columns(sql, numbers):
    sql.mapping("int", "int", "__key INT, this INT", "'columnar'='true'")
    numbers.put(1, 1, ttl=1)
    numbers.put(2, 2)
    assert sql.value("SELECT COUNT(*) FROM {map}") in (1, 2)
    eventually(lambda: sql.value("SELECT SUM(this) FROM {map}") == 2)
    assert sql.value("SELECT COUNT(*) FROM {map} WHERE this > 0") == 1


def test_columns_go_with_their_mapping(sql, numbers):
    sql.mapping("int", "int", "__key INT, this INT", "'columnar'='true'")
    numbers.put_all({i: i for i in range(100)})
    assert sql.value("SELECT SUM(this) FROM {map}") == 4950
    sql.update("DROP MAPPING {map}")
    sql.mapping("int", "int", "__key INT, this INT")
    numbers.put(100, 100)
    assert sql.value("SELECT SUM(this) FROM {map}") == 5050
