"""One row through all doors: written through each of them, read through each of them, with the same value of every type."""

import csv
import datetime
import decimal
import io
import json
import uuid

import pytest
from hazelcast.serialization.api import CompactSerializer

from conftest import start_client
from crate_tools import Http, run
from postgres_tools import psql

UTC = datetime.timezone.utc
TABLE = "doors"

# Each column: its type in SQL, its kind as a field of a Compact object, its value.
COLUMNS = {
    "flag": ("boolean", "nullable_boolean", True),
    "small": ("smallint", "nullable_int16", -(2**15)),
    "whole": ("integer", "nullable_int32", 2**31 - 1),
    "large": ("bigint", "nullable_int64", 2**53 + 1),
    "single": ("real", "nullable_float32", 0.25),
    "precise": ("double precision", "nullable_float64", -1.5e300),
    "amount": ("numeric(12, 2)", "decimal", decimal.Decimal("1234567.89")),
    "note": ("text", "string", 'ü "quoted", \\ and\tmore'),
    "day": ("date", "date", datetime.date(2024, 2, 29)),
    "clock": ("time", "time", datetime.time(13, 14, 15, 678000)),
    "moment": ("timestamp", "timestamp", datetime.datetime(2024, 2, 29, 13, 14, 15, 678000)),
    "instant": ("timestamptz", "timestamp_with_timezone", datetime.datetime(2024, 2, 29, 13, 14, 15, 678000, tzinfo=UTC)),
    "tag": ("uuid", "string", uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8")),
    "words": ("text[]", "array_of_string", ["a", "b c", None]),
    "counts": ("integer[]", "array_of_nullable_int32", [1, None, 3]),
    "doc": ("json", "string", {"a": [1, {"b": None}]}),
    "nothing": ("integer", "nullable_int32", None),
}
ROW = {name: value for name, (_, _, value) in COLUMNS.items()}


class Row:
    def __init__(self, fields):
        self.fields = fields


class RowSerializer(CompactSerializer):
    """The rows of the table as Hazelcast's clients see them."""

    def write(self, writer, row):
        for name, (_, kind, _) in COLUMNS.items():
            getattr(writer, f"write_{kind}")(name, row.fields[name])

    def read(self, reader):
        return Row({name: getattr(reader, f"read_{kind}")(name) for name, (_, kind, _) in COLUMNS.items()})

    def get_class(self):
        return Row

    def get_type_name(self):
        return TABLE


def plain(value):
    """A value as JSON and Compact objects write it: what they have no type for is a text."""
    match value:
        case uuid.UUID():
            return str(value)
        case dict():
            return json.dumps(value)
        case _:
            return value


def as_text(value):
    """A value as PostgreSQL's texts have it."""
    match value:
        case list():
            items = (json.dumps(item) if isinstance(item, str) else "NULL" if item is None else str(item) for item in value)
            return "{" + ",".join(items) + "}"
        case bool():
            return str(value).lower()
        case _:
            return str(plain(value))


def of_text(kind, text):
    """A value of what PostgreSQL's texts have."""
    if text == "":
        return None
    if kind.endswith("[]"):
        items = next(csv.reader([text[1:-1]]))
        item = {"text[]": str, "integer[]": int}[kind]
        return [None if part == "NULL" else item(part) for part in items]
    return {
        "boolean": lambda: {"t": True, "f": False}[text],
        "date": lambda: datetime.date.fromisoformat(text),
        "time": lambda: datetime.time.fromisoformat(text),
        "timestamp": lambda: datetime.datetime.fromisoformat(text),
        "timestamptz": lambda: datetime.datetime.fromisoformat(text.replace("+00", "+00:00")),
        "uuid": lambda: uuid.UUID(text),
        "json": lambda: json.loads(text),
        "text": lambda: text,
        "real": lambda: float(text),
        "double precision": lambda: float(text),
        "numeric(12, 2)": lambda: decimal.Decimal(text),
    }.get(kind, lambda: int(text))()


def of_json(kind, value):
    """A value of what CrateDB's clients get: milliseconds since the epoch; microseconds of a day with an offset."""
    if value is None or kind.endswith("[]"):
        return value
    moment = datetime.datetime.fromtimestamp(value / 1000, UTC) if kind.startswith(("timestamp", "date")) else None
    return {
        "date": lambda: moment.date(),
        "time": lambda: (datetime.datetime.min + datetime.timedelta(microseconds=value[0])).time(),
        "timestamp": lambda: moment.replace(tzinfo=None),
        "timestamptz": lambda: moment,
        "uuid": lambda: uuid.UUID(value),
        "numeric(12, 2)": lambda: decimal.Decimal(str(value)),
    }.get(kind, lambda: value)()


def of_plain(kind, value):
    """A value of what a Compact object has."""
    return {"uuid": uuid.UUID, "json": json.loads}.get(kind, lambda value: value)(value)


class Hazelcast:
    """Hazelcast's Python client."""

    def __init__(self, member):
        self.client = start_client(member, compact_serializers=[RowSerializer()])
        self.rows = self.client.get_map(TABLE).blocking()

    def write(self, key):
        self.rows.set(key, Row({name: plain(value) for name, value in ROW.items()}))

    def read(self, key):
        fields = self.rows.get(key).fields
        return {name: of_plain(COLUMNS[name][0], value) for name, value in fields.items()}

    def close(self):
        self.client.shutdown()


class Crate:
    """cr8, which writes, and crash, which reads."""

    def __init__(self, member):
        self.hosts = f"127.0.0.1:{member.http_port}"

    def write(self, key):
        line = json.dumps({"id": key, **ROW}, default=str)
        run("cr8", "insert-json", "--hosts", self.hosts, "--table", TABLE, stdin=line + "\n")

    def read(self, key):
        columns = ", ".join(COLUMNS)
        statement = f"select {columns} from {TABLE} where id = '{key}'"
        out = run("crash", "--hosts", self.hosts, "--format", "json_row", "-c", statement)
        (row,) = (json.loads(line) for line in out.splitlines() if line.startswith("{"))
        return {name: of_json(COLUMNS[name][0], value) for name, value in row.items()}

    def close(self):
        pass


class Psql:
    """psql's INSERT and SELECT."""

    def __init__(self, member):
        self.member = member

    def write(self, key):
        texts = ("null" if value is None else "'" + as_text(value).replace("'", "''") + "'" for value in ROW.values())
        psql(self.member, f"insert into {TABLE} (id, {', '.join(ROW)}) values ('{key}', {', '.join(texts)})")

    def read(self, key):
        return self.table(f"select {', '.join(COLUMNS)} from {TABLE} where id = '{key}'")

    def table(self, statement, *arguments):
        out = psql(self.member, statement, arguments=arguments or ["--csv"]).stdout
        (texts,) = csv.DictReader(io.StringIO(out))
        return {name: of_text(COLUMNS[name][0], text) for name, text in texts.items()}

    def close(self):
        pass


class Copy(Psql):
    """COPY, through psql."""

    def write(self, key):
        out = io.StringIO()
        csv.writer(out).writerow([key, *("" if value is None else as_text(value) for value in ROW.values())])
        statement = f"copy {TABLE} (id, {', '.join(ROW)}) from stdin with (format csv)"
        psql(self.member, statement, stdin=out.getvalue())

    def read(self, key):
        query = f"select {', '.join(COLUMNS)} from {TABLE} where id = '{key}'"
        return self.table(f"copy ({query}) to stdout with (format csv, header)", "-q")


DOORS = {"hazelcast": Hazelcast, "crate": Crate, "psql": Psql, "copy": Copy}


@pytest.fixture(scope="module")
def doors(member):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
    psql(member, f"create table {TABLE} (id text primary key, {columns})")
    doors = {name: door(member) for name, door in DOORS.items()}
    for name, door in doors.items():
        door.write(name)
    yield doors
    for door in doors.values():
        door.close()
    psql(member, f"drop table {TABLE}")


@pytest.mark.parametrize("reader", DOORS)
@pytest.mark.parametrize("writer", DOORS)
def test_a_row_is_the_same_through_every_door(doors, writer, reader):
    assert doors[reader].read(writer) == ROW


def test_every_row_is_counted_by_every_door(doors, member):
    assert psql(member, f"select count(*) from {TABLE}", arguments=["-A", "-t"]).stdout.strip() == str(len(DOORS))
    assert Http(member.http_port).rows(f"select count(*) from {TABLE}") == [[len(DOORS)]]
    assert doors["hazelcast"].rows.size() == len(DOORS)
