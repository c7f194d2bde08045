"""Statements: typed, run, explained, failed, kept."""

import re

from conftest import CITIES, PEOPLE
from member import eventually
from page import Keys


def test_a_query_that_is_typed_shows_its_rows(page, people):
    page.open("#/sql").run("SELECT __key, name, age FROM people WHERE __key IN (3, 7) ORDER BY __key")
    assert page.cells() == [["3", "Person 3", "3"], ["7", "Person 7", "NULL"]]
    heads = page.texts("#panel-result thead th")[1:]
    assert [head.split() for head in heads] == [["__key", "integer"], ["name", "text"], ["age", "integer"]]
    page.sees("2 rows", ".sql-told")
    assert "null" in page.script("return document.querySelectorAll('#panel-result td')[5].className")


def test_a_plan_is_drawn_as_a_tree_with_rows_and_times(page, people):
    page.open("#/sql").write("SELECT city, count(*) AS people FROM people GROUP BY city ORDER BY people DESC")
    page.click("#explain")
    page.idle()
    page.sees(f"{len(CITIES)} rows in", ".plan-total")
    eventually(lambda: len(page.all(".plan .step")) >= 3)
    assert len(page.all(".plan ul .step")) >= 2, "steps stand within each other"
    assert page.hash == "#/sql/plan"
    times = page.texts(".plan .step-time b")
    assert times and all(re.fullmatch(r"[\d.]+ (µs|ms|s)", time) for time in times), times
    assert any(name.startswith("Scan") for name in page.texts(".plan .step-name")), page.texts(".plan .step-name")


def test_a_lookup_is_one_step(page, people):
    page.open("#/sql").write("SELECT name FROM people WHERE __key = 5")
    page.chord(Keys.CONTROL, Keys.SHIFT, Keys.ENTER)
    page.idle()
    eventually(lambda: len(page.all(".plan .step")) == 1)
    page.sees("1 row", ".plan .step-rows")


def test_the_place_of_an_error_is_marked(page, people):
    page.open("#/sql").run("SELECT name,\n  nmae\nFROM people")
    page.sees("nmae", ".sql-failure")
    assert page.texts(".t-wrong") == ["nmae"]
    assert page.texts(".gutter .wrong") == ["2"]
    page.run("SELECT name\nFROM WHERE")
    page.sees("line 2", ".sql-failure")
    assert page.texts(".t-wrong") == ["WHERE"]
    page.run("SELECT 1 AS one")
    assert page.cells() == [["1"]] and page.texts(".t-wrong") == []


def test_one_statement_of_many_runs(page, people):
    page.open("#/sql").write("SELECT 1 AS first;\n-- a ; in a comment\nSELECT ';' AS second")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.idle()
    assert page.cells() == [[";"]]
    page.chord(Keys.CONTROL, Keys.HOME)
    page.chord(Keys.CONTROL, Keys.ENTER)
    eventually(lambda: page.cells() == [["1"]])
    assert page.texts(".gutter .current") == ["1"]


def test_names_are_completed(page, people):
    page.open("#/sql")
    page.write("")
    page.find("textarea.area").send_keys("SELECT na")
    page.find("textarea.area").send_keys(" FROM peop")
    eventually(lambda: any(text.startswith("people") for text in page.texts("#choices li")))
    page.keys(Keys.TAB)
    assert page.script("return document.querySelector('textarea').value") == "SELECT na FROM people"
    page.keys(*[Keys.ARROW_LEFT] * len(" FROM people"))
    page.chord(Keys.CONTROL, " ")
    eventually(lambda: any(text.startswith("name") for text in page.texts("#choices li")))
    page.keys(Keys.ENTER)
    assert page.script("return document.querySelector('textarea').value") == "SELECT name FROM people"


