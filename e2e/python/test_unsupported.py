"""What is not served is refused by name, as the exception the user knows, and the connection lives on."""

import pytest
from hazelcast.errors import UnsupportedOperationError
from hazelcast.serialization.api import IdentifiedDataSerializable

from member import REAL_HAZELCAST

pytestmark = pytest.mark.skipif(REAL_HAZELCAST, reason="Hazelcast serves these")


class Processor(IdentifiedDataSerializable):
    def write_data(self, output):
        pass

    def get_factory_id(self):
        return 77

    def get_class_id(self):
        return 1


REFUSED = {
    "Map.executeOnKey": lambda client, name: client.get_map(name).execute_on_key("k", Processor()),
    "Map.executeOnAllKeys": lambda client, name: client.get_map(name).execute_on_entries(Processor()),
    "Map.executeOnKeys": lambda client, name: client.get_map(name).execute_on_keys(["k"], Processor()),
    "Map.addInterceptor": lambda client, name: client.get_map(name).add_interceptor(Processor()),
    "Queue": lambda client, name: client.get_queue(name).offer(1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_message_that_is_not_served_is_refused_by_name(client, message, name):
    numbers = client.get_map(name).blocking()
    numbers.set("k", 1)
    with pytest.raises(UnsupportedOperationError, match=message):
        REFUSED[message](client, name).result()
    assert numbers.get("k") == 1
