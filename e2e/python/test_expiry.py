"""Time to live and max idle, by call and by configuration."""

import pytest

from member import eventually


@pytest.mark.parametrize("write", ["put", "set", "put_if_absent", "put_transient"])
def test_an_entry_goes_when_its_time_to_live_is_over(numbers, write):
    getattr(numbers, write)("a", 1, ttl=1)
    assert numbers.get_entry_view("a").ttl == 1_000
    numbers.set("stays", 1)
    eventually(lambda: numbers.get("a") is None)
    eventually(lambda: numbers.size() == 1)


@pytest.mark.parametrize("write", ["put", "set", "put_if_absent", "put_transient"])
def test_an_entry_goes_when_nobody_asks_for_it(numbers, write):
    getattr(numbers, write)("a", 1, max_idle=1)
    assert numbers.get_entry_view("a").max_idle == 1_000
    eventually(lambda: numbers.size() == 0)
    assert numbers.get("a") is None


def test_set_ttl_gives_an_entry_a_new_end(numbers):
    numbers.set("a", 1)
    numbers.set_ttl("a", 1)
    eventually(lambda: not numbers.contains_key("a"))


def test_set_ttl_zero_lets_an_entry_live_for_ever(numbers):
    numbers.put("a", 1, ttl=500)
    numbers.set_ttl("a", 0)
    assert numbers.get_entry_view("a").expiration_time > 4_000_000_000_000


def test_a_map_configured_with_a_time_to_live_forgets(client):
    numbers = client.get_map("short-ttl-python").blocking()
    numbers.set("a", 1)
    assert numbers.get_entry_view("a").ttl == 1_000
    eventually(lambda: numbers.get("a") is None)


def test_a_map_configured_with_max_idle_forgets(client):
    numbers = client.get_map("short-idle-python").blocking()
    numbers.set("a", 1)
    eventually(lambda: numbers.size() == 0)
