"""psycopg 3: statements, parameters as text and as binary, transactions, cursors, pipelines, COPY, cancelling."""

import datetime
import io
import threading
import time

import psycopg
import pytest

from postgres_tools import TYPES, dsn


@pytest.fixture
def connection(member):
    with psycopg.connect(dsn(member), autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(connection, name):
    """Makes a table of the test's own and tells its name."""
    names = []

    def make(columns):
        plain = f'"{name}-{len(names)}"'
        connection.execute(f"CREATE TABLE {plain} ({columns})")
        names.append(plain)
        return plain

    yield make
    for plain in names:
        connection.execute(f"DROP TABLE {plain}")


@pytest.fixture
def numbers(connection, table):
    """A table of 5,000 numbers."""
    numbers = table("id int PRIMARY KEY, text text")
    with connection.cursor().copy(f"COPY {numbers} FROM STDIN") as copy:
        for number in range(5000):
            copy.write_row((number, f"row {number}"))
    return numbers


def test_a_connection_knows_its_server(connection):
    assert connection.info.server_version == 140000
    assert connection.info.encoding == "utf-8"
    assert connection.info.timezone.utcoffset(None) == datetime.timedelta(0)
    assert connection.info.parameter_status("standard_conforming_strings") == "on"
    assert connection.info.dbname == "filbert"
    assert connection.info.backend_pid > 0


def test_statements_without_a_table(connection):
    assert connection.execute("SELECT 1, 'x', NULL, true").fetchone() == (1, "x", None, True)
    assert connection.execute("VALUES (1, 'a'), (2, 'b')").fetchall() == [(1, "a"), (2, "b")]
    assert connection.execute("SELECT %s::int + 1", (41,)).fetchone() == (42,)
    assert connection.execute("SELECT 1 AS one").description[0].name == "one"
    assert connection.execute("SELECT 1 WHERE false").fetchall() == []


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_come_back_as_they_went(connection, table, kind, binary):
    values = table(f"id int PRIMARY KEY, value {kind}")
    cursor = connection.cursor(binary=binary)
    form = "%b" if binary else "%t"
    for number, value in enumerate([*TYPES[kind], None]):
        cursor.execute(f"INSERT INTO {values} VALUES ({form}, {form})", (number, value))
        assert cursor.rowcount == 1
    found = cursor.execute(f"SELECT value FROM {values} ORDER BY id").fetchall()
    assert [value for (value,) in found] == [*TYPES[kind], None]
    assert cursor.statusmessage == f"SELECT {len(TYPES[kind]) + 1}"


@pytest.mark.parametrize("kind", TYPES)
def test_a_parameter_finds_its_row(connection, table, kind):
    if kind.endswith("[]") or kind in ("interval", "bytea"):
        pytest.skip("not compared")
    values = table(f"id int PRIMARY KEY, value {kind}")
    for number, value in enumerate(TYPES[kind]):
        connection.execute(f"INSERT INTO {values} VALUES (%s, %s)", (number, value))
    for number, value in enumerate(TYPES[kind]):
        assert connection.execute(f"SELECT id FROM {values} WHERE value = %s", (value,)).fetchall() == [(number,)]


def test_json_is_written_and_read(connection, table):
    from psycopg.types.json import Json, Jsonb

    documents = table("id int PRIMARY KEY, document json")
    connection.execute(f"INSERT INTO {documents} VALUES (1, %s), (2, %s)", (Json({"a": [1, "ü"]}), Jsonb({"b": None})))
    found = connection.execute(f"SELECT document FROM {documents} ORDER BY id").fetchall()
    assert found == [({"a": [1, "ü"]},), ({"b": None},)]


def test_changes_tell_how_many_rows_they_changed(connection, table):
    people = table("id int PRIMARY KEY, name text")
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO {people} VALUES (%s, %s)", [(n, f"name {n}") for n in range(10)])
    assert cursor.rowcount == 10
    assert cursor.execute(f"UPDATE {people} SET name = 'x' WHERE id < 3").statusmessage == "UPDATE 3"
    assert cursor.execute(f"DELETE FROM {people} WHERE id >= 8").statusmessage == "DELETE 2"
    returned = cursor.execute(f"INSERT INTO {people} VALUES (20, 'y') RETURNING id, name").fetchall()
    assert (returned, cursor.statusmessage) == ([(20, "y")], "INSERT 0 1")


def test_errors_have_sqlstate_and_position(connection):
    with pytest.raises(psycopg.errors.SyntaxError) as raised:
        connection.execute("SELECT 1 FROM")
    assert raised.value.diag.severity == "ERROR"
    with pytest.raises(psycopg.errors.UndefinedTable) as raised:
        connection.execute("SELECT * FROM nothing_of_this_name")
    assert raised.value.sqlstate == "42P01"
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT nothing FROM (VALUES (1)) AS t (x)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0").fetchall()
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute("SELECT %s::int", ("x",)).fetchall()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_duplicate_key_is_a_unique_violation(connection, table):
    people = table("id int PRIMARY KEY")
    connection.execute(f"INSERT INTO {people} VALUES (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(f"INSERT INTO {people} VALUES (1)")
    connection.execute(f"INSERT INTO {people} VALUES (1) ON CONFLICT DO NOTHING")


def test_transactions_have_the_states_of_postgresql(member):
    with psycopg.connect(dsn(member)) as connection:
        status = connection.info
        assert status.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.execute("SELECT 1")
        assert status.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("nonsense")
        assert status.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert status.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with connection.transaction():
            with pytest.raises(psycopg.errors.SyntaxError), connection.transaction():
                connection.execute("nonsense")
            assert connection.execute("SELECT 2").fetchone() == (2,)


def test_a_list_of_keys_is_one_parameter(connection, table):
    words = table("id int PRIMARY KEY, word text")
    connection.execute(f"INSERT INTO {words} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    found = connection.execute(f"SELECT word FROM {words} WHERE id = ANY(%s) ORDER BY id", ([3, 1, 9],)).fetchall()
    assert found == [("a",), ("c",)]
    found = connection.execute(f"SELECT id FROM {words} WHERE word <> ALL(%s)", (["a", "c"],)).fetchall()
    assert found == [(2,)]


def test_prepared_statements_are_used_again(connection):
    for number in range(10):
        found = connection.execute("SELECT %s::int * 2", (number,), prepare=True).fetchone()
        assert found == (number * 2,)
    connection.execute("DEALLOCATE ALL")
    connection.execute("PREPARE twice (int) AS SELECT $1 * 2")
    assert connection.execute("EXECUTE twice (4 + 1)").fetchone() == (10,)


def test_a_prepared_statement_sees_its_table_change(connection, table):
    people = table("id int PRIMARY KEY, name text")
    for _ in range(3):
        connection.execute(f"SELECT * FROM {people}", prepare=True).fetchall()
    connection.execute(f"ALTER TABLE {people} ADD COLUMN age int")
    connection.execute(f"INSERT INTO {people} VALUES (1, 'a', 5)")
    assert connection.execute(f"SELECT * FROM {people}", prepare=True).fetchall() == [(1, "a", 5)]
    assert connection.execute(f"SELECT * FROM {people}", prepare=False).fetchall() == [(1, "a", 5)]


def test_a_prepared_change_that_would_return_other_columns_changes_nothing(member, connection, table):
    people = table("id int PRIMARY KEY, name text")
    insert = f"INSERT INTO {people} VALUES (%s, 'a') RETURNING *"
    for number in range(3):
        connection.execute(insert, (number,), prepare=True)
    with psycopg.connect(dsn(member), autocommit=True) as other:
        other.execute(f"ALTER TABLE {people} ADD COLUMN age int")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
        connection.execute(insert, (3,), prepare=True)
    assert connection.execute(f"SELECT count(*) FROM {people}").fetchone() == (3,)
    assert connection.execute(insert, (4,), prepare=False).fetchone() == (4, "a", None)


def test_a_server_side_cursor_reads_in_parts(member, connection, numbers):
    with psycopg.connect(dsn(member)) as other, other.cursor(name="c") as cursor:
        cursor.itersize = 700
        cursor.execute(f"SELECT id FROM {numbers} WHERE id < %s ORDER BY id", (4000,))
        assert cursor.fetchone() == (0,)
        assert cursor.fetchmany(2) == [(1,), (2,)]
        assert [number for (number,) in cursor] == list(range(3, 4000))


def test_a_cursor_outlives_its_transaction_if_it_is_held(connection, numbers):
    connection.execute(f"DECLARE held CURSOR WITH HOLD FOR SELECT id FROM {numbers} ORDER BY id")
    assert connection.execute("FETCH 2 FROM held").fetchall() == [(0,), (1,)]
    assert connection.execute("MOVE 2 IN held").statusmessage == "MOVE 2"
    assert connection.execute("FETCH held").fetchall() == [(4,)]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        connection.execute("FETCH BACKWARD 1 FROM held")
    connection.execute("CLOSE held")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("FETCH held")


def test_rows_stream_one_by_one(connection, numbers):
    stream = connection.cursor().stream(f"SELECT id, text FROM {numbers} ORDER BY id")
    assert sum(1 for number, text in stream if text == f"row {number}") == 5000


def test_a_pipeline_answers_in_order(connection):
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (number,)) for number in range(100)]
    assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(100)]
    with pytest.raises(psycopg.errors.SyntaxError), connection.pipeline():
        connection.execute("SELECT 1")
        connection.execute("nonsense")
        connection.execute("SELECT 2")
    assert connection.execute("SELECT 3").fetchone() == (3,)


