"""`POST /_sql` of the real program as CrateDB's reference describes it, bad input, and metrics."""

import concurrent.futures
import json
import socket
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from crate_tools import Http
from member import MEMBERS, REPLICAS, eventually

COLUMNS = """
    id text primary key, flag boolean, tiny byte, small smallint, number integer, large bigint, single real, exact double precision,
    cash numeric(20, 2), born timestamp with time zone, seen timestamp without time zone, address ip, tags array(text),
    grades array(integer), details object(dynamic), place geo_point
"""
ROW = [
    "a", True, 7, 8, 9, 2**60, 1.5, 0.1, "12.50", 1500000000123, 1500000000123, "127.0.0.1", ["x", 'y "z"'], [1, None, 3],
    {"street": "Main", "geo": {"n": [1, 2]}}, [9.75, 47.4],
]
TYPES = [4, 3, 2, 8, 9, 10, 7, 6, 22, 11, 15, 5, [100, 4], [100, 9], 12, 13]


@pytest.fixture(scope="module")
def http(member):
    return Http(member.http_port)


@pytest.fixture
def table(http, name):
    """A table of the test's own with a column of each type."""
    table = f'"{name}"'
    http.sql(f"create table {table} ({COLUMNS}) clustered into 3 shards with (number_of_replicas = 0)")
    yield table
    http.sql(f"drop table {table}")


def insert(table):
    return f"insert into {table} values ({', '.join('?' * len(ROW))})"


def test_the_root_is_what_clients_look_at(http):
    status, headers, text = http.request("/", headers={"Accept": "application/json"})
    answer = json.loads(text)
    assert status == 200 and headers["Content-Type"].startswith("application/json")
    assert answer["ok"] is True and answer["status"] == 200 and answer["cluster_name"] == "dev"
    assert answer["version"]["number"].startswith("5.")
    assert "<html" in http.request("/", headers={"Accept": "text/html"})[2].lower()
    assert json.loads(http.request("/_health")[2])["status"] == "serving"


def test_values_of_every_type_come_back(http, table):
    assert http.sql(insert(table), *ROW)["rowcount"] == 1
    answer = http.sql(f"select * from {table}", path="/_sql?types")
    assert answer["cols"] == [
        "id", "flag", "tiny", "small", "number", "large", "single", "exact", "cash", "born", "seen", "address", "tags",
        "grades", "details", "place",
    ]
    assert answer["rowcount"] == 1 and answer["duration"] > 0
    row = answer["rows"][0]
    expected = list(ROW)
    assert float(row[8]) == 12.5
    row[8] = expected[8]
    assert row == expected
    # Addresses and places are texts and lists of numbers here, which is how they come in JSON in any case.
    ours = dict(zip(answer["cols"], answer["col_types"]))
    theirs = dict(zip(answer["cols"], TYPES))
    theirs["address"], theirs["place"] = ours["address"], ours["place"]
    assert ours == theirs and ours["address"] in (4, 5) and ours["place"] in (13, [100, 6])


def test_nulls_of_every_type_come_back(http, table):
    nulls = ["n"] + [None] * (len(ROW) - 1)
    assert http.sql(insert(table), *nulls)["rowcount"] == 1
    assert http.rows(f"select * from {table}") == [nulls]


def test_a_row_is_seen_as_soon_as_it_is_acknowledged(http, table):
    for number in range(20):
        http.sql(f"insert into {table} (id, number) values (?, ?)", str(number), number)
        assert http.rows(f"select count(*) from {table}") == [[number + 1]]
    http.sql(f"refresh table {table}")
    assert http.rows(f"select id from {table} where number >= 18 order by number") == [["18"], ["19"]]


