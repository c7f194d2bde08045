"""Fields that some values have and others have not: two schemas of a type, two versions of a class, mixed formats."""

import pytest
from hazelcast.aggregator import count, max_
from hazelcast.core import HazelcastJsonValue
from hazelcast.errors import HazelcastError
from hazelcast.predicate import and_, equal, greater, not_equal, or_
from hazelcast.projection import single_attribute
from hazelcast.serialization.api import CompactSerializer, IdentifiedDataSerializable, Portable

from member import REAL_HAZELCAST


class Thing:
    def __init__(self, name, size=None):
        self.name, self.size = name, size


class SizedThing(Thing):
    pass


class OldSerializer(CompactSerializer):
    """The first schema of the type; the second has a size as well."""

    def write(self, writer, thing):
        writer.write_string("name", thing.name)

    def read(self, reader):
        return Thing(reader.read_string("name"))

    def get_class(self):
        return Thing

    def get_type_name(self):
        return "evolving-thing"


class NewSerializer(OldSerializer):
    def write(self, writer, thing):
        writer.write_string("name", thing.name)
        writer.write_nullable_int32("size", thing.size)

    def get_class(self):
        return SizedThing


@pytest.fixture
def compact(connect, name):
    things = connect(compact_serializers=[OldSerializer()]).get_map(name).blocking()
    things.put_all({1: Thing("a"), 2: Thing("b")})
    sized = connect(compact_serializers=[NewSerializer()]).get_map(name).blocking()
    sized.put_all({3: SizedThing("a", 3), 4: SizedThing("b", 4), 5: SizedThing("c", None)})
    return things


class FirstThing(Portable):
    def __init__(self, name=None, size=None):
        self.name, self.size = name, size

    def write_portable(self, writer):
        writer.write_string("name", self.name)

    def read_portable(self, reader):
        self.name = reader.read_string("name")

    def get_factory_id(self):
        return 23

    def get_class_id(self):
        return 1


class SecondThing(FirstThing):
    def write_portable(self, writer):
        writer.write_string("name", self.name)
        writer.write_int("size", self.size)

    def get_class_version(self):
        return 2


@pytest.fixture
def portable(connect, name):
    things = connect(portable_factories={23: {1: FirstThing}}).get_map(name).blocking()
    things.put_all({1: FirstThing("a"), 2: FirstThing("b")})
    newer = connect(portable_version=2).get_map(name).blocking()
    newer.put_all({3: SecondThing("a", 3), 4: SecondThing("b", 4)})
    return things


def test_a_field_of_both_schemas(compact):
    assert sorted(compact.key_set(equal("name", "a"))) == [1, 3]
    assert compact.aggregate(count(), or_(equal("name", "a"), equal("name", "b"))) == 4


def test_a_field_that_the_old_schema_lacks_is_null_there(compact):
    assert sorted(compact.key_set(greater("size", 3))) == [4]
    assert sorted(compact.key_set(equal("size", None))) == [1, 2, 5]
    assert sorted(compact.key_set(not_equal("size", None))) == [3, 4]
    assert compact.aggregate(max_("size")) == 4
    assert sorted(compact.project(single_attribute("size")), key=repr) == [3, 4, None, None, None]


def test_a_field_of_both_versions(portable):
    assert sorted(portable.key_set(equal("name", "a"))) == [1, 3]
    assert portable.aggregate(count(), equal("name", "b")) == 2


def test_a_field_that_the_old_version_lacks_is_null_there(portable):
    assert sorted(portable.key_set(greater("size", 3))) == [4]
    assert sorted(portable.key_set(equal("size", None))) == [1, 2]
    assert sorted(portable.key_set(and_(equal("name", "a"), equal("size", 3)))) == [3]


def test_a_field_that_no_value_has_is_null(compact):
    assert sorted(compact.key_set(equal("nothing", None))) == [1, 2, 3, 4, 5]
    assert compact.key_set(equal("nothing", 1)) == []
    assert compact.key_set(greater("nothing.at.all", 1)) == []


def test_values_of_several_formats_in_one_map(compact):
    compact.put_all({10: HazelcastJsonValue('{"name": "a", "size": 10}'), 11: HazelcastJsonValue('{"size": "x"}')})
    assert sorted(compact.key_set(equal("name", "a"))) == [1, 3, 10]


class Opaque(IdentifiedDataSerializable):
    def write_data(self, output):
        output.write_int(7)

    def read_data(self, source):
        source.read_int()

    def get_factory_id(self):
        return 24

    def get_class_id(self):
        return 1


def test_a_class_that_the_member_does_not_know_has_no_fields_but_a_key(connect, name):
    opaque = connect(data_serializable_factories={24: {1: Opaque}}).get_map(name).blocking()
    opaque.put_all({1: Opaque(), 2: Opaque()})
    with pytest.raises(HazelcastError):
        opaque.key_set(equal("field", 7))
    assert opaque.key_set(equal("__key", 2)) == [2]
    assert len(opaque.values(greater("__key", 0))) == 2
    if not REAL_HAZELCAST:  # which makes an object of each value to count it
        assert opaque.aggregate(count()) == 2


def test_plain_values_have_no_fields(numbers):
    numbers.put(1, 1)
    if REAL_HAZELCAST:
        with pytest.raises(HazelcastError):
            numbers.key_set(equal("field", 7))
    else:
        assert numbers.key_set(equal("field", 7)) == []
    assert numbers.key_set(equal("this", 1)) == [1]
