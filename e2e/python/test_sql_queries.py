"""SQL queries: joins, groups, order, sets, subqueries, expressions and functions, each with the rows it gives."""

import datetime
import decimal

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.sql import SqlColumnType

from conftest import Sql
from formats import FORMATS, PEOPLE
from member import REAL_HAZELCAST

Decimal = decimal.Decimal

filbert_only = pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast has none of this")


@pytest.fixture(scope="module")
def people(people_client):
    """`{people}` in a statement is the people of `formats`, `{towns}` a map of the towns they live in."""
    sql = Sql(people_client, "unused")
    sql.update(
        'CREATE OR REPLACE MAPPING "query-people" (__key INT, name VARCHAR, nickname VARCHAR, age INT, balance BIGINT,'
        " height DOUBLE, active BOOLEAN) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='compact',"
        " 'valueCompactTypeName'='query-person')"
    )
    sql.update(
        'CREATE OR REPLACE MAPPING "query-towns" (__key VARCHAR, country VARCHAR, inhabitants BIGINT, who INT)'
        " TYPE IMap OPTIONS ('keyFormat'='varchar', 'valueFormat'='json-flat')"
    )
    entries = {key: FORMATS["compact"](person) for key, person in PEOPLE.items()}
    people_client.get_map("query-people").blocking().put_all(entries)
    sql.update(
        "SINK INTO \"query-towns\" VALUES ('London', 'UK', 9000000, 1), ('Paris', 'France', 2000000, 2),"
        " ('Oslo', 'Norway', 700000, 5), ('Lyon', 'France', 500000, CAST(NULL AS INT))"
    )
    return sql


def rows_of(sql, text):
    return sql.rows(text.replace("{people}", '"query-people"').replace("{towns}", '"query-towns"'))


# In the order in which they come.
ORDERED = {
    "SELECT name FROM {people} ORDER BY age": [("ada_x",), ("Ada",), ("Alan",), ("Édith",), ("Grace",)],
    "SELECT name FROM {people} ORDER BY age DESC LIMIT 2": [("Grace",), ("Édith",)],
    "SELECT name FROM {people} ORDER BY age LIMIT 2 OFFSET 1": [("Ada",), ("Alan",)],
    "SELECT name FROM {people} ORDER BY age OFFSET 3 ROWS FETCH NEXT 5 ROWS ONLY": [("Édith",), ("Grace",)],
    "SELECT name, active FROM {people} ORDER BY active, age DESC": [
        ("Édith", False),
        ("Alan", False),
        ("Grace", True),
        ("Ada", True),
        ("ada_x", True),
    ],
    "SELECT __key FROM {people} ORDER BY -age": [(2,), (4,), (3,), (1,), (5,)],
    "SELECT name AS n FROM {people} WHERE age > 40 ORDER BY n": [("Alan",), ("Grace",), ("Édith",)],
    "SELECT COUNT(*), COUNT(nickname), MIN(age), MAX(age), SUM(age) FROM {people}": [(5, 3, 20, 85, 229)],
    "SELECT COUNT(DISTINCT active), MIN(name), MAX(height), SUM(balance) FROM {people}": [
        (2, "Ada", 1.9, Decimal(2**40 + 107))
    ],
    "SELECT COUNT(*), MIN(age), SUM(age) FROM {people} WHERE age > 1000": [(0, None, None)],
    "SELECT active, COUNT(*) FROM {people} GROUP BY active ORDER BY active": [(False, 2), (True, 3)],
    "SELECT active, SUM(age) AS total FROM {people} GROUP BY active ORDER BY total": [(False, 88), (True, 141)],
    "SELECT active, COUNT(*) FROM {people} GROUP BY active HAVING COUNT(*) > 2": [(True, 3)],
    "SELECT age / 10 AS decade, COUNT(*) FROM {people} GROUP BY age / 10 ORDER BY decade": [
        (2, 1),
        (3, 1),
        (4, 2),
        (8, 1),
    ],
    "SELECT DISTINCT active FROM {people} ORDER BY active": [(False,), (True,)],
    "SELECT country, SUM(inhabitants) FROM {towns} GROUP BY country ORDER BY country": [
        ("France", Decimal(2500000)),
        ("Norway", Decimal(700000)),
        ("UK", Decimal(9000000)),
    ],
    "SELECT p.name, t.__key FROM {people} p JOIN {towns} t ON p.__key = t.who ORDER BY p.name": [
        ("Ada", "London"),
        ("Grace", "Paris"),
        ("ada_x", "Oslo"),
    ],
    "SELECT p.name, t.country FROM {people} p LEFT JOIN {towns} t ON p.__key = t.who ORDER BY p.__key": [
        ("Ada", "UK"),
        ("Grace", "France"),
        ("Alan", None),
        ("Édith", None),
        ("ada_x", "Norway"),
    ],
    "SELECT p.name, t.__key FROM {people} p RIGHT JOIN {towns} t ON p.__key = t.who ORDER BY t.__key": [
        ("Ada", "London"),
        (None, "Lyon"),
        ("ada_x", "Oslo"),
        ("Grace", "Paris"),
    ],
    "SELECT COUNT(*) FROM {people}, {towns}": [(20,)],
    "SELECT COUNT(*) FROM {people} CROSS JOIN {towns} WHERE age > 40": [(12,)],
    "SELECT a.__key, b.__key FROM {people} a JOIN {people} b ON a.age < b.age AND a.active = b.active"
    " ORDER BY a.__key, b.__key": [(1, 2), (3, 4), (5, 1), (5, 2)],
    "SELECT name FROM {people} p JOIN TABLE(generate_series(1, 2)) s ON s.v = p.__key ORDER BY name": [
        ("Ada",),
        ("Grace",),
    ],
    "SELECT __key FROM (SELECT __key, age FROM {people} WHERE active) WHERE age < 50 ORDER BY __key": [(1,), (5,)],
    "VALUES (1, 'a'), (2, 'b')": [(1, "a"), (2, "b")],
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (n, c) WHERE n > 1": [(2, "b")],
    "SELECT 1": [(1,)],
}

