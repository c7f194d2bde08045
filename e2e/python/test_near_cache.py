"""The client's near cache: filled by reads, and right again after another client's changes."""

import pytest

from member import eventually


@pytest.fixture
def pair(connect, name):
    """A map with a near cache, and the same map through a client without one."""
    near = connect(near_caches={name: {"invalidate_on_change": True, "time_to_live": 3600}})
    return near.get_map(name), connect().get_map(name).blocking()


def hits(near):
    return near._near_cache.get_statistics()["hits"]


def test_a_second_read_does_not_leave_the_client(pair):
    near, far = pair
    far.set("a", 1)

    def read_again_without_the_member():
        assert near.get("a").result() == 1
        before = hits(near)
        assert near.get("a").result() == 1
        return hits(near) == before + 1

    # The change itself is told behind its answer, and may empty the near cache once after the first read.
    eventually(read_again_without_the_member)


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda far: far.put("a", 2), 2),
        (lambda far: far.set("a", 2), 2),
        (lambda far: far.replace("a", 2), 2),
        (lambda far: far.put_all({"a": 2}), 2),
        (lambda far: far.try_put("a", 2), 2),
        (lambda far: far.remove("a"), None),
        (lambda far: far.delete("a"), None),
        (lambda far: far.evict("a"), None),
        (lambda far: far.clear(), None),
        (lambda far: far.evict_all(), None),
    ],
    ids=["put", "set", "replace", "put_all", "try_put", "remove", "delete", "evict", "clear", "evict_all"],
)
def test_another_clients_change_empties_the_near_cache(pair, change, expected):
    near, far = pair
    far.set("a", 1)
    assert near.get("a").result() == 1
    change(far)
    eventually(lambda: near.get("a").result() == expected)


def test_expiry_on_the_member_reaches_the_near_cache(pair):
    near, far = pair
    far.put("a", 1, ttl=2)
    assert near.get("a").result() == 1
    eventually(lambda: near.get("a").result() is None)


def test_get_all_reads_through_an_empty_near_cache(pair):
    near, far = pair
    far.put_all({i: i for i in range(50)})
    assert near.get_all(list(range(50))).result() == {i: i for i in range(50)}
