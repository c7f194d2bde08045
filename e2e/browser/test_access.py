"""For everybody: the keyboard alone, small windows, dark colours, readers of screens."""

import pytest
from member import eventually
from page import DESKTOP, PHONE, Keys

PLACES = {"overview": "#/", "data": "#/data", "map": "#/data/people", "sql": "#/sql", "slow": "#/slow"}

# Texts whose contrast with what lies behind them is below that of WCAG's level AA.
CONTRAST = """
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
const parse = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const [r, g, b, a] = parse(getComputedStyle(at).backgroundColor);
    if (a > 250) return [r, g, b];
  }
  return [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
  if (node.closest("textarea, option, noscript, button:disabled, .skip, .toast")) continue;
  const style = getComputedStyle(node);
  const ink = luminance(parse(node.namespaceURI.endsWith("svg") ? style.fill : style.color));
  const paper = luminance(behind(node));
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
  if (contrast < needed) found.push(`${contrast.toFixed(2)} ${node.tagName}.${node.className} ${walker.currentNode.data.trim().slice(0, 40)}`);
}
return [...new Set(found)];
"""

# Controls without a name, ids used twice, references to what is not there.
NAMES = """
const found = [];
for (const node of document.querySelectorAll("button, a[href], input, select, textarea, [role]")) {
  if (!node.checkVisibility()) continue;
  if (["rowheader", "row", "gridcell", "status", "alert", "columnheader", "group"].includes(node.getAttribute("role"))) continue;
  const name = node.getAttribute("aria-label") ?? document.getElementById(node.getAttribute("aria-labelledby"))?.textContent ?? node.textContent;
  if (!name.trim()) found.push("no name: " + node.outerHTML.slice(0, 120));
}
const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
found.push(...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => "id twice: " + id));
for (const attribute of ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant"]) {
  for (const node of document.querySelectorAll(`[${attribute}]`)) {
    if (node.checkVisibility() && !document.getElementById(node.getAttribute(attribute))) found.push(`${attribute} of nothing: ${node.getAttribute(attribute)}`);
  }
}
if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
return found;
"""


def fill(page, view):
    """Waits until a view shows what it is for."""
    page.open(PLACES[view])
    if view == "sql":
        page.run("SELECT __key, name, age, city, note FROM people WHERE age > 30 ORDER BY age, __key LIMIT 200")
    ready = {"overview": ".chart .plot path.s1[d^=M]", "data": ".data-list tbody tr", "map": "table.result tbody tr", "sql": "table.result tbody tr", "slow": ".slow-list tbody tr"}
    eventually(lambda: page.all(ready[view]))


@pytest.mark.parametrize("view", PLACES)
@pytest.mark.parametrize("look", ["light", "dark", "phone", "phone-dark"])
def test_each_view_in_each_look(page, people, view, look):
    page.size(PHONE if "phone" in look else DESKTOP)
    page.media(dark="dark" in look)
    fill(page, view)
    page.shoot(f"{view}-{look}")
    assert page.script(NAMES) == []
    assert page.script(CONTRAST) == []
    assert page.script("return document.documentElement.scrollWidth <= innerWidth"), "the page is as wide as the window"
    if "phone" in look:
        small = page.script(
            "return [...document.querySelectorAll('#nav a, .button, .tabs button, .segments button')].filter((node) => node.checkVisibility()"
            " && node.getBoundingClientRect().height < 28).map((node) => node.outerHTML.slice(0, 80))"
        )
        assert small == [], "fingers find every button"


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_plan_error_and_completion_in_each_look(page, people, look):
    page.size(PHONE if look == "phone" else DESKTOP)
    page.media(dark=look == "dark")
    page.open("#/sql").write("SELECT city, count(*) AS people, avg(age) AS age FROM people WHERE age > 18 GROUP BY city ORDER BY people DESC")
    page.click("#explain")
    page.idle()
    eventually(lambda: page.all(".plan .step"))
    page.shoot(f"plan-{look}")
    assert page.script(CONTRAST) == [] and page.script(NAMES) == []
    page.run("SELECT nmae FROM people")
    page.sees("nmae", ".sql-failure")
    page.shoot(f"error-{look}")
    assert page.script(CONTRAST) == [] and page.script(NAMES) == []
    page.write("")
    page.find("textarea.area").send_keys("SELECT * FROM peo")
    eventually(lambda: page.texts("#choices li"))
    page.shoot(f"completion-{look}")
    assert page.script(NAMES) == []