SETS = {
    "SELECT name FROM {people} WHERE active UNION ALL SELECT name FROM {people} WHERE age > 80": [
        ("Ada",),
        ("Grace",),
        ("Grace",),
        ("ada_x",),
    ],
    "SELECT active FROM {people} UNION SELECT active FROM {people}": [(False,), (True,)],
}

# What Hazelcast's planner has not, by the standard.
MORE = {
    "SELECT __key FROM {people} ORDER BY nickname NULLS LAST, __key": [(5,), (2,), (3,), (1,), (4,)],
    "SELECT __key FROM {people} ORDER BY nickname DESC NULLS FIRST, __key": [(1,), (4,), (3,), (2,), (5,)],
    "SELECT name FROM {people} WHERE __key IN (SELECT who FROM {towns}) ORDER BY name": [
        ("Ada",),
        ("Grace",),
        ("ada_x",),
    ],
    "SELECT name FROM {people} WHERE age = (SELECT MAX(age) FROM {people})": [("Grace",)],
    "SELECT name FROM {people} p WHERE EXISTS (SELECT 1 FROM {towns} t WHERE t.who = p.__key AND t.country = 'UK')": [
        ("Ada",)
    ],
    "SELECT name FROM {people} p WHERE NOT EXISTS (SELECT 1 FROM {towns} t WHERE t.who = p.__key) ORDER BY name": [
        ("Alan",),
        ("Édith",),
    ],
    "SELECT name, (SELECT COUNT(*) FROM {people} b WHERE b.age < a.age) FROM {people} a ORDER BY 2": [
        ("ada_x", 0),
        ("Ada", 1),
        ("Alan", 2),
        ("Édith", 3),
        ("Grace", 4),
    ],
    "SELECT __key FROM {people} INTERSECT SELECT who FROM {towns} ORDER BY 1": [(1,), (2,), (5,)],
    "SELECT __key FROM {people} EXCEPT SELECT who FROM {towns} ORDER BY 1": [(3,), (4,)],
    "WITH old AS (SELECT * FROM {people} WHERE age > 40) SELECT COUNT(*) FROM old": [(3,)],
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n ORDER BY i": [
        (i,) for i in range(1, 6)
    ],
    "SELECT p.name, t.__key FROM {people} p FULL JOIN {towns} t ON p.__key = t.who ORDER BY t.__key NULLS LAST, p.name": [
        ("Ada", "London"),
        (None, "Lyon"),
        ("ada_x", "Oslo"),
        ("Grace", "Paris"),
        ("Alan", None),
        ("Édith", None),
    ],
    "SELECT name, ROW_NUMBER() OVER (ORDER BY age) FROM {people} ORDER BY age LIMIT 2": [("ada_x", 1), ("Ada", 2)],
    "SELECT name, RANK() OVER (PARTITION BY active ORDER BY age DESC) r FROM {people} ORDER BY active, r": [
        ("Édith", 1),
        ("Alan", 2),
        ("Grace", 1),
        ("Ada", 2),
        ("ada_x", 3),
    ],
    "SELECT age, SUM(age) OVER (ORDER BY age) FROM {people} ORDER BY age": [
        (20, 20),
        (36, 56),
        (41, 97),
        (47, 144),
        (85, 229),
    ],
    "SELECT age, LAG(age) OVER (ORDER BY age) FROM {people} ORDER BY age LIMIT 2": [(20, None), (36, 20)],
    "SELECT active, COUNT(*) FILTER (WHERE age > 40) FROM {people} GROUP BY active ORDER BY active": [
        (False, 2),
        (True, 1),
    ],
    "SELECT country, COUNT(*) FROM {towns} GROUP BY GROUPING SETS ((country), ()) ORDER BY country NULLS LAST": [
        ("France", 2),
        ("Norway", 1),
        ("UK", 1),
        (None, 4),
    ],
}


