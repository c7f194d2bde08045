//! Statements that are hard to plan. They must end by themselves soon, with a plan or an error.

use std::fmt::Write;

use crate::load::Door::{Http, Postgres};
use crate::load::Expect::{Ends, Refused};
use crate::load::{Kind, Load, States, Table};
use crate::wire::http;

/// A statement is too complex, too long, or needs too much memory. The parser reports this as
/// 42601.
const TOO_MUCH: States = &["54001", "54000", "53200", "54011", "54023", "42601"];

/// A statement is too large, or too deeply nested to be parsed.
const TOO_DEEP: States = &["54001", "54000", "53200", "42601"];

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Planning);
    vec![
        t.made("100000-ands", || format!("SELECT count(*) FROM crowd WHERE {}", listed(100_000, " AND ", |i| format!("id <> {i}"))), Ends(TOO_MUCH)),
        t.made("100000-ors", || format!("SELECT count(*) FROM crowd WHERE {}", listed(100_000, " OR ", |i| format!("a = {i}"))), Ends(TOO_MUCH)),
        t.made("20000-ors-of-ands", || format!("SELECT count(*) FROM crowd WHERE {}", listed(20_000, " OR ", |i| format!("(a = {i} AND g < {i})"))), Ends(TOO_MUCH)),
        t.made("100000-in-elements", || format!("SELECT count(*) FROM crowd WHERE a IN ({})", listed(100_000, ", ", |i| i.to_string())), Ends(TOO_MUCH)),
        t.made("100000-in-texts", || format!("SELECT count(*) FROM crowd WHERE t NOT IN ({})", listed(100_000, ", ", |i| format!("'{i}'"))), Ends(TOO_MUCH)),
        t.made("array-of-1000000", || format!("SELECT cardinality(ARRAY[{}])", listed(1_000_000, ",", |i| (i % 10).to_string())), Ends(TOO_MUCH)),
        t.made("array-text-of-9mb", || format!("SELECT cardinality('{{{}}}'::int[])", listed(1_000_000, ",", |i| i.to_string())), Ends(TOO_MUCH)),
        t.made("values-of-100000-rows", || format!("SELECT count(*) FROM (VALUES {}) v", listed(100_000, ",", |i| format!("({i},'{i}')"))), Ends(TOO_MUCH)),
        t.made("values-of-10000-columns", || format!("SELECT * FROM (VALUES ({})) v", listed(10_000, ",", |i| i.to_string())), Ends(TOO_MUCH)),
        t.made("30000-columns", || format!("SELECT {} FROM crowd WHERE id = 1", listed(30_000, ", ", |i| format!("a + {i} AS c{i}"))), Ends(TOO_MUCH)),
        t.made("table-of-30000-columns", || format!("CREATE TABLE siege_wide (id INT PRIMARY KEY, {})", listed(30_000, ", ", |i| format!("c{i} INT"))), Ends(TOO_MUCH)),
        t.made("1000-joins", || joins(1_000), Refused(TOO_MUCH)).short(),
        t.made("400-joins", || joins(400), Ends(TOO_MUCH)),
        t.made("300-outer-joins-by-name", || format!("SELECT count(*) FROM crowd c0 {}", listed(300, " ", |i| format!("LEFT JOIN crowd d{i} ON d{i}.id = c0.a"))), Ends(TOO_MUCH)),
        t.made("10000-unions", || listed(10_000, " UNION ", |i| format!("SELECT {i}")), Refused(TOO_MUCH)).short(),
        t.made("10000-union-alls", || listed(10_000, " UNION ALL ", |i| format!("SELECT {i}")), Refused(TOO_MUCH)),
        t.made("400-unions-of-tables", || listed(400, " UNION ", |_| "SELECT a FROM crowd WHERE id < 10".to_owned()), Ends(TOO_MUCH)),
        t.made("ctes-double-40-times", || doubling_ctes(40, "SELECT 1 AS x"), Refused(TOO_MUCH)).short(),
        t.made("ctes-double-of-a-table", || doubling_ctes(40, "SELECT id AS x FROM crowd"), Refused(TOO_MUCH)),
        t.made("subqueries-double", || format!("SELECT {}", doubling_scalars(18)), Refused(TOO_MUCH)),
        t.made("scalar-subqueries-2000", || format!("SELECT {}", listed(2_000, ", ", |i| format!("(SELECT max(a) FROM crowd WHERE g = {i})"))), Refused(TOO_MUCH)),
        t.made("coalesce-in-coalesce", || nested("coalesce(", "a", ", 1)"), Refused(TOO_DEEP)).short(),
        t.made("coalesce-of-sums", || nested("coalesce(1 + ", "a", ", 1)"), Refused(TOO_DEEP)),
        t.made("between-in-case", || nested("CASE WHEN ", "a", " BETWEEN 1 AND g THEN 1 ELSE 2 END"), Refused(TOO_DEEP)).short(),
        t.made("not-between-as-number", || nested("((", "a", ") NOT BETWEEN 1 AND 3)::int"), Refused(TOO_DEEP)),
        t.made("truth-as-number", || nested("((", "a", " > 2) IS TRUE)::int"), Refused(TOO_DEEP)),
        t.made("in-subqueries-as-number", || nested("(", "a", " IN (SELECT id FROM crowd))::int"), Refused(TOO_DEEP)),
        t.made("correlated-subqueries", || nested("(SELECT max(x.a) FROM crowd x WHERE x.a < ", "a", ")"), Refused(TOO_DEEP)).short(),
        t.made("arrays-of-subqueries", || nested("ARRAY(SELECT ", "a", ")"), Refused(TOO_DEEP)),
        t.made("100000-parentheses", || format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)), Refused(TOO_DEEP)).short(),
        t.made("100000-nots", || format!("SELECT {}true", "NOT ".repeat(100_000)), Ends(TOO_DEEP)),
        t.made("100000-minuses", || format!("SELECT {}1", "- ".repeat(100_000)), Ends(TOO_DEEP)),
        t.made("100000-pluses", || format!("SELECT 1{}", " + 1".repeat(100_000)), Ends(&["54001", "54000", "53200", "42601", "22003"])),
        t.made("100000-casts", || format!("SELECT 1{}", "::int".repeat(100_000)), Ends(TOO_DEEP)),
        t.made("100000-pipes", || format!("SELECT length('a'{})", " || 'a'".repeat(100_000)), Ends(TOO_DEEP)),
        t.made("100000-subscripts", || format!("SELECT (ARRAY[1]){}", "[1]".repeat(100_000)), Ends(&["54001", "54000", "53200", "42601", "42804"])),
        t.made("deep-functions", || format!("SELECT {}1{}", "abs(".repeat(50_000), ")".repeat(50_000)), Refused(TOO_DEEP)),
        t.made("deep-subqueries", || format!("SELECT * FROM {}crowd{}", "(SELECT * FROM ".repeat(2_000), ") s".repeat(2_000)), Refused(TOO_DEEP)),
        t.made("deep-exists", || format!("SELECT count(*) FROM crowd WHERE {}true{}", "EXISTS (SELECT 1 FROM crowd WHERE ".repeat(490), ")".repeat(490)), Ends(TOO_DEEP)),
        t.made("deep-case", || format!("SELECT {}0{}", "CASE WHEN random() > 2 THEN 1 ELSE ".repeat(20_000), " END".repeat(20_000)), Refused(TOO_DEEP)),
        t.made("case-of-50000-branches", || format!("SELECT max(CASE a {} END) FROM crowd", listed(50_000, " ", |i| format!("WHEN {i} THEN {}", i + 1))), Ends(TOO_MUCH)),
        t.made("coalesce-of-50000", || format!("SELECT max(coalesce({})) FROM crowd", listed(50_000, ", ", |i| format!("nullif(a, {i})"))), Ends(TOO_MUCH)),
        t.made("5000-aggregates", || format!("SELECT {} FROM crowd", listed(5_000, ", ", |i| format!("sum(a + {i})"))), Ends(TOO_MUCH)),
        t.made("1000-window-functions", || format!("SELECT {} FROM crowd LIMIT 1", listed(1_000, ", ", |i| format!("sum(a) OVER (PARTITION BY g % {} ORDER BY id)", i + 2))), Refused(TOO_DEEP)),
        t.made("128-window-functions-in-7-queries", || format!("SELECT * FROM {}", (0..7).fold("crowd".to_owned(), |within, at| format!("(SELECT id, a, g, {} FROM {within}) s{at}", listed(128, ", ", |i| format!("sum(a) OVER (PARTITION BY g % {} ORDER BY id) w{i}", i + 2))))), Ends(TOO_MUCH)),
        t.made("with-chain-of-3000", || format!("WITH c0 AS (SELECT id FROM crowd){} SELECT count(*) FROM c3000", listed(3_000, "", |i| format!(", c{} AS (SELECT id + 1 AS id FROM c{i} WHERE id > {i})", i + 1))), Refused(TOO_DEEP)).short(),
        t.made("with-chain-of-200", || format!("WITH c0 AS (SELECT id FROM crowd){} SELECT count(*) FROM c200", listed(200, "", |i| format!(", c{} AS (SELECT id + 1 AS id FROM c{i} WHERE id > {i})", i + 1))), Ends(TOO_MUCH)),
        t.made("300-correlated-subqueries", || format!("SELECT {} FROM crowd c LIMIT 1", listed(300, ", ", |i| format!("(SELECT max(x.a) FROM crowd x WHERE x.id = c.id + {i})"))), Ends(TOO_MUCH)),
        t.made("100-lateral-joins", || format!("SELECT count(*) FROM crowd c{}", listed(100, "", |i| format!(", LATERAL (SELECT a FROM crowd x WHERE x.id = c.id + {i}) l{i}"))), Ends(TOO_MUCH)).short(),
        t.made("grouping-sets-cube-16", || format!("SELECT count(*) FROM crowd GROUP BY CUBE({})", listed(16, ", ", |i| format!("a % {}", i + 2))), Ends(&["54001", "54000", "53200", "54011", "0A000"])),
        t.made("order-by-20000", || format!("SELECT id FROM crowd ORDER BY {} LIMIT 1", listed(20_000, ", ", |i| format!("a % {}", i + 2))), Ends(TOO_MUCH)),
        t.made("insert-of-100000-rows", || format!("CREATE TABLE siege_rows (id INT PRIMARY KEY, t TEXT); INSERT INTO siege_rows VALUES {}", listed(100_000, ",", |i| format!("({i},'{i}')"))), Ends(TOO_MUCH)),
        t.made("text-of-9mb-literal", || format!("SELECT length('{}')", "x".repeat(9 << 20)), Ends(TOO_MUCH)),
        t.made("text-of-11mb", || format!("SELECT length('{}')", "x".repeat(11 << 20)), Refused(TOO_MUCH)).short(),
        t.made("identifier-of-9mb", || format!("SELECT 1 AS \"{}\"", "x".repeat(9 << 20)), Ends(&["54000", "54001", "53200", "42622"])),
        t.made("50000-statements-in-one", || "SELECT 1;".repeat(50_000), Ends(TOO_MUCH)),
        t.made("garbage-of-9mb", || "(SELECT ".repeat(1_000_000), Refused(TOO_DEEP)),
        t.made("comments-nested", || format!("{}SELECT 1{}", "/*".repeat(500_000), "*/".repeat(500_000)), Ends(TOO_DEEP)),
        t.does("views-of-views", Postgres, views_of_views).short(),
        t.does("http-100000-ands", Http, |target| async move {
            let text = format!("SELECT count(*) FROM crowd WHERE {}", listed(100_000, " AND ", |i| format!("id <> {i}")));
            let answer = target.http().await?.ask(&http::statement(&text)).await?;
            anyhow::ensure!(matches!(answer.status, 200 | 400 | 413 | 500), "{} {:.200}", answer.status, answer.body);
            Ok(answer.status.to_string())
        }),
    ]
}