def test_rows_are_copied_in_as_text_and_out(connection, table):
    people = table("id int PRIMARY KEY, name text, score double precision, born date")
    rows = [(1, "Ann\t\\N\n", 1.5, datetime.date(2000, 1, 2)), (2, None, None, None), (3, "", -0.1, None)]
    with connection.cursor().copy(f"COPY {people} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    assert connection.execute(f"SELECT * FROM {people} ORDER BY id").fetchall() == rows
    with connection.cursor().copy(f"COPY (SELECT * FROM {people} ORDER BY id) TO STDOUT") as copy:
        copy.set_types(["int4", "text", "float8", "date"])
        assert list(copy.rows()) == rows


def test_rows_are_copied_in_as_csv_and_out(connection, table):
    people = table("id int PRIMARY KEY, name text")
    with connection.cursor().copy(f"COPY {people} (name, id) FROM STDIN (FORMAT csv, HEADER, DELIMITER ';')") as copy:
        for part in 'name;id\n"a;""b""\nc";1\n;2\n"";3\n':
            copy.write(part)
    assert connection.execute(f"SELECT * FROM {people} ORDER BY id").fetchall() == [(1, 'a;"b"\nc'), (2, None), (3, "")]
    out = io.BytesIO()
    with connection.cursor().copy(f"COPY (SELECT * FROM {people} ORDER BY id) TO STDOUT WITH CSV HEADER") as copy:
        for data in copy:
            out.write(data)
    assert out.getvalue().decode() == 'id,name\n1,"a;""b""\nc"\n2,\n3,""\n'


def test_rows_are_copied_in_as_binary_and_out(connection, table):
    values = table("id int PRIMARY KEY, name text, amount numeric(10, 2), moment timestamptz, tags text[]")
    types = ["int4", "text", "numeric", "timestamptz", "text[]"]
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)
    rows = [(1, "ü", TYPES["numeric(20, 4)"][2].quantize(TYPES["numeric(20, 4)"][2]), moment, ["a", None]), (2, None, None, None, None)]
    with connection.cursor().copy(f"COPY {values} FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
    with connection.cursor().copy(f"COPY (SELECT * FROM {values} ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(types)
        assert list(copy.rows()) == rows


def test_copies_have_identities_and_no_generated_columns(connection, table):
    columns = "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, net int, gross int GENERATED ALWAYS AS (net * 2) STORED"
    source, target = table(columns), table(columns)
    connection.execute(f"INSERT INTO {source} (net) VALUES (10), (20)")
    connection.execute(f"DELETE FROM {source} WHERE net = 10")
    with connection.cursor().copy(f"COPY {source} TO STDOUT") as copy:
        text = b"".join(copy)
    assert text == b"2\t20\n"
    for columns in ("", "(id, net)"):
        with connection.cursor().copy(f"COPY {target} {columns} FROM STDIN") as copy:
            copy.write(text)
        assert connection.execute(f"SELECT id, net, gross FROM {target}").fetchall() == [(2, 20, 40)]
        connection.execute(f"DELETE FROM {target}")
    with pytest.raises(psycopg.errors.InvalidColumnReference):
        with connection.cursor().copy(f"COPY {target} (id, gross) FROM STDIN") as copy:
            copy.write(text)


def test_no_row_of_a_copy_that_fails_is_there(member, connection, table):
    people = table("id int PRIMARY KEY, name text")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as raised:
        with connection.cursor().copy(f"COPY {people} FROM STDIN") as copy:
            copy.write("1\ta\n2\tb\nthree\tc\n")
    assert raised.value.diag.context == "COPY, line 3, column id"
    with pytest.raises(ZeroDivisionError), connection.cursor().copy(f"COPY {people} FROM STDIN") as copy:
        copy.write("1\ta\n")
        1 / 0
    leaving = psycopg.connect(dsn(member), autocommit=True)
    with pytest.raises(psycopg.OperationalError), leaving.cursor().copy(f"COPY {people} FROM STDIN") as copy:
        copy.write("".join(f"{number}\tx\n" for number in range(100_000)))
        leaving.pgconn.finish()
        raise psycopg.OperationalError("left")
    time.sleep(0.2)
    assert connection.execute(f"SELECT count(*) FROM {people}").fetchone() == (0,)


# Columns with values that a format may have to escape, as literals of PostgreSQL.
COPIED = {
    "boolean": ["true"],
    "smallint": ["-32768"],
    "integer": ["7"],
    "bigint": ["9223372036854775807"],
    "real": ["'NaN'", "1.5"],
    "double precision": ["'-Infinity'", "0.1"],
    "numeric": ["1.50"],
    "numeric(10, 2)": ["-12345678.90"],
    "text": [r"E'\\N'", "''", r"E'\\.'", r"E'a\tb\nc\rd\\'", "'\"quoted\", ''it'''", "'ü€😀'", r"E'\x01\x7f'", "'NULL'", "' '"],
    "varchar(5)": ["'a,b'"],
    "char(5)": ["'ab'"],
    "date": ["'2024-02-29'"],
    "time": ["'23:59:59.999999'"],
    "timestamp": ["'1969-12-31 23:59:59.999999'"],
    "timestamptz": ["'2024-01-01 00:00:00+05'"],
    "interval": ["'1 year -2 days 00:00:01'"],
    "uuid": ["'67e55044-10b1-426f-9247-bb680e5fe0c8'"],
    "json": [r"""'{"a" : "x\ny"}'"""],
    "jsonb": ["""'{"a": [1, null, "b"]}'""", "'\"text\"'", "'null'"],
    "bytea": [r"'\x00ff5c0a09'", "''"],
    "integer[]": ["'{}'", "'{1,NULL,3}'"],
    "text[]": [r"""array['', 'a b', null, 'd"e', '{f,g}', 'NULL', E'\\N']"""],
    "numeric[]": ["'{1.50,-2}'"],
    "uuid[]": ["'{67e55044-10b1-426f-9247-bb680e5fe0c8}'"],
    "jsonb[]": ["""array['{"a": 1}'::jsonb]"""],
    "timestamptz[]": ["'{2024-01-01 00:00:00+00}'"],
}
FORMATS = ["(FORMAT text)", "(FORMAT csv)", "(FORMAT binary)", "(FORMAT csv, NULL 'NULL')", "(DELIMITER '|')"]


@pytest.mark.parametrize("how", FORMATS)
def test_a_copy_of_every_type_comes_back_as_it_went(connection, table, how):
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(COPIED))
    name = table(f"id int PRIMARY KEY, {columns}")
    for row in range(max(map(len, COPIED.values())) + 1):
        values = ", ".join(values[row] if row < len(values) else "NULL" for values in COPIED.values())
        connection.execute(f"INSERT INTO {name} VALUES ({row}, {values})")
    shown = ", ".join(f"c{at}::text" for at in range(len(COPIED)))
    before = connection.execute(f"SELECT id, {shown} FROM {name} ORDER BY id").fetchall()
    with connection.cursor().copy(f"COPY {name} TO STDOUT {how}") as copy:
        rows = b"".join(bytes(part) for part in copy)
    connection.execute(f"DELETE FROM {name}")
    with connection.cursor().copy(f"COPY {name} FROM STDIN {how}") as copy:
        copy.write(rows)
    assert connection.execute(f"SELECT id, {shown} FROM {name} ORDER BY id").fetchall() == before


def test_rows_of_a_copy_are_read_by_the_driver(connection, table):
    name = table("id int PRIMARY KEY, t text")
    texts = ["\\N", "N", "\\", "\\\\N", "a\tb", "", None]
    connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s)", list(enumerate(texts)))
    with connection.cursor().copy(f"COPY (SELECT t FROM {name} ORDER BY id) TO STDOUT") as copy:
        assert [text for (text,) in copy.rows()] == texts


