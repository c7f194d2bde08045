"""The page's modules by themselves, in the browser that runs them: texts cut at every place, plans, statements."""

import json

import pytest


@pytest.fixture
def module(page):
    """Runs a function's body with one of the page's modules as `m`."""
    page.open("#/slow")

    def call(name, body, *arguments):
        outcome = page.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; const given = arguments[0];"
            f"import('/_filbert/assets/{name}').then((m) => {{ {body} }})"
            ".then((value) => done({ value }), (error) => done({ error: String(error.stack) }))",
            list(arguments),
        )
        assert "error" not in outcome, outcome["error"]
        return outcome["value"]

    return call


READ = """
const [text, size, rowsMax] = given;
const reader = new m.RowReader(rowsMax);
for (let at = 0; at < text.length; at += size) reader.push(text.slice(at, at + size));
const { cols, rowcount } = reader.finish();
return JSON.stringify({ cols, rowcount, rows: reader.rows, isFull: reader.isFull, kept: reader.text.length });
"""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
def test_rows_are_read_from_pieces_of_any_size(module, size):
    rows = [[1, 'a "quoted" \\ text', None], [2, "]}[{,\\\\", {"rows": [[1, [2]]]}], [3, "ü\u2028😀", []], [True, "", -1.5e-7]]
    text = json.dumps({"cols": ["rows", "]", "x"], "col_types": [9, 4, 12], "rows": rows, "rowcount": 4, "duration": 0.1}, ensure_ascii=False)
    found = json.loads(module("request.js", READ, text, size, 10))
    assert found["rows"] == rows and found["cols"] == ["rows", "]", "x"] and found["rowcount"] == 4


def test_no_more_rows_are_kept_than_asked_for(module):
    text = json.dumps({"cols": ["n"], "rows": [[number] for number in range(1000)]})
    found = json.loads(module("request.js", READ, text, 16, 5))
    assert found["rows"] == [[0], [1], [2], [3], [4]] and found["isFull"] and found["kept"] < 40


def test_exactly_as_many_rows_as_asked_for_are_a_whole_result(module):
    text = json.dumps({"cols": ["n"], "rows": [[1], [2]], "rowcount": 2})
    assert json.loads(module("request.js", READ, text, 3, 2))["isFull"] is False


def test_an_answer_that_breaks_off_is_told(module):
    body = READ.replace("const { cols, rowcount } = reader.finish();", "try { reader.finish() } catch (error) { return error.message }")
    assert "broke off after 2 rows" in module("request.js", body, '{"cols":["n"],"rows":[[1],[2],[', 4, 10)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        ("  ; ;; -- only a comment", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';' ; SELECT \";\" -- ;\n; /* ; */ SELECT $$;$$", ["SELECT ';'", 'SELECT ";"', "SELECT $$;$$"]),
        ("SELECT 'not closed ; SELECT 2", ["SELECT 'not closed ; SELECT 2"]),
        ("SELECT 'it''s; fine'; VALUES (1)", ["SELECT 'it''s; fine'", "VALUES (1)"]),
    ],
)
def test_statements_are_divided_by_semicolons(module, text, expected):
    assert module("tokens.js", "return m.statements(given[0]).map(({ text }) => text)", text) == expected
    assert module("tokens.js", "return m.tokens(given[0]).map(({ text }) => text).join('')", text) == text


def test_names_are_quoted_where_sql_needs_it(module):
    names = ["people", "People", "select", "my-map", 'a"b', "ünï", "_x1", "1x"]
    expected = ["people", '"People"', '"select"', '"my-map"', '"a""b"', '"ünï"', "_x1", '"1x"']
    assert module("tokens.js", "return given[0].map(m.quoted)", names) == expected


def test_a_plan_is_read_into_a_tree(module):
    lines = [
        "3 rows in 8.412ms",
        "SortExec: expr=[a@0 DESC], metrics=[output_rows=3, elapsed_compute=31.25µs, row_replacements=3]",
        "  HashJoinExec: on=[(id@0, person@0)], metrics=[output_rows=4.21 M, elapsed_compute=1.5s]",
        "    MapScanExec: map=people, metrics=[output_rows=1.00 K, elapsed_compute=812ns, statistics=[Rows=Exact(3), Bytes=Absent]]",
        "    EmptyExec",
    ]
    plan = module("plan.js", "return JSON.parse(JSON.stringify(m.readPlan(given[0])))", lines)
    assert plan["total"] == {"rows": 3, "micros": 8412}
    sort = plan["roots"][0]
    join = sort["children"][0]
    scan, empty = join["children"]
    assert (sort["name"], sort["detail"], sort["rows"], sort["micros"]) == ("SortExec", "expr=[a@0 DESC]", 3, 31.25)
    assert (join["rows"], join["micros"], scan["rows"], scan["micros"]) == (4_210_000, 1_500_000, 1000, 0.812)
    assert (scan["detail"], empty["name"], empty["rows"]) == ("map=people", "EmptyExec", None)


@pytest.mark.parametrize(
    "function, value, expected",
    [
        ("short", 0, "0"), ("short", 999, "999"), ("short", 1234, "1.23 k"), ("short", 999_999, "1 M"), ("short", None, "–"),
        ("bytes", 0, "0 B"), ("bytes", 1023, "1023 B"), ("bytes", 1536, "1.5 KiB"), ("bytes", 1 << 40, "1 TiB"),
        ("micros", 0.25, "0.3 µs"), ("micros", 999.7, "1 ms"), ("micros", 12_345, "12.3 ms"), ("micros", 61_000_000, "61 s"),
    ],
)  # fmt: skip
def test_figures_have_three_digits_and_a_unit(module, function, value, expected):
    assert module("format.js", f"return m.{function}(given[0])", value) == expected