/// Joins this number of pieces, numbered from 0.
fn listed(count: usize, between: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for index in 0..count {
        if index > 0 {
            text.push_str(between);
        }
        text.push_str(&piece(index));
    }
    text
}

/// A chain of self-joins of one table.
fn joins(count: usize) -> String {
    let joined = listed(count, " ", |i| format!("JOIN crowd t{} ON t{}.id = t{i}.a", i + 1, i + 1));
    format!("SELECT count(*) FROM crowd t0 {joined}")
}

/// Common table expressions. Each references the previous one twice.
fn doubling_ctes(count: usize, first: &str) -> String {
    let mut text = format!("WITH c0 AS ({first})");
    for step in 1..count {
        // Writing to a text cannot fail.
        let _ = write!(text, ", c{step} AS (SELECT l.x FROM c{before} l JOIN c{before} r ON l.x = r.x)", before = step - 1);
    }
    format!("{text} SELECT count(*) FROM c{}", count - 1)
}

/// Thirty levels of a form around an operand. A form that is planned with two copies of its operand
/// would have a thousand million copies of the innermost one.
fn nested(begin: &str, innermost: &str, end: &str) -> String {
    const LEVELS: usize = 30;
    format!("SELECT max({}{innermost}{}) FROM crowd", begin.repeat(LEVELS), end.repeat(LEVELS))
}

