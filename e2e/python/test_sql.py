"""SQL: statements, parameters, cursors and errors, over plain values."""

import threading

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.sql import HazelcastSqlError, SqlColumnType, SqlExpectedResultType, _SqlErrorCode

from member import REAL_HAZELCAST, eventually

filbert_only = pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast has none of this")


def changed(entries):
    """The update count of a statement that has changed so many entries: Hazelcast does not count them."""
    return 0 if REAL_HAZELCAST else entries


@pytest.fixture
def ten(sql, numbers):
    """The numbers 0 to 9 under themselves."""
    sql.mapping("int", "int")
    numbers.put_all({i: i for i in range(10)})
    return sql


@pytest.fixture
def words(sql, numbers):
    sql.mapping("int", "varchar")
    numbers.put_all({1: "one", 2: "two", 3: "three", 4: "four", 5: "FIVE"})
    return sql


def test_all_rows_come(ten):
    assert ten.row_set("SELECT * FROM {map}") == [(i, i) for i in range(10)]
    assert ten.row_set("SELECT this, __key FROM {map} WHERE __key >= 8") == [(8, 8), (9, 9)]


def test_columns_have_names_and_types(ten):
    assert ten.columns("SELECT * FROM {map}") == [
        ("__key", SqlColumnType.INTEGER),
        ("this", SqlColumnType.INTEGER),
    ]
    assert ten.columns("SELECT this AS n, CAST(this AS VARCHAR) AS t, this > 1 AS b FROM {map}") == [
        ("n", SqlColumnType.INTEGER),
        ("t", SqlColumnType.VARCHAR),
        ("b", SqlColumnType.BOOLEAN),
    ]


def test_rows_are_read_by_name_and_position(ten):
    with ten.execute("SELECT __key AS k, this FROM {map} WHERE __key = 7") as result:
        (row,) = list(result)
        assert (row["k"], row["this"], row[0], row[1]) == (7, 7, 7, 7)
        with pytest.raises(ValueError):
            row.get_object("missing")


def test_the_non_blocking_iterator(ten):
    result = ten.execute("SELECT this FROM {map}", cursor_buffer_size=3)
    seen = []
    for future in result.iterator():
        try:
            seen.append(future.result()[0])
        except StopIteration:
            break
    assert sorted(seen) == list(range(10))


KEYS = {
    "__key = 3": [3],
    "__key <> 3": [0, 1, 2, 4, 5, 6, 7, 8, 9],
    "__key != 3 AND this > 7": [8, 9],
    "this > 7": [8, 9],
    "this >= 7 AND this < 9": [7, 8],
    "this BETWEEN 2 AND 4": [2, 3, 4],
    "this NOT BETWEEN 1 AND 8": [0, 9],
    "this IN (1, 5, 77)": [1, 5],
    "this NOT IN (0, 1, 2, 3, 4, 5, 6)": [7, 8, 9],
    "this = 1 OR __key = 2": [1, 2],
    "NOT (this > 1)": [0, 1],
    "this IS NULL": [],
    "this IS NOT NULL AND this < 1": [0],
    "this % 3 = 0": [0, 3, 6, 9],
    "this + __key = 8": [4],
    "-this = -4": [4],
    "(this > 3) IS TRUE AND this < 5": [4],
    "(this > 8) IS NOT FALSE": [9],
    "CASE WHEN this < 2 THEN TRUE ELSE FALSE END": [0, 1],
    "CAST(this AS VARCHAR) LIKE '5%'": [5],
    "ABS(this - 5) <= 1": [4, 5, 6],
    "TRUE AND this = 1": [1],
    "NULL IS NULL AND this = 1": [1],
    "this = NULL": [],
    "this > 2.5 AND this < 4.5": [3, 4],
    "1 = 0": [],
}


@pytest.mark.parametrize("condition", KEYS)
def test_a_condition_selects(ten, condition):
    assert ten.row_set(f"SELECT __key FROM {{map}} WHERE {condition}") == [(key,) for key in KEYS[condition]]


LIKES = {
    "this LIKE 't%'": [2, 3],
    "this LIKE '_o%'": [4],
    "this LIKE 'one'": [1],
    "this NOT LIKE '%e'": [2, 4, 5],
    "this LIKE 'a!%' ESCAPE '!'": [],
    "LOWER(this) = 'five'": [5],
    "UPPER(this) IN ('ONE', 'TWO')": [1, 2],
    "CHAR_LENGTH(this) = 5": [3],
    "this || '!' = 'two!'": [2],
    "SUBSTRING(this FROM 2 FOR 2) = 'wo'": [2],
    "this > 'o'": [1, 2, 3],
}