@pytest.mark.parametrize("text", ORDERED)
def test_a_query_gives_its_rows(people, text):
    assert rows_of(people, text) == ORDERED[text]


@pytest.mark.parametrize("text", SETS)
def test_sets_of_rows(people, text):
    assert sorted(rows_of(people, text)) == SETS[text]


@filbert_only
@pytest.mark.parametrize("text", MORE)
def test_the_rest_of_the_standard(people, text):
    assert rows_of(people, text) == MORE[text]


UTC = datetime.timezone.utc

EXPRESSIONS = {
    # Arithmetic and its types.
    "1 + 2": 3,
    "7 / 2": 3,
    "-7 / 2": -3,
    "7 % 4": 3,
    "7.5 / 2": Decimal("3.75"),
    "1.1 + 2.2": Decimal("3.3"),
    "2 * 1.5": Decimal("3"),
    "CAST(7 AS DOUBLE) / 2": 3.5,
    "1e1 + 1": 11.0,
    "CAST(1 AS DOUBLE) * 0.5": 0.5,
    "1 + NULL": None,
    # Truth with three values.
    "1 < 2 AND NULL": None,
    "1 > 2 AND CAST(NULL AS BOOLEAN)": False,
    "1 < 2 OR CAST(NULL AS BOOLEAN)": True,
    "NOT CAST(NULL AS BOOLEAN)": None,
    "NULL IS NULL": True,
    "1 IS NOT NULL": True,
    "CAST(NULL AS BOOLEAN) IS TRUE": False,
    "CAST(NULL AS BOOLEAN) IS NOT TRUE": True,
    "2 BETWEEN 1 AND 3": True,
    "2 BETWEEN SYMMETRIC 3 AND 1": True,
    "1 = 1.0": True,
    "'a' < 'b'": True,
    # Conditions.
    "CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END": "b",
    "CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'b' END": "b",
    "COALESCE(CAST(NULL AS INT), 2, 3)": 2,
    "NULLIF(1, 1)": None,
    "NULLIF(1, 2)": 1,
    # Numbers.
    "ABS(-5)": 5,
    "CBRT(CAST(27 AS DOUBLE))": 3.0,
    "CEIL(1.2)": Decimal("2"),
    "FLOOR(-1.2)": Decimal("-2"),
    "ROUND(2.567, 2)": Decimal("2.57"),
    "ROUND(CAST(2.5 AS DOUBLE))": 3.0,
    "ROUND(15, -1)": 20,
    "TRUNCATE(2.567, 1)": Decimal("2.5"),
    "SIGN(-3)": -1,
    "SQRT(CAST(16 AS DOUBLE))": 4.0,
    "SQUARE(CAST(4 AS DOUBLE))": 16.0,
    "POWER(2, 10)": 1024.0,
    "EXP(0)": 1.0,
    "LN(1)": 0.0,
    "LOG10(1000)": 3.0,
    "RADIANS(180.0)": 3.141592653589793,
    "SIN(0)": 0.0,
    "COS(0)": 1.0,
    "TAN(0)": 0.0,
    "COT(CAST(1 AS DOUBLE))": 0.6420926159343306,
    "ATAN2(CAST(0 AS DOUBLE), CAST(1 AS DOUBLE))": 0.0,
    "ASIN(0)": 0.0,
    "ACOS(1)": 0.0,
    "ATAN(0)": 0.0,
    # Text.
    "'a' || 'b' || 'c'": "abc",
    "'a' || NULL": None,
    "1 || 'a'": "1a",
    "CONCAT_WS('-', 'a', NULL, 'b')": "a-b",
    "UPPER('aä')": "AÄ",
    "LOWER('AÄ')": "aä",
    "INITCAP('hello wORLD')": "Hello World",
    "LENGTH('añb')": 3,
    "CHAR_LENGTH('añb')": 3,
    "CHARACTER_LENGTH('abc')": 3,
    "ASCII('A')": 65,
    "SUBSTRING('hazelcast', 1, 5)": "hazel",
    "SUBSTRING('hazelcast' FROM 6)": "cast",
    "TRIM('  a  ')": "a",
    "TRIM(LEADING 'x' FROM 'xxax')": "ax",
    "TRIM(BOTH 'x' FROM 'xax')": "a",
    "LTRIM('  a ')": "a ",
    "RTRIM(' a  ')": " a",
    "BTRIM(' a ')": "a",
    "REPLACE('banana', 'an', 'x')": "bxxa",
    "POSITION('c' IN 'abc')": 3,
    "POSITION('z' IN 'abc')": 0,
    "'ab_c' LIKE 'ab!_c' ESCAPE '!'": True,
    "'abxc' LIKE 'ab!_c' ESCAPE '!'": False,
    "'abc' LIKE '%b%'": True,
    "'ABC' LIKE 'abc'": False,
    "'a\nb' LIKE 'a_b'": True,
    "'it''s'": "it's",
    # Casts.
    "CAST('12' AS INT)": 12,
    "CAST(12 AS VARCHAR)": "12",
    "CAST(1.7 AS INT)": 1,
    "CAST('true' AS BOOLEAN)": True,
    "CAST(TRUE AS VARCHAR)": "true",
    "CAST('1.50' AS DECIMAL)": Decimal("1.50"),
    "CAST(3 AS DECIMAL)": Decimal("3"),
    "CAST('1e3' AS DOUBLE)": 1000.0,
    "CAST('2024-02-29' AS DATE)": datetime.date(2024, 2, 29),
    "CAST('12:34:56' AS TIME)": datetime.time(12, 34, 56),
    "CAST('2024-02-29T12:34:56.123456' AS TIMESTAMP)": datetime.datetime(2024, 2, 29, 12, 34, 56, 123456),
    "CAST('2024-02-29T12:34:56+02:00' AS TIMESTAMP WITH TIME ZONE)": datetime.datetime(
        2024, 2, 29, 10, 34, 56, tzinfo=UTC
    ),
    "CAST(CAST('2024-02-29T12:34:56' AS TIMESTAMP) AS DATE)": datetime.date(2024, 2, 29),
    "CAST(CAST('2024-02-29T12:34:56' AS TIMESTAMP) AS TIME)": datetime.time(12, 34, 56),
    "CAST(CAST('2024-02-29' AS DATE) AS TIMESTAMP)": datetime.datetime(2024, 2, 29),
    "CAST(CAST('2024-02-29' AS DATE) AS VARCHAR)": "2024-02-29",
    "CAST(NULL AS INT)": None,
    "CAST(127 AS TINYINT)": 127,
    # Dates.
    "EXTRACT(YEAR FROM CAST('2024-02-29' AS DATE))": 2024.0,
    "EXTRACT(DOY FROM CAST('2024-02-29' AS DATE))": 60.0,
    "EXTRACT(HOUR FROM CAST('2024-02-29T12:34:56' AS TIMESTAMP))": 12.0,
    "EXTRACT(QUARTER FROM CAST('2024-05-01' AS DATE))": 2.0,
    "CAST('2024-02-29' AS DATE) < CAST('2024-03-01' AS DATE)": True,
    "TO_EPOCH_MILLIS(TO_TIMESTAMP_TZ(1700000000))": 1700000000000,
    "TO_TIMESTAMP_TZ(1700000000000)": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    "TO_CHAR(CAST('2024-02-29' AS DATE), 'YYYY/MM/DD')": "2024/02/29",
    # JSON.
    "JSON_VALUE('{\"a\": 1}', '$.a')": "1",
    "JSON_VALUE('{\"a\": 1}', '$.a' RETURNING INTEGER)": 1,
    "JSON_VALUE('{\"a\": [1, 2, 3]}', '$.a[1]' RETURNING BIGINT)": 2,
    "JSON_VALUE('{\"a\": \"x\"}', '$.a')": "x",
    "JSON_VALUE('{\"a\": true}', '$.a' RETURNING BOOLEAN)": True,
    "JSON_VALUE('{\"a\": 1}', '$.b')": None,
    "JSON_VALUE('{\"a\": 1}', '$.b' DEFAULT 'none' ON EMPTY)": "none",
    "JSON_VALUE('{\"a\": 1}', '$.b' NULL ON EMPTY)": None,
    "JSON_VALUE('{\"a\": 1', '$.a')": None,
    "JSON_VALUE('{\"a\": 1', '$.a' DEFAULT '?' ON ERROR)": "?",
    "JSON_VALUE(CAST('{\"a\": {\"b\": 7}}' AS JSON), '$.a.b' RETURNING INTEGER)": 7,
    "JSON_QUERY('{\"a\": [1, 2]}', '$.a[*]' WITH WRAPPER)": HazelcastJsonValue("[1,2]"),
    "JSON_QUERY('{\"a\": {\"b\": 1}}', '$.a')": HazelcastJsonValue('{"b":1}'),
    "JSON_QUERY('{\"a\": 1}', '$.b')": None,
    "JSON_QUERY('{\"a\": 1}', '$.b' EMPTY ARRAY ON EMPTY)": HazelcastJsonValue("[]"),
    "JSON_OBJECT('a' : 1, 'b' : 'x')": HazelcastJsonValue('{"a":1,"b":"x"}'),
    "JSON_OBJECT(KEY 'a' VALUE 1)": HazelcastJsonValue('{"a":1}'),
    "JSON_OBJECT('a' : 1, 'b' : NULL ABSENT ON NULL)": HazelcastJsonValue('{"a":1}'),
    "JSON_OBJECT('a' : NULL)": HazelcastJsonValue('{"a":null}'),
    "JSON_ARRAY(1, 'x', TRUE)": HazelcastJsonValue('[1,"x",true]'),
    "JSON_ARRAY(1, NULL)": HazelcastJsonValue("[1]"),
    "JSON_ARRAY(1, NULL NULL ON NULL)": HazelcastJsonValue("[1,null]"),
}


