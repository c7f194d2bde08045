"""Paging predicates: pages in order, forwards and backwards, of keys, values and entries."""

import pytest
from hazelcast.core import HazelcastJsonValue
from hazelcast.predicate import equal, greater, greater_or_equal, less, paging, true


@pytest.fixture
def hundred(numbers):
    numbers.put_all({i: i for i in range(100)})
    return numbers


def test_pages_come_in_order(hundred):
    page = paging(greater_or_equal("this", 40), 25)
    assert hundred.values(page) == list(range(40, 65))
    page.next_page()
    assert hundred.values(page) == list(range(65, 90))
    page.next_page()
    assert hundred.values(page) == list(range(90, 100))
    page.next_page()
    assert hundred.values(page) == []


def test_pages_of_keys_and_entries(hundred):
    page = paging(true(), 10)
    page.page = 3
    assert hundred.key_set(page) == list(range(30, 40))
    assert hundred.entry_set(page) == [(i, i) for i in range(30, 40)]


def test_back_to_earlier_pages(hundred):
    page = paging(true(), 30)
    page.next_page()
    page.next_page()
    assert hundred.values(page) == list(range(60, 90))
    page.previous_page()
    assert hundred.values(page) == list(range(30, 60))
    page.reset()
    assert hundred.values(page) == list(range(30))


def test_straight_to_a_late_page(hundred):
    page = paging(None, 7)
    page.page = 13
    assert hundred.values(page) == list(range(91, 98))
    page.next_page()
    assert hundred.values(page) == [98, 99]
    page.page = 50
    assert hundred.values(page) == []


def test_an_empty_map_and_nobody(numbers):
    assert numbers.values(paging(true(), 10)) == []
    numbers.put(1, 1)
    assert numbers.values(paging(less("this", 0), 10)) == []
    assert numbers.key_set(paging(less("this", 0), 10)) == []


def test_a_page_larger_than_the_map(hundred):
    assert hundred.values(paging(true(), 1000)) == list(range(100))
    assert hundred.entry_set(paging(less("this", 3), 1000)) == [(0, 0), (1, 1), (2, 2)]


def test_equal_values_come_all(numbers):
    numbers.put_all({i: 7 for i in range(25)})
    page = paging(true(), 10)
    seen = []
    for _ in range(3):
        seen += [key for key, _ in numbers.entry_set(page)]
        page.next_page()
    assert sorted(seen) == list(range(25))


def test_text_in_order(numbers):
    words = ["b", "a", "ä", "B", "", "aa"]
    numbers.put_all(dict(enumerate(words)))
    page = paging(true(), 4)
    assert numbers.values(page) == ["", "B", "a", "aa"]
    page.next_page()
    assert numbers.values(page) == ["b", "ä"]


def test_between_pages_the_map_may_change(hundred):
    page = paging(true(), 10)
    assert hundred.values(page) == list(range(10))
    page.next_page()
    for i in range(5):
        hundred.remove(i)
    hundred.put(100, 100)
    assert hundred.values(page) == list(range(10, 20))


def test_keys_of_objects_in_pages(people):
    page = paging(greater("age", 20), 3)
    assert people.key_set(page) == [1, 2, 3]
    page.next_page()
    assert people.key_set(page) == [4]


def test_paging_with_json_values(numbers):
    numbers.put_all({i: HazelcastJsonValue({"even": i % 2 == 0, "i": i}) for i in range(20)})
    page = paging(equal("even", True), 4)
    assert numbers.key_set(page) == [0, 2, 4, 6]
    page.next_page()
    assert numbers.key_set(page) == [8, 10, 12, 14]
