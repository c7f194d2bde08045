"""CrateDB's shell `crash` as a process."""

import json

import pytest

from crate_tools import Http, run


@pytest.fixture
def crash(member):
    def shell(*arguments, **settings):
        return run("crash", "--hosts", f"http://127.0.0.1:{member.http_port}", *arguments, **settings)

    return shell


@pytest.fixture
def table(member, name):
    http, table = Http(member.http_port), f'"{name}"'
    http.sql(f"create table {table} (id integer primary key, name text, o object) clustered into 2 shards")
    http.sql(f"insert into {table} values (?, ?, ?)", bulk_args=[[1, "Ann", {"a": 1}], [2, None, None]])
    yield table
    http.sql(f"drop table {table}")


def test_it_connects(crash):
    assert "CONNECT OK" in crash("-c", "select 1", "-v")


def test_statements_tell_what_they_did(crash, table):
    assert "INSERT OK, 1 row affected" in crash("-c", f"insert into {table} (id) values (3)")
    assert "UPDATE OK, 3 rows affected" in crash("-c", f"update {table} set name = 'x'")
    assert "DELETE OK, 1 row affected" in crash("-c", f"delete from {table} where id = 3")
    assert "SELECT 2 rows in set" in crash("-c", f"select * from {table}")


def test_statements_come_from_a_pipe(crash, name):
    script = f"""
        create table "{name}" (a integer, b text);
        insert into "{name}" (a, b) values (1, 'x'),
            (2, 'y');
        -- a comment
        select sum(a) as total from "{name}";
        drop table "{name}";
    """
    out = crash("--format", "csv", stdin=script)
    assert "CREATE OK" in out and "INSERT OK, 2 rows affected" in out and "total" in out and "DROP OK" in out


def test_every_format_shows_the_rows(crash, table):
    statement = f"select id, name, o from {table} order by id"
    for form in ("tabular", "raw", "json", "json_row", "csv", "mixed", "dynamic"):
        out = crash("--format", form, "-c", statement)
        assert "Ann" in out, form
    out = crash("--format", "json_row", "-c", statement)
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert rows == [{"id": 1, "name": "Ann", "o": {"a": 1}}, {"id": 2, "name": None, "o": None}]


def test_commands_of_the_shell(crash, table):
    assert table.strip('"') in crash(stdin="\\dt\n")
    assert "CHECK" in crash(stdin="\\check\n").upper()
    out = crash(stdin="\\sysinfo\n")
    assert "number_of_nodes" in out and "crate_version" in out


def test_errors_show(crash):
    out = crash("-c", "select * from nowhere", fails=True)
    assert "RelationUnknown" in out


def test_a_user_and_a_schema(crash, table):
    out = crash("--username", "ann", "--schema", "mine", "--format", "csv", "-c", "select current_user, current_schema")
    assert "ann,mine" in out.replace('"', "")