@pytest.mark.parametrize("zero", ["\0", r"\0", r"\000", r"\x0"])
def test_no_text_has_a_zero_byte(connection, table, zero):
    name = table("id int PRIMARY KEY, t text")
    with pytest.raises(psycopg.errors.CharacterNotInRepertoire):
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            copy.write(f"1\ta{zero}\n")


def test_violated_constraints_are_named(connection, table):
    name = table("id int PRIMARY KEY, name text NOT NULL, n int CONSTRAINT positive CHECK (n > 0)")
    plain = name.strip('"')
    connection.execute(f"INSERT INTO {name} VALUES (1, 'a', 1)")

    def violated(statement):
        with pytest.raises(psycopg.IntegrityError) as raised:
            connection.execute(statement)
        found = raised.value.diag
        assert (found.schema_name, found.table_name) == ("public", plain)
        return found.sqlstate, found.constraint_name, found.column_name, found.message_detail

    of_key = ("23505", f"{plain}_pkey", None, "Key (id)=(1) already exists.")
    assert violated(f"INSERT INTO {name} VALUES (1, 'b', 2)") == of_key
    assert violated(f"INSERT INTO {name} VALUES (2, 'b', 2), (1, 'b', 2)") == of_key
    of_column = ("23502", None, "name", "Failing row contains (2, null, 3).")
    assert violated(f"INSERT INTO {name} VALUES (2, NULL, 3)") == of_column
    of_check = ("23514", "positive", None)
    assert violated(f"INSERT INTO {name} VALUES (2, 'b', -1)") == (*of_check, "Failing row contains (2, b, -1).")
    assert violated(f"UPDATE {name} SET n = 0") == (*of_check, "Failing row contains (1, a, 0).")