def test_a_new_line_is_no_completion(page, people):
    page.open("#/sql").write("SELECT name\nFROM peop\nWHERE __key = 5")
    assert page.script("return document.querySelector('textarea').value") == "SELECT name\nFROM peop\nWHERE __key = 5"


def test_a_large_result_is_paged_and_cut_off(page, people):
    page.open("#/sql").run("SELECT __key FROM people ORDER BY __key")
    page.sees("first 1,000 rows", ".sql-told")
    assert len(page.cells()) == 100
    page.click(".grid-foot button:nth-of-type(2)")
    eventually(lambda: page.cells()[0] == ["100"])
    page.script("document.querySelector('.sql-bar select').value = '10000'; document.querySelector('.sql-bar select').dispatchEvent(new Event('change'))")
    page.click("#run")
    page.sees(f"{PEOPLE:,} rows", ".sql-told")


def test_rows_are_downloaded_as_csv(page, people):
    page.open("#/sql").run("SELECT __key, note, age FROM people WHERE __key IN (7, 11) ORDER BY __key")
    page.script(
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text }); return 'data:,' };"
        "HTMLAnchorElement.prototype.click = () => {};"
    )
    page.script("document.querySelector('#panel-result .grid-foot .tools:last-child button:last-child').dispatchEvent(new Event('click'))")
    eventually(lambda: page.script("return window.saved"))
    assert page.script("return window.saved") == '__key,note,age\r\n7,"says ""so"", and\nmore",\r\n11,"",11\r\n'


def test_a_value_of_many_lines_takes_one_row(page, people):
    page.open("#/sql").run("SELECT note FROM people WHERE __key = 1")
    assert page.cells() == [['says "so", and ↵ more']]
    page.click("#panel-result td")
    page.keys(Keys.ENTER)
    page.sees('says "so", and\nmore', "#dialog pre")


def test_numbers_keep_all_their_digits(page, people):
    page.open("#/sql").run("SELECT CAST(9007199254740993 AS BIGINT) AS large, CAST('12345678901234567.25' AS DECIMAL(30, 2)) AS exact")
    assert page.cells() == [["9007199254740993", "12345678901234567.25"]]


def test_history_survives_a_reload(page, people):
    page.open("#/sql").run("SELECT 41 + 1 AS answer")
    page.open("#/sql/history")
    assert page.script("return document.getElementById('tab-history').getAttribute('aria-selected')") == "true"
    page.sees("SELECT 41 + 1 AS answer", "#panel-history")
    page.write("SELECT 2")
    page.click("#panel-history li button")
    page.chord(Keys.CONTROL, Keys.ENTER)
    eventually(lambda: page.cells() == [["42"]])


def test_values_are_never_markup(page, people):
    page.open("#/sql").run("SELECT '<img src=x onerror=alert(1)>' AS \"<b>bold</b>\"")
    assert page.cells() == [["<img src=x onerror=alert(1)>"]]
    assert page.all("#panel-result img, #panel-result b") == []


def test_a_statement_that_runs_is_stopped(page, people):
    page.open("#/sql").write("SELECT sum(v) FROM TABLE(generate_series(1, 1000000000000)) AS t(v)")
    page.chord(Keys.CONTROL, Keys.ENTER)
    eventually(lambda: not page.script("return document.getElementById('stop').hidden"))
    page.sees("Running", ".sql-told")
    page.click("#stop")
    page.sees("Stopped after", ".sql-told")
    page.run("SELECT 5 AS five")
    assert page.cells() == [["5"]]


def test_statements_that_change_say_how_many_rows(page, client):
    page.open("#/sql").run("DROP MAPPING IF EXISTS pets")
    page.run("CREATE MAPPING pets (__key INTEGER, this VARCHAR) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='varchar')")
    page.sees("Done", "#panel-result")
    page.run("INSERT INTO pets VALUES (1, 'cat'), (2, 'dog')")
    page.sees("2 rows changed", "#panel-result")
    assert client.get_map("pets").blocking().get(2) == "dog"