@pytest.mark.parametrize("condition", LIKES)
def test_a_condition_on_text_selects(words, condition):
    assert words.row_set(f"SELECT __key FROM {{map}} WHERE {condition}") == [(key,) for key in LIKES[condition]]


def test_the_first_page_is_not_all(sql, numbers):
    sql.mapping("int", "int")
    numbers.put_all({i: i * 2 for i in range(100_000)})
    rows = sql.rows("SELECT __key, this FROM {map}", cursor_buffer_size=1000)
    assert len(rows) == 100_000
    assert sorted(rows) == [(i, 2 * i) for i in range(100_000)]
    assert sql.value("SELECT COUNT(*) FROM {map}") == 100_000
    assert sql.value("SELECT SUM(this) FROM {map}") == sum(range(0, 200_000, 2))


@pytest.mark.parametrize("size", [1, 3, 4096, 100_000])
def test_any_size_of_page_gives_all_rows(ten, size):
    assert ten.row_set("SELECT this FROM {map}", cursor_buffer_size=size) == [(i,) for i in range(10)]


def test_rows_in_order_come_in_pages(sql, numbers):
    sql.mapping("int", "int")
    numbers.put_all({i: -i for i in range(5000)})
    rows = sql.rows("SELECT this FROM {map} ORDER BY this", cursor_buffer_size=7)
    assert rows == [(i,) for i in range(-4999, 1)]


def test_a_cursor_that_is_closed_gives_no_more(sql, numbers):
    sql.mapping("int", "int")
    numbers.put_all({i: i for i in range(10_000)})
    result = sql.execute("SELECT this FROM {map}", cursor_buffer_size=10)
    rows = iter(result)
    next(rows)
    result.close().result()
    with pytest.raises(HazelcastSqlError) as raised:
        for _ in rows:
            pass
    assert raised.value._code == _SqlErrorCode.CANCELLED_BY_USER
    assert sql.value("SELECT COUNT(*) FROM {map}") == 10_000


def test_many_cursors_at_once(ten):
    results = [ten.execute("SELECT this FROM {map}", cursor_buffer_size=1) for _ in range(200)]
    iterators = [iter(result) for result in results]
    first = [next(iterator)[0] for iterator in iterators]
    rest = [sorted([head] + [row[0] for row in iterator]) for head, iterator in zip(first, iterators)]
    assert rest == [list(range(10))] * 200


def test_a_client_that_goes_leaves_its_cursors(connect, ten):
    gone = connect()
    for _ in range(50):
        next(iter(gone.sql.execute(f"SELECT * FROM {ten.name}", cursor_buffer_size=1).result()))
    gone.shutdown()
    assert ten.value("SELECT COUNT(*) FROM {map}") == 10


def test_an_endless_stream_gives_what_is_asked_for(sql):
    with sql.execute("SELECT v FROM TABLE(generate_stream(100000))", cursor_buffer_size=10) as result:
        rows = iter(result)
        assert [next(rows)[0] for _ in range(100)] == list(range(100))


def test_a_series(sql):
    assert sql.row_set("SELECT v FROM TABLE(generate_series(1, 5))") == [(i,) for i in range(1, 6)]
    assert sql.row_set("SELECT v * 2 FROM TABLE(generate_series(0, 10, 5))") == [(0,), (10,), (20,)]
    assert sql.columns("SELECT * FROM TABLE(generate_series(1, 5))") == [("v", SqlColumnType.INTEGER)]


def test_a_statement_that_takes_too_long_is_ended(sql):
    error = sql.error("SELECT v FROM TABLE(generate_stream(1))", timeout=1, cursor_buffer_size=100)
    assert error._code == (_SqlErrorCode.GENERIC if REAL_HAZELCAST else _SqlErrorCode.TIMEOUT)


def test_closing_ends_a_waiting_fetch(sql):
    result = sql.execute("SELECT v FROM TABLE(generate_stream(1))", cursor_buffer_size=1000)
    failure = []

    def read():
        try:
            for _ in result:
                pass
        except HazelcastSqlError as error:
            failure.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    result.close().result()
    reader.join(60)
    assert failure[0]._code == _SqlErrorCode.CANCELLED_BY_USER


def test_the_expected_kind_of_result_is_checked(ten):
    insert = "INSERT INTO {map} VALUES (100, 100)"
    assert ten.rows("SELECT COUNT(*) FROM {map}", expected_result_type=SqlExpectedResultType.ROWS) == [(10,)]
    ten.error("SELECT * FROM {map}", expected_result_type=SqlExpectedResultType.UPDATE_COUNT)
    ten.error(insert, expected_result_type=SqlExpectedResultType.ROWS)
    assert ten.update(insert, expected_result_type=SqlExpectedResultType.UPDATE_COUNT) == changed(1)
    assert ten.value("SELECT COUNT(*) FROM {map}") == 11