def test_a_statement_that_runs_is_cancelled(connection, numbers):
    timer = threading.Timer(0.5, connection.cancel_safe)
    timer.start()
    endless = f"SELECT count(*) FROM {numbers} a, {numbers} b, {numbers} c WHERE a.id + b.id + c.id < 0"
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(endless).fetchall()
    timer.join()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_settings_are_set_shown_and_told(connection):
    connection.execute("SET application_name = 'tests'")
    assert connection.info.parameter_status("application_name") == "tests"
    assert connection.execute("SHOW application_name").fetchone() == ("tests",)
    connection.execute("SELECT set_config('application_name', 'other', false)")
    assert connection.info.parameter_status("application_name") == "other"
    connection.execute("RESET application_name")
    assert connection.execute("SHOW server_version").fetchone()[0].startswith("14.0")


def test_a_large_result_and_large_values(connection):
    text = "x" * 3_000_000
    assert connection.execute("SELECT %s::text", (text,)).fetchone() == (text,)


def test_many_connections_at_once(member):
    connections = [psycopg.connect(dsn(member), autocommit=True) for _ in range(200)]
    for number, connection in enumerate(connections):
        assert connection.execute("SELECT %s::int", (number,)).fetchone() == (number,)
    for connection in connections:
        connection.close()


