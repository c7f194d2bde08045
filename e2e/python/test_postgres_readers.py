"""Readers of whole tables, as tools for analysis use them: ConnectorX, which divides a table, and ADBC; both give Arrow."""

import datetime
import decimal

import adbc_driver_postgresql.dbapi as adbc
import connectorx
import pyarrow
import pytest

from postgres_tools import psql

ROWS = 10_000
UTC = datetime.timezone.utc
TYPES = {
    "id": "int primary key",
    "flag": "boolean",
    "small": "smallint",
    "large": "bigint",
    "single": "real",
    "precise": "double precision",
    "note": "text",
    "day": "date",
    "moment": "timestamp",
    "instant": "timestamptz",
    "nothing": "int",
}
FIRST = {
    "id": 1,
    "flag": True,
    "small": 7,
    "large": 1000,
    "single": 0.5,
    "precise": 1.5,
    "note": "x1",
    "day": datetime.date(2024, 1, 2),
    "moment": datetime.datetime(2024, 1, 2, 3, 4, 5),
    "instant": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    "nothing": None,
}


@pytest.fixture(scope="module")
def uri(member):
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    psql(
        member,
        f"create table readings ({columns}, amount numeric(10, 2))",
        "insert into readings select g, true, 7, g * 1000, 0.5, 1.5, 'x' || g, date '2024-01-02',"
        " timestamp '2024-01-02 03:04:05', timestamptz '2024-01-02 03:04:05Z', null, 1.25"
        f" from generate_series(1, {ROWS}) g",
    )
    yield f"postgresql://ann@127.0.0.1:{member.postgres_port}/filbert"
    psql(member, "drop table readings")


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor", "simple"])
def test_connectorx_reads_a_table_in_parts(uri, protocol):
    query = f"select {', '.join(TYPES)} from readings"
    table = connectorx.read_sql(
        uri, query, protocol=protocol, return_type="arrow", partition_on="id", partition_num=2
    ).sort_by("id")
    assert table.num_rows == ROWS
    assert table.slice(0, 1).to_pylist() == [FIRST]
    assert pyarrow.compute.sum(table["large"]).as_py() == 1000 * ROWS * (ROWS + 1) // 2


def test_adbc_reads_a_query(uri):
    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("select * from readings where id <= $1 order by id", (5000,))
        table = cursor.fetch_arrow_table()
        assert table.num_rows == 5000
        (first,) = table.slice(0, 1).to_pylist()
        assert decimal.Decimal(first.pop("amount")) == decimal.Decimal("1.25")
        assert first == FIRST


def test_adbc_tells_of_a_table(uri):
    with adbc.connect(uri, autocommit=True) as connection:
        assert connection.adbc_get_table_schema("readings").names == [*TYPES, "amount"]


def test_adbc_writes_a_table(uri):
    rows = pyarrow.table({"id": [1, 2, 3], "name": ["x", "y", None]})
    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("ingested", rows, mode="create") == 3
        cursor.execute("select id, name from ingested order by id")
        assert cursor.fetch_arrow_table().to_pydict() == rows.to_pydict()
        cursor.execute("drop table ingested")