# By the standard, or by what the rest of the functions do.
MORE_EXPRESSIONS = {
    "1 IN (2, NULL)": None,
    "1 IN (1, NULL)": True,
    "CASE WHEN FALSE THEN 1 END": None,
    "GREATEST(1, 5, 3)": 5,
    "LEAST(4, 2, 3)": 2,
    "DEGREES(PI())": 180.0,
    "JSON_QUERY('{\"a\": [1, 2]}', '$.a')": HazelcastJsonValue("[1,2]"),
}


@filbert_only
@pytest.mark.parametrize("expression", MORE_EXPRESSIONS)
def test_an_expression_that_only_filbert_knows(sql, expression):
    check(sql, expression, MORE_EXPRESSIONS[expression])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_gives_its_value(sql, expression):
    check(sql, expression, EXPRESSIONS[expression])


def check(sql, expression, expected):
    actual = sql.value(f"SELECT {expression}")
    if isinstance(expected, HazelcastJsonValue):
        assert actual.loads() == expected.loads()
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected)
    else:
        assert actual == expected
        assert type(actual) is type(expected)


TYPES = {
    "CAST(1 AS TINYINT) + CAST(1 AS TINYINT)": SqlColumnType.SMALLINT,
    "CAST(1 AS INT) + CAST(1 AS INT)": SqlColumnType.BIGINT,
    "CAST(1 AS BIGINT) + 1": SqlColumnType.BIGINT,
    "CAST(1 AS INT) / CAST(1 AS INT)": SqlColumnType.BIGINT,
    "CAST(1 AS SMALLINT) / CAST(1 AS SMALLINT)": SqlColumnType.INTEGER,
    "CAST(1 AS TINYINT) / 2": SqlColumnType.SMALLINT,
    "CAST(1 AS INT) / 2": SqlColumnType.BIGINT,
    "CAST(1 AS INT) % 2": SqlColumnType.INTEGER,
    "CAST(1 AS SMALLINT) % CAST(1 AS INT)": SqlColumnType.INTEGER,
    "-CAST(1 AS INT)": SqlColumnType.BIGINT,
    "-CAST(1 AS TINYINT)": SqlColumnType.SMALLINT,
    "ABS(CAST(-1 AS INT))": SqlColumnType.BIGINT,
    "ABS(CAST(-1 AS SMALLINT))": SqlColumnType.INTEGER,
    "-(-CAST(1 AS SMALLINT))": SqlColumnType.INTEGER,
    "CAST(1 AS SMALLINT) + CAST(1 AS SMALLINT) + 1": SqlColumnType.INTEGER,
    "CAST(1 AS INT) * CAST(1 AS DOUBLE)": SqlColumnType.DOUBLE,
    "CAST(1 AS REAL) + CAST(1 AS INT)": SqlColumnType.REAL,
    "1.5": SqlColumnType.DECIMAL,
    "1.5e0": SqlColumnType.DOUBLE,
    "1": SqlColumnType.TINYINT,
    "1000": SqlColumnType.SMALLINT,
    "100000": SqlColumnType.INTEGER,
    "10000000000": SqlColumnType.BIGINT,
    "'a'": SqlColumnType.VARCHAR,
    "TRUE": SqlColumnType.BOOLEAN,
    "NULL": SqlColumnType.NULL,
    "CAST('{}' AS JSON)": SqlColumnType.JSON,
    "CAST(1 AS OBJECT)": SqlColumnType.OBJECT,
    "COUNT(*)": SqlColumnType.BIGINT,
    "SUM(CAST(1 AS INT))": SqlColumnType.BIGINT,
    "SUM(CAST(1 AS BIGINT))": SqlColumnType.DECIMAL,
    "AVG(CAST(1 AS INT))": SqlColumnType.DECIMAL,
    "AVG(CAST(1 AS DOUBLE))": SqlColumnType.DOUBLE,
    "MIN(CAST(1 AS SMALLINT))": SqlColumnType.SMALLINT,
    "(5)": SqlColumnType.TINYINT,
    "(-(128))": SqlColumnType.TINYINT,
    "-(-4)": SqlColumnType.TINYINT,
    "CASE WHEN TRUE THEN 5 END": SqlColumnType.TINYINT,
    "CASE WHEN x = 2 THEN (5) ELSE 300 END": SqlColumnType.SMALLINT,
    "CASE WHEN x = 2 THEN 5 ELSE CAST(2 AS INT) END": SqlColumnType.INTEGER,
    "COALESCE(5, NULL)": SqlColumnType.TINYINT,
    "COALESCE(CAST(1 AS INT), 5)": SqlColumnType.INTEGER,
    "COALESCE(NULL, NULL)": SqlColumnType.NULL,
    "COALESCE(CAST(1 AS DECIMAL), CAST(2 AS DOUBLE))": SqlColumnType.DOUBLE,
    "NULLIF(300, 5)": SqlColumnType.SMALLINT,
    "NULLIF(5, CAST(1 AS INT))": SqlColumnType.INTEGER,
    "SIGN(5)": SqlColumnType.TINYINT,
    "SIGN(0.5)": SqlColumnType.DECIMAL,
    "CEIL(5)": SqlColumnType.TINYINT,
    "ROUND(300)": SqlColumnType.SMALLINT,
    "MOD(CAST(5 AS INT), 3)": SqlColumnType.INTEGER,
    "MOD(CAST(5 AS INT), CAST(3 AS BIGINT))": SqlColumnType.BIGINT,
    "MAX(300)": SqlColumnType.SMALLINT,
    "SUM(5)": SqlColumnType.BIGINT,
    "x": SqlColumnType.TINYINT,
    "SUM(x)": SqlColumnType.BIGINT,
}