def test_rows_of_a_bulk_request_stand_for_themselves(http, table):
    rows = [["a", 1], ["b", "x"], ["a", 3], ["c"], 5, ["d", None]]
    results = http.sql(f"insert into {table} (id, number) values (?, ?)", bulk_args=rows)["results"]
    assert [result["rowcount"] for result in results] == [1, -2, -2, -2, -2, 1]
    assert results[2]["error"]["code"] == 4091 and "DuplicateKeyException" in results[2]["error"]["message"]
    assert "row 4" in results[3]["error"]["message"] and "row 5" in results[4]["error"]["message"]
    assert http.rows(f"select id, number from {table} order by id") == [["a", 1], ["d", None]]


def test_bulk_updates_and_deletes_count_their_rows(http, table):
    http.sql(f"insert into {table} (id, number) values (?, ?)", bulk_args=[[str(n), n] for n in range(10)])
    update = http.sql(f"update {table} set number = number + 100 where number < ?", bulk_args=[[3], [0], [5]])
    assert [result["rowcount"] for result in update["results"]] == [3, 0, 2]
    delete = http.sql(f"delete from {table} where id = ?", bulk_args=[["0"], ["0"], ["9"]])
    assert [result["rowcount"] for result in delete["results"]] == [1, 0, 1]
    assert http.rows(f"select count(*) from {table}") == [[8]]
    assert http.error(f"select * from {table} where id = ?", bulk_args=[["1"]])[0] == 400


def test_a_large_bulk_request_goes_in_whole(http, table):
    rows = [[f"{n:08}", n, f"2020-01-01T00:00:{n % 60:02}Z", {"n": n}] for n in range(50_000)]
    answer = http.sql(f"insert into {table} (id, number, born, details) values (?, ?, ?, ?)", bulk_args=rows)
    assert all(result == {"rowcount": 1} for result in answer["results"]) and len(answer["results"]) == 50_000
    assert http.rows(f"select count(*), min(number), max(number) from {table}") == [[50_000, 0, 49_999]]
    result = http.rows(f"select id, details['n'] from {table} order by id limit 3 offset 7")
    assert result == [[f"{n:08}", n] for n in (7, 8, 9)]
    # All rows, as a stream.
    assert len(http.rows(f"select * from {table}")) == 50_000


def test_a_body_that_breaks_off_leaves_no_rows(http, table):
    body = json.dumps({"stmt": f"insert into {table} (id) values (?)", "bulk_args": [[str(n)] for n in range(500_000)]})
    for broken in (body[:-10], body + "x"):
        assert http.request("/_sql", broken)[0] == 400
        assert http.rows(f"select count(*) from {table}") == [[0]]


@pytest.mark.parametrize(
    "stmt, error",
    [
        ("selec 1", (400, 4000)),
        ("select * from nowhere", (404, 4041)),
        ("select nothing from {table}", (404, 4043)),
        ("create table {table} (a integer)", (409, 4093)),
        ("insert into {table} (id) values ('twice')", (409, 4091)),
        ("select nofunction(1)", (400, 4004)),
        ("select cast('x' as integer)", (400, 4000)),
        ("", (400, 4000)),
    ],
)
def test_errors_have_crate_dbs_codes(http, table, stmt, error):
    http.sql(f"insert into {table} (id) values ('twice')")
    assert http.error(stmt.format(table=table)) == error


def test_a_trace_tells_more(http):
    assert "error_trace" not in http.post("selec 1")[1]
    assert "42601" in http.post("selec 1", path="/_sql?error_trace=true")[1]["error_trace"]


def test_names_without_a_schema_are_looked_for_in_that_of_the_header(http, name):
    schema = name.replace("-", "_").lower()
    http.sql(f'create table {schema}.things (a integer)')
    try:
        headers = {"Default-Schema": schema}
        assert http.post("insert into things (a) values (1)", headers=headers)[0] == 200
        assert http.post("select a from things", headers=headers)[1]["rows"] == [[1]]
        assert http.post("select current_schema", headers=headers)[1]["rows"] == [[schema]]
        assert http.rows("select current_schema") == [["doc"]]
    finally:
        http.sql(f"drop table {schema}.things")


