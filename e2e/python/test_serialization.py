"""Values of the user's own: Compact, Portable, identified and custom ones, JSON; opaque to the member."""

import dataclasses

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastSerializationError
from hazelcast.serialization.api import CompactSerializer, IdentifiedDataSerializable, Portable, StreamSerializer


@dataclasses.dataclass
class Address:
    street: str
    number: int


@dataclasses.dataclass
class Person:
    name: str
    age: int
    address: Address
    scores: list


class AddressSerializer(CompactSerializer):
    def read(self, reader):
        return Address(reader.read_string("street"), reader.read_int32("number"))

    def write(self, writer, address):
        writer.write_string("street", address.street)
        writer.write_int32("number", address.number)

    def get_class(self):
        return Address

    def get_type_name(self):
        return "address"


class PersonSerializer(CompactSerializer):
    def read(self, reader):
        return Person(
            reader.read_string("name"),
            reader.read_nullable_int32("age"),
            reader.read_compact("address"),
            reader.read_array_of_int64("scores"),
        )

    def write(self, writer, person):
        writer.write_string("name", person.name)
        writer.write_nullable_int32("age", person.age)
        writer.write_compact("address", person.address)
        writer.write_array_of_int64("scores", person.scores)

    def get_class(self):
        return Person

    def get_type_name(self):
        return "person"


ADA = Person("Ada", 36, Address("St James's Square", 12), [1, 2**40])
COMPACT = dict(compact_serializers=[PersonSerializer(), AddressSerializer()])


def test_a_compact_value_is_read_by_a_client_that_never_saw_its_schema(connect, name):
    connect(**COMPACT).get_map(name).blocking().put("ada", ADA)
    reader = connect(**COMPACT).get_map(name).blocking()
    assert reader.get("ada") == ADA
    assert reader.contains_value(ADA)
    assert reader.values() == [ADA]


def test_a_compact_key_finds_its_entry(connect, name):
    connect(**COMPACT).get_map(name).blocking().put(Address("Road", 1), "home")
    assert connect(**COMPACT).get_map(name).blocking().get(Address("Road", 1)) == "home"


def test_a_client_without_a_serializer_learns_the_type_from_the_fetched_schema(connect, name):
    connect(**COMPACT).get_map(name).blocking().put("ada", ADA)
    with pytest.raises(HazelcastSerializationError, match="person"):
        connect().get_map(name).blocking().get("ada")


class Customer(Portable):
    def __init__(self, name=None, balance=None):
        self.name, self.balance = name, balance

    def write_portable(self, writer):
        writer.write_string("name", self.name)
        writer.write_long("balance", self.balance)

    def read_portable(self, reader):
        self.name, self.balance = reader.read_string("name"), reader.read_long("balance")

    def get_factory_id(self):
        return 1

    def get_class_id(self):
        return 1

    def __eq__(self, other):
        return (self.name, self.balance) == (other.name, other.balance)


def test_a_portable_value_comes_back(connect, name):
    settings = dict(portable_factories={1: {1: Customer}})
    connect(**settings).get_map(name).blocking().put("c", Customer("Grace", 2**40))
    assert connect(**settings).get_map(name).blocking().get("c") == Customer("Grace", 2**40)


class Point(IdentifiedDataSerializable):
    def __init__(self, x=0, y=0):
        self.x, self.y = x, y

    def write_data(self, output):
        output.write_int(self.x)
        output.write_int(self.y)

    def read_data(self, source):
        self.x, self.y = source.read_int(), source.read_int()

    def get_factory_id(self):
        return 5

    def get_class_id(self):
        return 6

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)


def test_an_identified_value_comes_back_though_the_member_does_not_know_it(connect, name):
    settings = dict(data_serializable_factories={5: {6: Point}})
    connect(**settings).get_map(name).blocking().put("p", Point(3, 4))
    numbers = connect(**settings).get_map(name).blocking()
    assert numbers.get("p") == Point(3, 4)
    assert numbers.replace_if_same("p", Point(3, 4), Point(5, 6))
    assert numbers.remove_if_same("p", Point(5, 6))


@dataclasses.dataclass(frozen=True)
class Colour:
    rgb: int


class ColourSerializer(StreamSerializer):
    def write(self, output, colour):
        output.write_int(colour.rgb)

    def read(self, source):
        return Colour(source.read_int())

    def get_type_id(self):
        return 1234

    def destroy(self):
        pass


def test_a_custom_type_comes_back(connect, name):
    settings = dict(custom_serializers={Colour: ColourSerializer})
    connect(**settings).get_map(name).blocking().put(Colour(1), Colour(0xFF8000))
    assert connect(**settings).get_map(name).blocking().get(Colour(1)) == Colour(0xFF8000)


def test_json_comes_back_as_it_was_sent(numbers):
    numbers.put("j", HazelcastJsonValue('{"b": 1,  "a": [true, null, "ü"]}'))
    assert numbers.get("j").to_string() == '{"b": 1,  "a": [true, null, "ü"]}'


def test_a_mixed_map_returns_each_value_in_its_own_type(numbers):
    values = [1, 1.5, "text", True, [1, "two", None], bytearray(b"\x00\xff")]
    for index, value in enumerate(values):
        numbers.set(index, value)
    assert [numbers.get(index) for index in range(len(values))] == values