def test_a_query_is_written_run_and_read_with_the_keyboard_alone(page, people):
    page.open()
    page.keys("g", "s")
    eventually(lambda: page.hash == "#/sql" and page.focused() == "SQL statement")
    page.chord(Keys.CONTROL, "a")
    page.keys("SELECT __key, name FROM people ORDER BY __key LIMIT 3")
    page.keys(Keys.ESCAPE)
    page.find("textarea.area").send_keys("")
    page.chord(Keys.CONTROL, Keys.ENTER)
    eventually(lambda: len(page.cells()) == 3)
    seen = []
    for _ in range(10):
        page.keys(Keys.TAB)
        seen.append(page.focused())
        assert page.script("return getComputedStyle(document.activeElement).outlineStyle") != "none", f"the focus is not seen: {seen}"
        if page.script("return document.activeElement.getAttribute('role')") == "gridcell":
            break
    assert seen[:3] == ["run", "explain", "Rows to read at most"] and "tab-result" in seen, seen
    page.keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert page.focused() == "Person 1"
    page.keys(Keys.ENTER)
    page.sees("Person 1", "#dialog")
    page.keys(Keys.ESCAPE)
    assert page.focused() == "Person 1"


def test_focus_is_never_caught(page, people):
    """Tab leads from the first control through the whole page, the editor too, and out of it again."""
    page.open("#/sql").run("SELECT 1 AS one")
    page.script("document.activeElement.blur(); document.getElementById('skip').focus()")
    seen = []
    for _ in range(40):
        page.keys(Keys.TAB)
        seen.append(page.focused())
        if page.script("return document.activeElement === document.body || document.activeElement.id === 'skip'"):
            break
    else:
        raise AssertionError(f"the focus goes in circles: {seen}")
    assert "SQL statement" in seen and "run" in seen and "theme" in seen


def test_shortcuts(page, people):
    page.open()
    page.keys("?")
    page.sees("Keyboard", "#dialog")
    page.keys(Keys.ESCAPE)
    page.keys("g", "d")
    eventually(lambda: page.hash == "#/data")
    page.keys("/")
    eventually(lambda: page.focused() == "find")
    page.keys("peop")
    eventually(lambda: page.hash == "#/data?q=peop")
    assert page.script("return document.getElementById('find').value") == "peop", "shortcuts are not heard while typing"
    page.keys(Keys.ENTER)
    eventually(lambda: page.hash.startswith("#/data/peop"))
    page.keys("g", "l")
    eventually(lambda: page.hash == "#/slow")
    page.keys("g", "o")
    eventually(lambda: page.hash == "#/")


def test_a_chart_is_read_with_the_arrow_keys(page, people):
    page.open()
    eventually(lambda: page.all(".chart .plot path.s1[d^=M]"))
    page.script("document.querySelector('.plot').focus()")
    page.keys(Keys.ARROW_LEFT)
    text = page.script("return document.activeElement.getAttribute('aria-valuetext')")
    assert "gets" in text and ":" in text
    assert page.text(".chart .at") != ""


def test_colours_follow_the_system_until_somebody_chooses(page):
    paper = "return getComputedStyle(document.body.parentElement).backgroundColor"
    page.media(dark=True)
    page.open()
    dark = page.script(paper)
    page.media(dark=False)
    light = page.script(paper)
    assert dark != light
    page.keys("t")
    assert page.script(paper) == dark
    page.sees("Dark", "#theme")
    page.open()
    assert page.script(paper) == dark, "the choice is kept"
    page.click("#theme")
    assert page.script(paper) == light
    page.click("#theme")
    assert page.script("return localStorage.getItem('filbert.theme')") is None


def test_the_place_survives_a_reload(page, people):
    for place, text in [("#/data/people", "people"), ("#/slow?by=shape", "Slow queries"), ("#/sql/plan", "No plan yet")]:
        page.open(place)
        page.sees(text)
        page.driver.refresh()
        page.sees(text)
        assert page.hash == place


def test_what_is_built_in_is_cached_and_guarded(page, member):
    page.open()
    answer = page.script(
        "return fetch('/_filbert/assets/console.js').then((answer) => [answer.status, Object.fromEntries(answer.headers)])"
    )
    status, headers = answer
    assert status == 200 and headers["etag"] and "script-src 'self'" in headers["content-security-policy"]
    foreign = page.script(
        "return [...performance.getEntriesByType('resource')].map((entry) => entry.name).filter((name) => !name.startsWith(location.origin))"
    )
    assert foreign == [], "nothing comes from elsewhere"