/// Nested scalar subqueries. Each contains two of the next level.
fn doubling_scalars(depth: usize) -> String {
    if depth == 0 {
        return "(SELECT max(a) FROM crowd)".to_owned();
    }
    let inner = doubling_scalars(depth - 1);
    format!("(SELECT {inner} + {inner})")
}

/// Views that each reference the previous view twice: one line each, but a plan with millions of
/// nodes.
async fn views_of_views(target: crate::target::Target) -> anyhow::Result<String> {
    const VIEWS: usize = 24;
    let mut session = target.session().await?;
    session.done("CREATE VIEW siege_view_00 AS SELECT id FROM crowd").await?;
    let mut refused = None;
    for view in 1..VIEWS {
        let before = view - 1;
        let text = format!(
            "CREATE VIEW siege_view_{view:02} AS \
             SELECT a.id FROM siege_view_{before:02} a JOIN siege_view_{before:02} b ON a.id = b.id"
        );
        let answer = session.run(&text).await?;
        if let Some(state) = answer.state() {
            refused = Some((view, state.to_owned()));
            break;
        }
    }
    let last = refused.as_ref().map_or(VIEWS, |(view, _)| *view) - 1;
    let answer = session.run(&format!("SELECT count(*) FROM siege_view_{last:02}")).await?;
    for view in (0..=last).rev() {
        session.done(&format!("DROP VIEW siege_view_{view:02}")).await?;
    }
    let told = match refused {
        Some((view, state)) => format!("view {view} refused with {state}, the last one {answer}"),
        None => format!("{VIEWS} views, the last one {answer}"),
    };
    anyhow::ensure!(told.contains("54001"), "{told}; 54001 is expected");
    Ok(told)
}
