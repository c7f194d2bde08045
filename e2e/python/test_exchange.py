"""Values of every type, written by one language's client and read by another's: as values, and as keys, whose bytes must
be equal for the entry to be found."""

import datetime
import decimal
import json
import os
import uuid

import hazelcast
import pytest
from hazelcast.config import IntType
from hazelcast.core import HazelcastJsonValue

from member import SHARED

VALUES = json.loads((SHARED / "types.json").read_text(encoding="utf-8"))["values"]
INT_TYPES = {
    "byte": IntType.BYTE,
    "short": IntType.SHORT,
    "int": IntType.INT,
    "long": IntType.LONG,
    "big_integer": IntType.BIG_INT,
}
NATIVE = {
    "boolean": bool,
    "char": str,
    "float": float,
    "double": float,
    "string": str,
    "uuid": uuid.UUID,
    "json": HazelcastJsonValue,
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "date_time": datetime.datetime.fromisoformat,
    "offset_date_time": datetime.datetime.fromisoformat,
    "byte[]": lambda items: bytearray(int(item) & 0xFF for item in items),
    "boolean[]": list,
    "string[]": list,
    "list": list,
    **{kind: int for kind in INT_TYPES},
    **{f"{kind}[]": lambda items: [int(item) for item in items] for kind in ("short", "int", "long")},
    **{f"{kind}[]": lambda items: [float(item) for item in items] for kind in ("float", "double")},
}


def native(row):
    return NATIVE[row["type"]](row["value"])


@pytest.fixture(scope="module")
def address(member):
    """The member that the suites of all languages share, or else this suite's own."""
    return os.environ.get("FILBERT_E2E_EXCHANGE", member.address)


def writers():
    """Whose values to read: everyone's after all have written, else our own."""
    return os.environ.get("FILBERT_E2E_WRITERS", "python").split(",")


def client_for(address, kind):
    settings = {"default_int_type": INT_TYPES[kind]} if kind in INT_TYPES else {}
    return hazelcast.HazelcastClient(cluster_members=[address], **settings)


@pytest.mark.skipif(os.environ.get("FILBERT_E2E_PHASE") == "read", reason="written in the phase before")
def test_write(address):
    for kind in {row["type"] for row in VALUES}:
        client = client_for(address, kind)
        values, keys = (client.get_map(f"exchange-{what}-python").blocking() for what in ("values", "keys"))
        for row in VALUES:
            if row["type"] == kind and "python" in row["writers"]:
                values.put(row["name"], native(row))
                keys.put(native(row), row["name"])
        client.shutdown()


@pytest.mark.skipif(os.environ.get("FILBERT_E2E_PHASE") == "write", reason="read in the phase after")
@pytest.mark.parametrize("writer", writers())
def test_read(address, writer):
    wrong = []
    for kind in {row["type"] for row in VALUES}:
        client = client_for(address, kind)
        values, keys = (client.get_map(f"exchange-{what}-{writer}").blocking() for what in ("values", "keys"))
        for row in VALUES:
            if row["type"] != kind or writer not in row["writers"]:
                continue
            found = values.get(row["name"])
            if not same(found, native(row)):
                wrong.append((row["name"], found))
            if "python" in row["writers"] and keys.get(native(row)) != row["name"]:
                wrong.append((row["name"], "not found by key"))
        client.shutdown()
    assert wrong == []


def same(found, expected):
    if isinstance(expected, HazelcastJsonValue):
        return found.to_string() == expected.to_string()
    if isinstance(expected, list) and found is not None:
        found = list(found)
    return type(found) is type(expected) and found == expected
