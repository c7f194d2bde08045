"""The member, its data, and a browser: one member and one browser for all tests, a new tab's state for each.

By hand: `FILBERT_E2E_MEMBER='["target/release/filbert"]' pytest e2e/browser`, with the packages of requirements.txt and Debian's
`chromium` and `chromium-driver`. Pictures of every view go into the folder that FILBERT_ARTEFACTS names, or into `artefacts`.
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import hazelcast  # noqa: E402
from hazelcast.core import HazelcastJsonValue  # noqa: E402
from member import Member, eventually  # noqa: E402
from page import Page, browser  # noqa: E402

CITIES = ["London", "Arlington", "Utrecht", "Boston", "Zürich"]
PEOPLE = 3000


@pytest.fixture(scope="session")
def member():
    with Member() as member:
        eventually(lambda: member.http_port)
        yield member


@pytest.fixture(scope="session")
def client(member):
    client = hazelcast.HazelcastClient(cluster_members=[member.address], client_name="console-test", labels=["e2e"])
    yield client
    client.shutdown()


@pytest.fixture(scope="session")
def people(client):
    """A table of people, filled by a Hazelcast client, with an index; and a few gets, so that charts have something to show."""
    client.sql.execute(
        "CREATE MAPPING IF NOT EXISTS people (__key INTEGER, name VARCHAR, age INTEGER, city VARCHAR, note VARCHAR)"
        " TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat')"
    ).result()
    people = client.get_map("people").blocking()
    people.put_all(
        {
            number: HazelcastJsonValue(
                {
                    "name": f"Person {number}",
                    "age": None if number % 7 == 0 else number % 90,
                    "city": CITIES[number % len(CITIES)],
                    "note": "" if number % 11 == 0 else 'says "so", and\nmore',
                }
            )
            for number in range(PEOPLE)
        }
    )
    people.add_index(["age"], name="people_age")
    for number in range(200):
        people.get(number)
    return people


@pytest.fixture(scope="session")
def driver():
    driver = browser()
    yield driver
    driver.quit()


@pytest.fixture
def page(driver, member):
    page = Page(driver, f"http://127.0.0.1:{member.http_port}/")
    page.reset()
    yield page
    assert page.complaints() == []