@pytest.mark.parametrize("expression", TYPES)
def test_an_expression_has_its_type(sql, expression):
    ((_, actual),) = sql.columns(f"SELECT {expression} FROM (VALUES (1)) AS t (x)")
    assert actual == TYPES[expression]


def test_averages(people):
    assert rows_of(people, "SELECT AVG(height) FROM {people}")[0][0] == pytest.approx(1.65)
    assert rows_of(people, "SELECT AVG(age) FROM {people}") == [(Decimal("45.8"),)]


def test_json_aggregates(people):
    ((array,),) = rows_of(people, "SELECT JSON_ARRAYAGG(age ORDER BY age) FROM {people}")
    assert array.loads() == [20, 36, 41, 47, 85]
    ((object_,),) = rows_of(people, "SELECT JSON_OBJECTAGG(name : age) FROM {people} WHERE active")
    assert object_.loads() == {"Ada": 36, "Grace": 85, "ada_x": 20}


PARAMETERS = {
    "INT": (5, 5),
    "TINYINT": (5, 5),
    "BIGINT": (5, 5),
    "DECIMAL": (Decimal("1.25"), Decimal("1.25")),
    "DOUBLE": (1.5, 1.5),
    "REAL": (1.5, 1.5),
    "BOOLEAN": (True, True),
    "VARCHAR": ("täxt", "täxt"),
    "DATE": (datetime.date(2024, 2, 29), datetime.date(2024, 2, 29)),
    "TIME": (datetime.time(1, 2, 3), datetime.time(1, 2, 3)),
    "TIMESTAMP": ("2024-02-29T01:02:03", datetime.datetime(2024, 2, 29, 1, 2, 3)),
    "TIMESTAMP WITH TIME ZONE": (
        datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
        datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
    ),
    "OBJECT": (5, 5),
}


@pytest.mark.parametrize("type_name", PARAMETERS)
def test_a_parameter_of_each_type(sql, type_name):
    parameter, expected = PARAMETERS[type_name]
    assert sql.value(f"SELECT CAST(? AS {type_name})", parameter) == expected
    assert sql.value(f"SELECT CAST(? AS {type_name})", None) is None


def test_a_json_parameter(sql):
    assert sql.value("SELECT CAST(? AS JSON)", HazelcastJsonValue({"a": 1})).loads() == {"a": 1}
    assert sql.value("SELECT JSON_VALUE(?, '$.a' RETURNING INT)", '{"a": 4}') == 4
