"""psql: statements, backslash commands, COPY from and to files, errors with their place."""

import time

import pytest

from postgres_tools import psql, rows


@pytest.fixture
def people(member, name):
    plain = name.replace("-", "_")
    psql(
        member,
        f"CREATE TABLE {plain} (id int PRIMARY KEY, name text NOT NULL, score double precision, born date)",
        f"INSERT INTO {plain} VALUES (1, 'Ann', 1.5, '2000-01-02'), (2, 'Bob', NULL, NULL)",
    )
    yield plain
    psql(member, f"DROP TABLE {plain}")


def test_rows_are_shown(member, people):
    shown = psql(member, f"SELECT * FROM {people} ORDER BY id").stdout
    assert shown.splitlines() == [
        " id | name | score |    born    ",
        "----+------+-------+------------",
        "  1 | Ann  |   1.5 | 2000-01-02",
        "  2 | Bob  |       | ",
        "(2 rows)",
        "",
    ]


def test_a_script_runs_statement_by_statement(member, people):
    script = f"""
        BEGIN;
        INSERT INTO {people} (id, name) VALUES (3, 'it''s; here'); -- a comment; with a semicolon
        /* another; one */
        UPDATE {people} SET score = 2 WHERE id = 3;
        COMMIT;
        SELECT name, score FROM {people} WHERE id = 3;
    """
    done = psql(member, stdin=script, arguments=["-A", "-t"])
    assert done.stdout.splitlines() == ["BEGIN", "INSERT 0 1", "UPDATE 1", "COMMIT", "it's; here|2"]
    assert rows(member, f"INSERT INTO {people} (id, name) VALUES (4, 'x'); SELECT 1; SELECT 2") == ["INSERT 0 1", "1", "2"]


def test_tables_are_described(member, people):
    listed = psql(member, "\\dt").stdout
    assert people in listed and "table" in listed
    described = psql(member, f"\\d {people}").stdout
    for column in ("id", "name", "score", "born"):
        assert f" {column} " in described
    assert "double precision" in described and "not null" in described and "PRIMARY KEY" in described


@pytest.mark.parametrize("command", ["\\d", "\\d+", "\\dt", "\\dt+", "\\dv", "\\di", "\\ds", "\\dn", "\\df", "\\dT", "\\l", "\\du", "\\dp", "\\dx", "\\conninfo", "\\encoding", "\\timing"])
def test_backslash_commands_answer(member, people, command):
    assert "ERROR" not in psql(member, command).stderr


def test_copy_reads_and_writes_files(member, people, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,name,score,born\n10,Eve,2.5,2001-02-03\n11,\"Joe, Jr.\",,\n")
    done = psql(member, f"\\copy {people} FROM '{path}' WITH (FORMAT csv, HEADER)")
    assert done.stdout == "COPY 2\n"
    out = tmp_path / "out.txt"
    psql(member, f"\\copy (SELECT id, name, score FROM {people} WHERE id >= 10 ORDER BY id) TO '{out}'")
    assert out.read_text() == "10\tEve\t2.5\n11\tJoe, Jr.\t\\N\n"
    done = psql(member, stdin=f"COPY {people} (id, name) FROM STDIN;\n20\tKim\n\\.\nSELECT count(*) FROM {people};\n", arguments=["-A", "-t"])
    assert done.stdout.splitlines() == ["COPY 1", "5"]


def test_an_error_shows_its_place(member):
    done = psql(member, "SELECT 1 FROM nothing_of_this_name", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR:")
    done = psql(member, "SELECT 1; SELEC 2", arguments=["-v", "VERBOSITY=verbose"], check=False)
    assert "42601" in done.stderr


def test_gdesc_and_prepared_statements(member):
    shown = psql(member, stdin="SELECT 1::int AS a, 'x'::text AS b \\gdesc\n", arguments=["-A", "-t"]).stdout
    assert shown.splitlines() == ["a|integer", "b|text"]
    done = psql(member, stdin="PREPARE p (int) AS SELECT $1 + 1;\nEXECUTE p (41);\n", arguments=["-A", "-t"])
    assert done.stdout.splitlines() == ["PREPARE", "42"]


def test_fetch_count_reads_in_parts(member, people):
    script = f"\\set FETCH_COUNT 1\nSELECT id FROM {people} ORDER BY id;\n"
    assert psql(member, stdin=script, arguments=["-A", "-t"]).stdout.splitlines() == ["1", "2"]


def test_explain_and_show(member, people):
    assert psql(member, f"EXPLAIN SELECT * FROM {people}").stdout.count("\n") > 3
    assert rows(member, "SHOW server_version")[0].startswith("14.0")
    assert rows(member, "SHOW TimeZone") == ["UTC"]
    assert rows(member, "SELECT current_database(), current_user") == ["filbert|ann"]
    version = rows(member, "SELECT version()")[0]
    assert version.startswith("PostgreSQL 14.0") and "Filbert" in version


def test_a_table_is_the_map_that_hazelcast_clients_see(member, client, people):
    entries = client.get_map(people).blocking()
    deadline = time.monotonic() + 10
    while entries.size() != 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert entries.size() == 2