def test_a_missing_mapping_is_suggested(sql, numbers):
    numbers.put(1, "value")
    if REAL_HAZELCAST:
        error = sql.error("SELECT * FROM {map}")
        assert error._code == _SqlErrorCode.OBJECT_NOT_FOUND
        assert sql.name in error.suggestion and error.suggestion.startswith("CREATE ")
        sql.update(error.suggestion)
    assert sql.rows("SELECT * FROM {map}") == [(1, "value")]


def test_a_map_that_is_not_there_is_not_found(sql):
    error = sql.error("SELECT * FROM {map}")
    assert error._code == _SqlErrorCode.OBJECT_NOT_FOUND
    assert sql.name.strip('"') in str(error)
    assert error.originating_member_uuid is not None


SYNTAX = ["SELEC 1", "SELECT", "SELECT * FROM", "SELECT * FROM {map} WHERE", "INSERT {map}", "SELECT 'open", "?", ";"]


@pytest.mark.parametrize("text", SYNTAX)
def test_what_is_not_sql_is_a_parsing_error(ten, text):
    assert ten.error(text)._code == _SqlErrorCode.PARSING


UNKNOWN = ["SELECT missing FROM {map}", "SELECT * FROM {map} WHERE missing = 1", "SELECT nothing(this) FROM {map}"]


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_names_are_a_parsing_error(ten, text):
    error = ten.error(text)
    assert error._code == _SqlErrorCode.PARSING
    assert "missing" in str(error) or "nothing" in str(error).lower()


DATA = {
    "SELECT 1 / 0": _SqlErrorCode.DATA_EXCEPTION,
    "SELECT this / 0 FROM {map}": _SqlErrorCode.DATA_EXCEPTION,
    "SELECT this / (__key - __key) FROM {map}": _SqlErrorCode.DATA_EXCEPTION,
    "SELECT CAST(this + 300 AS TINYINT) FROM {map}": _SqlErrorCode.DATA_EXCEPTION,
    "SELECT CAST(9223372036854775807 AS BIGINT) + CAST(__key + 1 AS BIGINT) FROM {map}": _SqlErrorCode.DATA_EXCEPTION,
}


@pytest.mark.parametrize("text", DATA)
def test_what_cannot_be_computed_is_an_error_of_the_data(ten, text):
    assert ten.error(text)._code == DATA[text]
    assert ten.value("SELECT COUNT(*) FROM {map}") == 10


def test_the_number_of_parameters_must_match(ten):
    text = "SELECT * FROM {map} WHERE __key > ? AND this > ?"
    assert ten.row_set(text, 5, 7) == [(8, 8), (9, 9)]
    for parameters in ((), (5,), (5, 7, 9)):
        assert ten.error(text, *parameters)._code == _SqlErrorCode.DATA_EXCEPTION
    assert ten.error("SELECT * FROM {map}", 5)._code == _SqlErrorCode.DATA_EXCEPTION


def test_a_parameter_of_the_wrong_type_is_an_error(ten):
    text = "SELECT * FROM {map} WHERE this = ?"
    assert ten.error(text, HazelcastJsonValue("{}"))._code == _SqlErrorCode.DATA_EXCEPTION
    assert ten.error(text, "five")._code == _SqlErrorCode.DATA_EXCEPTION
    assert ten.rows("SELECT this FROM {map} WHERE this = ?", 5) == [(5,)]


def test_the_same_statement_with_other_parameters(ten):
    for i in range(10):
        assert ten.rows("SELECT this FROM {map} WHERE __key = ?", i) == [(i,)]
    assert ten.rows("SELECT this FROM {map} WHERE __key = ?", 10) == []


def test_insert_adds_and_refuses_what_is_there(ten, numbers):
    assert ten.update("INSERT INTO {map} VALUES (20, 1), (21, 2)") == changed(2)
    assert (numbers.get(20), numbers.get(21)) == (1, 2)
    ten.error("INSERT INTO {map} VALUES (1, 77)")
    assert numbers.get(1) == 1
    ten.error("INSERT INTO {map}(this) VALUES (77)")
    ten.error("INSERT INTO {map}(__key, this) VALUES (NULL, 77)")


def test_insert_takes_columns_in_any_order_and_parameters(ten, numbers):
    ten.update("INSERT INTO {map}(this, __key) VALUES (?, ?)", 7, 30)
    ten.update("INSERT INTO {map} (__key, this) VALUES (?, ? + 1)", 31, 7)
    assert (numbers.get(30), numbers.get(31)) == (7, 8)