def test_dates_and_timestamps_as_parameters_have_their_common_type(member):
    first, later = datetime.date(1, 1, 1), datetime.datetime(2024, 2, 29, 12, 30)
    midnight = datetime.datetime(1, 1, 1)
    with psycopg.connect(dsn(member), autocommit=True) as session:
        assert session.execute("values (1, %s), (2, %s)", (later, first)).fetchall() == [(1, later), (2, midnight)]
        assert session.execute("values (%s), (%s)", (first, later)).fetchall() == [(midnight,), (later,)]
        assert session.execute("values (%s::timestamp), (%s::date)", (later, first)).fetchall() == [(later,), (midnight,)]
        assert session.execute("select array[%s, %s]", (later, first)).fetchall() == [([later, midnight],)]
        assert session.execute("select %s in (%s, %s)", (later, first, later)).fetchall() == [(True,)]
        assert session.execute("select greatest(%s, %s)", (first, later)).fetchall() == [(later,)]


@pytest.mark.parametrize("column", ["p numeric(10,2)", "g numeric(20,1)", "k numeric(20,6)", "q numeric(38,10)", "w numeric"])
def test_numbers_without_a_declared_type_keep_their_digits(connection, table, column):
    """psycopg sends a text without a type: the operator beside it decides the type, not the digits."""
    numbers = table(f"id int PRIMARY KEY, {column}")
    name = column.split()[0]
    connection.execute(f"INSERT INTO {numbers} VALUES (1, 4.5), (2, -2), (3, NULL)")
    forms = [f"{name} {operator} {{}}" for operator in "+ - * / % = < >= <>".split()]
    forms += [f"{{}} {operator} {name}" for operator in "+ - * / % = < >= <>".split()]
    forms += [f"case {name} when {{}} then 1 else 0 end", f"{name} in ({{}}, 5)", f"{name} between {{}} and 9"]
    forms += [f"coalesce({name}, {{}})", f"greatest({name}, {{}})"]
    forms += [f"abs({name} * {{}})", f"sum({name} * {{}}) over ()", f"1.5 * {{}} + {name}", f"{name} * {{0}} * {{0}}"]
    for form in forms:
        for number in ["1", "2.5", "4.501", "1.255", "0.123456789", "-1000"]:
            declared = form.format(f"'{number}'::numeric")
            expected = connection.execute(f"SELECT id, {declared} FROM {numbers} ORDER BY id").fetchall()
            given = [number] * form.count("{")
            undeclared = form.replace("{0}", "{}").format(*["%s"] * len(given)).replace(" % ", " %% ")
            found = connection.execute(f"SELECT id, {undeclared} FROM {numbers} ORDER BY id", given).fetchall()
            assert found == expected, (undeclared, number)
    connection.execute(f"UPDATE {numbers} SET {name} = {name} * %s WHERE id = 1", ["1.255"])
    stored = connection.execute(f"SELECT {name} = (4.5 * 1.255)::{column.split()[1]} FROM {numbers} WHERE id = 1")
    assert stored.fetchone() == (True,)