@pytest.mark.parametrize("body", ["", "x", "[]", "{}", '{"stmt": 1}', '{"stmt": "select 1"', '{"stmt": "select 1", "more": 1}'])
def test_a_body_that_is_no_request_is_refused(http, body):
    status, _, text = http.request("/_sql", body)
    assert status == 400 and json.loads(text)["error"]["code"] == 4000


def test_deep_nesting_is_refused(http):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        body = '{"stmt": "select ?", "args": [' + opening * 1_000_000 + "1" + closing * 1_000_000 + "]}"
        assert http.request("/_sql", body)[0] == 400


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent(http):
    connection = socket.create_connection(("127.0.0.1", http.port))
    connection.sendall(b"POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 413")
    connection.close()


def test_a_body_that_does_not_come_holds_nobody(http):
    for _ in range(20):
        connection = socket.create_connection(("127.0.0.1", http.port))
        connection.sendall(b'POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"stmt": ')
        connection.close()
    assert http.rows("select 1") == [[1]]


def test_a_client_that_leaves_ends_its_statement(http):
    def running():
        metrics = http.request("/metrics")[2].splitlines()
        return int(next(line for line in metrics if line.startswith("filbert_statements_running ")).split()[1])

    body = json.dumps({"stmt": "select count(*) from generate_series(1, 100000) a, generate_series(1, 1000000) b"})
    connection = socket.create_connection(("127.0.0.1", http.port))
    connection.sendall(f"POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    eventually(lambda: running() == 1)
    connection.close()
    eventually(lambda: running() == 0)


def test_thousands_of_connections_are_served(http):
    connections = []
    try:
        for _ in range(5_000):
            connections.append(socket.create_connection(("127.0.0.1", http.port)))
        body = b'{"stmt": "select 1"}'
        for connection in connections:
            connection.sendall(b"POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        for connection in connections:
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    finally:
        for connection in connections:
            connection.close()


def test_many_clients_write_at_once(http, table):
    def write(part):
        rows = [[f"{part}-{n}", n] for n in range(500)]
        return http.sql(f"insert into {table} (id, number) values (?, ?)", bulk_args=rows)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(64)))
    assert http.rows(f"select count(*), sum(number) from {table}") == [[32_000, 64 * 500 * 499 // 2]]


def test_metrics_are_what_prometheus_reads(http, table):
    http.sql(f"insert into {table} (id) values ('x')")
    families = {family.name: family for family in text_string_to_metric_families(http.request("/metrics")[2])}
    name = table.strip('"')
    entries = [sample for sample in families["filbert_map_entries"].samples if sample.labels["map"].endswith(name)]
    # A member of a cluster counts the replicas that it has.
    assert [sample.value for sample in entries] in ([[1]] if MEMBERS <= REPLICAS else [[0], [1]])
    statements = families["filbert_statements"].samples
    assert any(sample.labels == {"kind": "insert", "outcome": "success"} and sample.value > 0 for sample in statements)
    assert families["filbert_statement_duration_seconds"].type == "histogram"
    doors = {sample.labels["door"] for sample in families["filbert_door_connections"].samples}
    assert doors == {"hazelcast", "http", "postgres"}
    assert families["process_resident_memory_bytes"].samples[0].value > 1e6


def test_blobs_and_unknown_paths_are_told_in_json(http):
    assert json.loads(http.request("/_blobs/table/0123")[2])["error"]["code"] == 4004
    status, _, text = http.request("/nowhere")
    assert status == 404 and json.loads(text)["error"]["code"] == 4040


def test_a_connection_serves_one_request_after_the_other(http):
    connection = HTTPConnection("127.0.0.1", http.port)
    for number in range(100):
        connection.request("POST", "/_sql", json.dumps({"stmt": "select ?", "args": [number]}))
        assert json.loads(connection.getresponse().read())["rows"] == [[number]]
    connection.close()
