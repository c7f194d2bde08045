"""CrateDB's benchmark tool `cr8` as a process: rows made up, rows from JSON, specs, timing."""

import json

import pytest

from crate_tools import Http, run


@pytest.fixture
def http(member):
    return Http(member.http_port)


@pytest.fixture
def hosts(member):
    return f"127.0.0.1:{member.http_port}"


@pytest.fixture
def table(name):
    """A name that cr8 needs not quote."""
    return name.replace("-", "_").lower()


def test_made_up_rows_go_in(http, hosts, table):
    http.sql(
        f"create table {table} (id string primary key, name string, email text, age integer, score double, born timestamp,"
        " active boolean, addr ip, place geo_point, tags array(string)) clustered into 3 shards"
        " with (number_of_replicas = 0, refresh_interval = 0)"
    )
    out = run("cr8", "insert-fake-data", "--hosts", hosts, "--table", table, "-n", 5000, "-b", 500, "-c", 4)
    assert "Found schema" in out
    assert http.rows(f"select count(*), count(distinct id), count(name), count(born), count(place) from {table}") == [[5000] * 5]
    ages = http.rows(f"select min(age) < max(age), count(age) from {table}")
    assert ages == [[True, 5000]]
    http.sql(f"drop table {table}")


def test_rows_from_json_go_in(http, hosts, table):
    http.sql(f"create table {table} (id integer primary key, name text, tags array(text), o object)")
    lines = "\n".join(json.dumps({"id": n, "name": f"n {n}", "tags": ["a", "b"], "o": {"n": n}}) for n in range(2500))
    run("cr8", "insert-json", "--hosts", hosts, "--table", table, "--bulk-size", 1000, stdin=lines)
    assert http.rows(f"select count(*), sum(o['n']) from {table}") == [[2500, 2500 * 2499 // 2]]
    http.sql(f"drop table {table}")


def test_a_statement_is_timed(hosts):
    out = run("cr8", "timeit", "--hosts", hosts, "-r", 50, "-w", 5, "-of", "json", stdin="select 1;")
    result = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert result["runtime_stats"]["n"] == 50 and result["version_info"]["number"].startswith("5.")


def test_a_spec_is_run_and_its_results_are_kept(http, hosts, table, tmp_path):
    (tmp_path / "rows.json").write_text("\n".join(json.dumps({"id": n, "name": f"n {n}"}) for n in range(1000)))
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f"""
        [setup]
        statements = ["create table {table} (id integer primary key, name text)"]
        [[setup.data_files]]
        target = "{table}"
        source = "rows.json"
        bulk_size = 100
        [[queries]]
        statement = "select count(*) from {table}"
        iterations = 20
        [[queries]]
        statement = "select name from {table} where id = ?"
        args = [7]
        iterations = 20
        concurrency = 2
        [teardown]
        statements = ["drop table {table}"]
        """
    )
    out = run("cr8", "run-spec", spec, hosts, "--result-host", hosts)
    assert "Running benchmark" in out or "Statement" in out, out
    rows = http.rows("select statement, runtime_stats['n'] from benchmarks order by statement")
    assert rows == [[f"select count(*) from {table}", 20], [f"select name from {table} where id = ?", 20]]
    http.sql("drop table benchmarks")
