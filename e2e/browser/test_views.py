"""The other views: figures that move, maps that appear, statements that took long."""

from conftest import PEOPLE
from member import eventually


def test_the_overview_tells_of_the_member(page, client, people):
    page.open()
    page.sees("Cluster ")

    def entries():
        tiles = dict(zip(page.texts(".tile dt"), page.texts(".tile dd")))
        return int(tiles["Entries"].replace(",", ""))

    # The figures of the page are those of the last second.
    eventually(lambda: entries() >= PEOPLE)
    page.sees("console-test")
    page.sees("Python 5.7.0")
    assert "HTTP" in page.text() and len(page.all(".chart")) == 6


def test_charts_move(page, people):
    page.open()
    line = "return document.querySelector('.chart .plot path.s1').getAttribute('d')"
    eventually(lambda: page.script(line))
    before = page.script(line)

    def figures_are_told():
        # The legend tells the figure of now: reads go on until it is seen.
        for number in range(200):
            people.get(number % PEOPLE)
        figures = page.texts(".chart:first-child .legend b:first-of-type")
        return any(text not in ("–", "0") for text in figures)

    eventually(figures_are_told)
    eventually(lambda: page.script(line) != before)


def test_charts_stand_still_where_motion_is_not_wanted(page, people):
    page.media(still=True)
    page.open()
    seen = set()
    line = "return document.querySelector('.chart .plot path.s1').getAttribute('d')"

    def stood_still():
        seen.add(page.script(line))
        assert page.script("return document.getAnimations().length") == 0
        return len(seen) >= 3

    eventually(stood_still, 20)


def test_a_map_appears_when_a_client_makes_it(page, client):
    page.open("#/data")
    assert "made-just-now" not in page.text()
    made = client.get_map("made-just-now").blocking()
    made.put("a", 1)
    try:
        page.sees("made-just-now")
        made.put("b", 2)
        row = "tr:has(a[href='#/data/made-just-now']) td:nth-child(2)"
        eventually(lambda: page.text(row) == "2")
    finally:
        made.destroy()
    eventually(lambda: "made-just-now" not in page.text())


def test_the_list_is_sorted_and_filtered(page, client, people):
    small = client.get_map("people-small").blocking()
    small.put(1, 1)
    page.open("#/data?q=people")
    names = ".data-list td:first-child a"
    eventually(lambda: page.texts(names) == ["people", "people-small"])
    page.click(".data-list th:nth-child(2) button")
    assert page.texts(names) == ["people", "people-small"] and page.hash == "#/data?sort=entries&down=1&q=people"
    page.click(".data-list th:nth-child(2) button")
    assert page.texts(names) == ["people-small", "people"]
    assert page.find(".data-list th:nth-child(2)").get_attribute("aria-sort") == "ascending"
    page.find("#find").send_keys("-sm")
    eventually(lambda: page.texts(names) == ["people-small"])
    page.open(page.hash)
    eventually(lambda: page.texts(names) == ["people-small"])
    small.destroy()


def test_a_table_shows_its_columns_indexes_and_rows(page, people):
    page.open("#/data")
    eventually(lambda: page.all("a[href='#/data/people']"))
    page.click("a[href='#/data/people']")
    page.sees("people_age")
    page.sees("sorted")
    eventually(lambda: len(page.all("table.result tbody tr")) == 20)
    for column in ["name", "age", "city", "note"]:
        page.sees(column)
    page.open(page.hash)
    page.sees("people_age")
    page.click("main .view-head .button")
    eventually(lambda: len(page.all("#panel-result tbody tr")) == 20)


def test_slow_statements_are_listed_with_the_longest_first(page, people):
    page.open("#/sql").run("SELECT count(*) AS pairs FROM people a JOIN people b ON a.city = b.city")
    page.run("SELECT 1 / 0 AS never")
    page.open("#/slow")
    page.sees("AS pairs")
    page.sees("AS never")
    assert page.all(".slow-list .error"), "the reason is told"
    page.find("input[type=search]").send_keys("AS pairs")
    eventually(lambda: all("pairs" in text for text in page.texts(".slow-list pre")))
    page.click(".slow-list .expand")
    page.click(".row-tools button:nth-child(2)")
    eventually(lambda: page.all(".plan .step"))
    assert page.hash == "#/sql/plan"


def test_a_member_that_is_gone_is_told(page, member):
    page.open()
    page.driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    page.sees("No connection", ".live")
    online = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", online)
    eventually(lambda: page.script("return document.getElementById('live').dataset.state") == "live")
    page.driver.get_log("browser")
