"""The same people in every format that a member can read fields of: JSON, Portable and Compact."""

import json

from hazelcast.core import HazelcastJsonValue
from hazelcast.serialization.api import CompactSerializer, Portable

ADDRESS_FIELDS = ("city", "number")
PERSON_FIELDS = (
    "name",
    "nickname",
    "age",
    "balance",
    "height",
    "active",
    "address",
    "tags",
    "scores",
    "homes",
)


def _person(name, nickname, age, balance, height, active, address, tags, scores, homes):
    return dict(zip(PERSON_FIELDS, (name, nickname, age, balance, height, active, address, tags, scores, homes)))


def _address(city, number):
    return dict(zip(ADDRESS_FIELDS, (city, number)))


LONDON, PARIS, OSLO = _address("London", 1), _address("Paris", 2), _address("Oslo", 3)

PEOPLE = {
    1: _person("Ada", None, 36, 2**40, 1.65, True, LONDON, ["red", "blue"], [1, 2, 3], [LONDON, PARIS]),
    2: _person("Grace", "Amazing", 85, -5, 1.5, True, PARIS, ["blue"], [4], [PARIS]),
    3: _person("Alan", "Prof", 41, 0, 1.78, False, LONDON, ["green", "red"], [5, 1], [LONDON, OSLO]),
    4: _person("Édith", None, 47, 12, 1.42, False, PARIS, [], [], []),
    5: _person("ada_x", "50%", 20, 100, 1.9, True, OSLO, ["yellow"], [9, 9], [OSLO]),
}


class _Record:
    """Something with fields by name, which compares by them."""

    def __init__(self, **fields):
        self.fields = fields

    def __eq__(self, other):
        return type(self) is type(other) and self.fields == other.fields

    def __hash__(self):
        return hash(repr(sorted(self.fields.items(), key=str)))

    def __repr__(self):
        return f"{type(self).__name__}({self.fields})"


class PortableAddress(_Record, Portable):
    def write_portable(self, writer):
        writer.write_string("city", self.fields["city"])
        writer.write_int("number", self.fields["number"])

    def read_portable(self, reader):
        self.fields = {"city": reader.read_string("city"), "number": reader.read_int("number")}

    def get_factory_id(self):
        return 10

    def get_class_id(self):
        return 2


class PortablePerson(_Record, Portable):
    def write_portable(self, writer):
        fields = self.fields
        writer.write_string("name", fields["name"])
        writer.write_string("nickname", fields["nickname"])
        writer.write_int("age", fields["age"])
        writer.write_long("balance", fields["balance"])
        writer.write_double("height", fields["height"])
        writer.write_boolean("active", fields["active"])
        if fields["address"] is None:
            writer.write_null_portable("address", 10, 2)
        else:
            writer.write_portable("address", fields["address"])
        writer.write_string_array("tags", fields["tags"])
        writer.write_int_array("scores", fields["scores"])
        writer.write_portable_array("homes", fields["homes"])

    def read_portable(self, reader):
        self.fields = {
            "name": reader.read_string("name"),
            "nickname": reader.read_string("nickname"),
            "age": reader.read_int("age"),
            "balance": reader.read_long("balance"),
            "height": reader.read_double("height"),
            "active": reader.read_boolean("active"),
            "address": reader.read_portable("address"),
            "tags": reader.read_string_array("tags"),
            "scores": reader.read_int_array("scores"),
            "homes": reader.read_portable_array("homes"),
        }

    def get_factory_id(self):
        return 10

    def get_class_id(self):
        return 1


class CompactAddress(_Record):
    pass


class CompactPerson(_Record):
    pass


class CompactAddressSerializer(CompactSerializer):
    def write(self, writer, address):
        writer.write_string("city", address.fields["city"])
        writer.write_int32("number", address.fields["number"])

    def read(self, reader):
        return CompactAddress(city=reader.read_string("city"), number=reader.read_int32("number"))

    def get_class(self):
        return CompactAddress

    def get_type_name(self):
        return "query-address"


class CompactPersonSerializer(CompactSerializer):
    def write(self, writer, person):
        fields = person.fields
        writer.write_string("name", fields["name"])
        writer.write_string("nickname", fields["nickname"])
        writer.write_nullable_int32("age", fields["age"])
        writer.write_int64("balance", fields["balance"])
        writer.write_float64("height", fields["height"])
        writer.write_boolean("active", fields["active"])
        writer.write_compact("address", fields["address"])
        writer.write_array_of_string("tags", fields["tags"])
        writer.write_array_of_int32("scores", fields["scores"])
        writer.write_array_of_compact("homes", fields["homes"])

    def read(self, reader):
        return CompactPerson(
            name=reader.read_string("name"),
            nickname=reader.read_string("nickname"),
            age=reader.read_nullable_int32("age"),
            balance=reader.read_int64("balance"),
            height=reader.read_float64("height"),
            active=reader.read_boolean("active"),
            address=reader.read_compact("address"),
            tags=reader.read_array_of_string("tags"),
            scores=reader.read_array_of_int32("scores"),
            homes=reader.read_array_of_compact("homes"),
        )

    def get_class(self):
        return CompactPerson

    def get_type_name(self):
        return "query-person"


def _object(person, record, address):
    fields = dict(person)
    if fields["address"] is not None:
        fields["address"] = address(**fields["address"])
    fields["homes"] = [address(**home) for home in fields["homes"]]
    return record(**fields)


def as_json(person):
    return HazelcastJsonValue(json.dumps(person, ensure_ascii=False))


def as_portable(person):
    return _object(person, PortablePerson, PortableAddress)


def as_compact(person):
    return _object(person, CompactPerson, CompactAddress)


FORMATS = {"json": as_json, "portable": as_portable, "compact": as_compact}

SETTINGS = dict(
    portable_factories={10: {1: PortablePerson, 2: PortableAddress}},
    compact_serializers=[CompactPersonSerializer(), CompactAddressSerializer()],
)


def as_dict(value):
    """Any person or address, as the plain dictionary it was made from."""
    if isinstance(value, HazelcastJsonValue):
        return value.loads()
    if isinstance(value, _Record):
        return {name: as_dict(field) for name, field in value.fields.items()}
    if isinstance(value, list):
        return [as_dict(item) for item in value]
    return value