def test_sink_replaces(ten, numbers):
    assert ten.update("SINK INTO {map} VALUES (1, 77), (40, 40)") == changed(2)
    assert (numbers.get(1), numbers.get(40)) == (77, 40)
    ten.update("SINK INTO {map} (__key, this) SELECT v, v * 100 FROM TABLE(generate_series(1, 3))")
    assert [numbers.get(i) for i in (1, 2, 3)] == [100, 200, 300]
    ten.update("SINK INTO {map} SELECT __key + 1000, this FROM {map} WHERE __key < 5")
    assert numbers.get(1003) == 300


def test_update_changes_what_is_selected(ten, numbers):
    assert ten.update("UPDATE {map} SET this = this + 100 WHERE this > 7") == changed(2)
    assert sorted(numbers.values()) == [0, 1, 2, 3, 4, 5, 6, 7, 108, 109]
    ten.update("UPDATE {map} SET this = ? WHERE __key = ?", 55, 5)
    assert numbers.get(5) == 55
    ten.update("UPDATE {map} SET this = __key * 2")
    assert sorted(numbers.values()) == list(range(0, 20, 2))
    ten.error("UPDATE {map} SET __key = 1")
    ten.error("UPDATE {map} SET missing = 1")


def test_delete_removes_what_is_selected(ten, numbers):
    assert ten.update("DELETE FROM {map} WHERE __key = 3") == changed(1)
    assert sorted(numbers.key_set()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ten.update("DELETE FROM {map} WHERE this > ? OR this = 0", 6) == changed(4)
    assert sorted(numbers.key_set()) == [1, 2, 4, 5, 6]
    ten.update("DELETE FROM {map}")
    assert numbers.size() == 0


@filbert_only
def test_update_and_delete_take_subqueries(ten, numbers):
    ten.update("UPDATE {map} SET this = 0 WHERE __key IN (SELECT __key FROM {map} WHERE this > 7)")
    assert sorted(numbers.values()) == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]
    ten.update("DELETE FROM {map} WHERE this < (SELECT MAX(this) FROM {map})")
    assert numbers.key_set() == [7]


def test_null_values_are_refused(words):
    words.error("INSERT INTO {map} VALUES (10, NULL)")
    words.error("UPDATE {map} SET this = NULL WHERE __key = 1")
    assert words.value("SELECT this FROM {map} WHERE __key = 1") == "one"


def test_mappings_are_made_replaced_shown_and_dropped(sql):
    create = "MAPPING {map} (__key INT, this VARCHAR) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='varchar')"
    assert sql.update("CREATE " + create) == 0
    sql.error("CREATE " + create)
    sql.update("CREATE " + create.replace("MAPPING", "MAPPING IF NOT EXISTS", 1))
    sql.update("CREATE OR REPLACE " + create)
    assert (sql.name.strip('"'),) in sql.rows("SHOW MAPPINGS")
    sql.update("DROP MAPPING {map}")
    assert (sql.name.strip('"'),) not in sql.rows("SHOW MAPPINGS")
    sql.error("DROP MAPPING {map}")
    sql.update("DROP MAPPING IF EXISTS {map}")


def test_a_mapping_has_a_name_of_its_own(ten):
    other = ten.name.replace('"', "") + "-other"
    ten.update(
        f'CREATE MAPPING "{other}" EXTERNAL NAME {{map}} (__key INT, this INT)'
        " TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')"
    )
    assert ten.rows(f'SELECT * FROM "{other}" WHERE __key = 4') == [(4, 4)]
    ten.update(f'DROP MAPPING "{other}"')
    assert ten.value("SELECT COUNT(*) FROM {map}") == 10


BROKEN_MAPPINGS = [
    "CREATE MAPPING {map} TYPE IMap",
    "CREATE MAPPING {map} TYPE Nothing OPTIONS ('keyFormat'='int', 'valueFormat'='int')",
    "CREATE MAPPING {map} TYPE IMap OPTIONS ('keyFormat'='int')",
    "CREATE MAPPING {map} TYPE IMap OPTIONS ('keyFormat'='nothing', 'valueFormat'='int')",
    "CREATE MAPPING {map} (__key INT, __key INT) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')",
    "CREATE MAPPING {map} (__key VARCHAR, this INT) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')",
    "CREATE MAPPING {map} (__key NOTHING) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')",
    "CREATE MAPPING {map} TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='portable')",
    "CREATE MAPPING {map} TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='compact')",
]


@pytest.mark.parametrize("text", BROKEN_MAPPINGS)
def test_a_broken_mapping_is_refused(sql, text):
    sql.error(text)
    assert (sql.name.strip('"'),) not in sql.rows("SHOW MAPPINGS")


def test_views(ten):
    view = ten.name.replace('"', "") + "-view"
    ten.update(f'CREATE VIEW "{view}" AS SELECT __key AS k, this * 2 AS twice FROM {{map}} WHERE this > 5')
    assert ten.row_set(f'SELECT * FROM "{view}"') == [(6, 12), (7, 14), (8, 16), (9, 18)]
    assert ten.rows(f'SELECT k FROM "{view}" WHERE twice = 14') == [(7,)]
    assert (view,) in ten.rows("SHOW VIEWS")
    ten.error(f'CREATE VIEW "{view}" AS SELECT 1')
    ten.update(f'CREATE OR REPLACE VIEW "{view}" AS SELECT __key FROM {{map}} WHERE this = 1')
    assert ten.rows(f'SELECT __key FROM "{view}"') == [(1,)]
    ten.update(f'DROP VIEW "{view}"')
    assert (view,) not in ten.rows("SHOW VIEWS")
    ten.error(f'SELECT 1 FROM "{view}"')
    ten.update(f'DROP VIEW IF EXISTS "{view}"')


def test_the_information_schema(ten):
    name = ten.name.strip('"')
    assert (name,) in ten.rows("SELECT table_name FROM information_schema.mappings")
    columns = ten.row_set(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?", name
    )
    assert columns == [("__key", "INTEGER"), ("this", "INTEGER")]
    assert ten.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = ?", name) == 1


def test_show(sql):
    assert sql.rows("SHOW JOBS") == []
    sql.rows("SHOW MAPPINGS")
    sql.rows("SHOW VIEWS")


def test_indexes_are_made_by_statement(ten, numbers):
    index = ten.name.replace('"', "") + "-index"
    ten.update(f'CREATE INDEX "{index}" ON {{map}} (this) TYPE SORTED')
    ten.error(f'CREATE INDEX "{index}" ON {{map}} (this) TYPE SORTED')
    ten.update(f'CREATE INDEX IF NOT EXISTS "{index}" ON {{map}} (this) TYPE SORTED')
    assert ten.row_set("SELECT this FROM {map} WHERE this > 7") == [(8,), (9,)]
    numbers.put(50, 50)
    assert ten.rows("SELECT this FROM {map} WHERE this = 50") == [(50,)]
    assert ten.rows("SELECT this FROM {map} ORDER BY this DESC LIMIT 2") == [(50,), (9,)]
    ten.update(f'CREATE INDEX "{index}-hash" ON {{map}} (this) TYPE HASH')
    assert ten.rows("SELECT this FROM {map} WHERE this = 4") == [(4,)]


def test_what_changes_is_seen_at_once(ten, numbers):
    numbers.put(5, 500)
    assert ten.value("SELECT this FROM {map} WHERE __key = 5") == 500
    numbers.remove(5)
    assert ten.rows("SELECT this FROM {map} WHERE __key = 5") == []
    numbers.clear()
    assert ten.value("SELECT COUNT(*) FROM {map}") == 0


def test_a_value_of_another_type_is_an_error_that_leaves_the_rest(ten, numbers):
    numbers.put(99, "text")
    assert ten.error("SELECT this FROM {map}")._code == _SqlErrorCode.DATA_EXCEPTION
    assert ten.rows("SELECT this FROM {map} WHERE __key = 5") == [(5,)]


def test_statements_at_once(ten):
    futures = [ten.client.sql.execute(f"SELECT this FROM {ten.name} WHERE this >= ?", i % 10) for i in range(200)]
    for i, future in enumerate(futures):
        assert len(list(future.result())) == 10 - i % 10


def test_expired_entries_are_not_seen(sql, numbers):
    sql.mapping("varchar", "int")
    numbers.put("a", 1, ttl=1)
    numbers.put("b", 2)
    eventually(lambda: sql.rows("SELECT __key FROM {map}") == [("b",)])
    assert sql.value("SELECT COUNT(*) FROM {map}") == 1


@filbert_only
def test_explain_tells_the_plan(ten):
    text = " ".join(str(row) for row in ten.rows("EXPLAIN SELECT this FROM {map} WHERE this > 5"))
    assert ten.name.strip('"') in text


def test_a_statement_of_a_megabyte(ten):
    many = ", ".join(str(i) for i in range(5, 20_005))
    assert ten.row_set(f"SELECT this FROM {{map}} WHERE this IN ({many})") == [(i,) for i in range(5, 10)]
