//! Statements that are hard to execute: their rows exceed the memory or the time.

use crate::load::Door::Postgres;
use crate::load::Expect::{Cancelled, Closed, Ends, Refused};
use crate::load::{HOLD, Kind, Load, States, Table};
use crate::target::Target;

/// The query needs more memory than permitted, or a value is too large.
const NO_MEMORY: States = &["53200", "54000"];

/// The data of the member has reached the memory limit.
const FULL: States = &["53200", "53100", "54000"];

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Queries);
    vec![
        t.sql("cross-join-count", "SELECT count(*) FROM crowd a, crowd b", Cancelled(&[])).short(),
        t.sql("cross-join-of-three-closed", "SELECT count(*) FROM crowd a, crowd b, crowd c", Closed(&[])).short(),
        t.sql("cross-join-sum", "SELECT sum(a.a::bigint * b.a) FROM crowd a CROSS JOIN crowd b", Cancelled(&["22003"])),
        t.sql("nested-loop-join", "SELECT count(*) FROM crowd a JOIN crowd b ON a.a < b.a AND a.g <> b.g", Cancelled(NO_MEMORY)),
        t.sql("nested-loop-join-texts", "SELECT max(a.t || b.t) FROM crowd a JOIN crowd b ON a.t < b.t", Cancelled(NO_MEMORY)),
        t.sql("correlated-subquery", "SELECT count(*) FROM crowd a WHERE (SELECT count(*) FROM crowd b WHERE b.a > a.a) > 5", Cancelled(NO_MEMORY)),
        t.sql("lateral-per-row", "SELECT count(*) FROM crowd a, LATERAL (SELECT b.t FROM crowd b WHERE b.g <> a.g ORDER BY b.a LIMIT 1) x", Cancelled(&["53200", "54000", "0A000"])),
        t.sql("sort-of-a-product", "SELECT a.t || b.t AS x FROM crowd a, generate_series(1, 1000) AS b(t) ORDER BY x", Cancelled(NO_MEMORY)),
        t.sql("sort-of-a-series", "SELECT i FROM generate_series(1, 1000000000000) AS s(i) ORDER BY i DESC", Cancelled(&["53200", "53100"])).short(),
        t.sql("sort-of-a-series-closed", "SELECT i, repeat('x', 100) FROM generate_series(1, 1000000000000) AS s(i) ORDER BY i DESC", Closed(&["53200", "53100"])),
        t.sql("sort-of-wide-rows", "SELECT repeat(t, 200) AS x FROM crowd ORDER BY x DESC", Cancelled(NO_MEMORY)),
        t.sql("groups-without-end", "SELECT i % 100000000, count(*) FROM generate_series(1, 1000000000000) AS s(i) GROUP BY 1", Cancelled(NO_MEMORY)).short(),
        t.sql("groups-by-wide-texts", "SELECT repeat(t, 100), count(*) FROM crowd GROUP BY 1", Cancelled(NO_MEMORY)),
        t.sql("distinct-of-wide-rows", "SELECT count(*) FROM (SELECT DISTINCT repeat(t, 100), a FROM crowd) x", Cancelled(NO_MEMORY)),
        t.sql("distinct-counts", "SELECT g, count(DISTINCT a.t || b.i) FROM crowd a, generate_series(1, 1000) AS b(i) GROUP BY g", Cancelled(NO_MEMORY)),
        t.sql("hash-join-of-huge-sides", "SELECT count(*) FROM (SELECT i, repeat('x', 100) AS p FROM generate_series(1, 20000000) s(i)) l JOIN (SELECT i, repeat('y', 100) AS q FROM generate_series(1, 20000000) s(i)) r ON l.i = r.i AND l.p <> r.q", Cancelled(NO_MEMORY)).short(),
        t.sql("hash-join-of-one-value", "SELECT count(*) FROM crowd a JOIN crowd b ON a.id % 2 = b.id % 2", Cancelled(NO_MEMORY)),
        t.sql("full-join-of-products", "SELECT count(*) FROM (SELECT a.id + b.i AS k, a.t FROM crowd a, generate_series(1, 100) b(i)) x FULL JOIN (SELECT a.id + b.i AS k, a.t FROM crowd a, generate_series(1, 100) b(i)) y ON x.k = y.k", Cancelled(NO_MEMORY)),
        t.sql("anti-join-of-a-series", "SELECT count(*) FROM crowd WHERE id NOT IN (SELECT i FROM generate_series(1, 100000000) s(i))", Ends(NO_MEMORY)),
        t.sql("intersect-of-series", "SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000000) s(i) INTERSECT SELECT i FROM generate_series(2, 100000000) s(i)) x", Cancelled(NO_MEMORY)),
        t.sql("recursive-without-end", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 0 FROM r) SELECT count(*) FROM r", Cancelled(NO_MEMORY)).short(),
        t.sql("recursive-that-doubles", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r, generate_series(1, 2)) SELECT count(*) FROM r", Cancelled(NO_MEMORY)),
        t.sql("recursive-that-widens", "WITH RECURSIVE r(n) AS (SELECT 'x'::text UNION ALL SELECT n || n FROM r) SELECT max(length(n)) FROM r", Cancelled(NO_MEMORY)),
        t.sql("recursive-without-end-closed", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 0 FROM r) SELECT * FROM r WHERE n < 0", Closed(NO_MEMORY)),
        t.sql("windows-over-all", "SELECT max(s) FROM (SELECT sum(a::bigint) OVER (ORDER BY t ROWS BETWEEN 100000 PRECEDING AND 100000 FOLLOWING) AS s FROM crowd) x", Ends(NO_MEMORY)),
        t.sql("windows-of-frames", "SELECT max(s) FROM (SELECT count(DISTINCT t) OVER (ORDER BY id) AS s FROM crowd) x", Ends(&["53200", "54000", "0A000"])),
        t.sql("windows-over-a-series", "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY i % 1000) AS r FROM generate_series(1, 1000000000) s(i)) x", Cancelled(NO_MEMORY)),
        t.sql("windows-of-texts", "SELECT max(length(s)) FROM (SELECT string_agg(t, ',') OVER (ORDER BY id) AS s FROM crowd) x", Cancelled(&["53200", "54000", "0A000"])),
        t.sql("array-agg-of-everything", "SELECT cardinality(array_agg(repeat(t, 100))) FROM crowd", Refused(NO_MEMORY)),
        t.sql("string-agg-of-groups", "SELECT id % 3, string_agg(repeat('x', 3900), ',') FROM crowd GROUP BY id % 3", Refused(NO_MEMORY)),
        t.sql("array-agg-of-a-series", "SELECT cardinality(array_agg(i)) FROM generate_series(1, 1000000000000) AS s(i)", Cancelled(NO_MEMORY)),
        t.sql("array-agg-of-whole-texts", "SELECT length(array_agg(c.t || b.i)::text) FROM crowd c, generate_series(1, 100) AS b(i)", Cancelled(NO_MEMORY)),
        t.sql("percentiles-of-a-product", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a.a + b.i) FROM crowd a, generate_series(1, 10000) AS b(i)", Cancelled(&["53200", "54000", "0A000", "42883"])),
        t.sql("mode-of-texts", "SELECT mode() WITHIN GROUP (ORDER BY t || i) FROM crowd, generate_series(1, 1000) AS b(i)", Cancelled(&["53200", "54000", "0A000", "42883"])),
        t.sql("all-rows-to-a-client", "SELECT * FROM crowd a, generate_series(1, 100)", Cancelled(&[])),
        t.sql("wide-rows-to-a-client", "SELECT repeat(t, 20000) FROM crowd", Cancelled(NO_MEMORY)),
        t.sql("60mb-values-to-a-client", "SELECT repeat('x', 60000000) FROM crowd", Cancelled(NO_MEMORY)),
        t.sql("update-of-all-rows", "CREATE TABLE siege_change AS SELECT * FROM crowd; UPDATE siege_change SET t = t || 'y', a = a + 1", Ends(FULL)),
        t.sql("update-that-widens", "CREATE TABLE siege_widen AS SELECT * FROM crowd; UPDATE siege_widen SET t = repeat(t, 100)", Refused(FULL)).short(),
        t.sql("delete-of-all-rows", "CREATE TABLE siege_delete AS SELECT * FROM crowd; DELETE FROM siege_delete RETURNING *", Ends(FULL)),
        t.sql("returning-of-300000-rows", "CREATE TABLE siege_return (id INT PRIMARY KEY, t TEXT); INSERT INTO siege_return SELECT i, 'x' || i FROM generate_series(1, 300000) s(i) RETURNING *", Ends(FULL)),
        t.sql("returning-of-wide-rows", "CREATE TABLE siege_wide_return (id INT PRIMARY KEY, t TEXT); INSERT INTO siege_wide_return SELECT i, 'x' FROM generate_series(1, 300000) s(i) RETURNING repeat(t, 10000)", Ends(FULL)),
        t.sql("insert-without-end", "CREATE TABLE siege_insert (id BIGINT PRIMARY KEY, t TEXT); INSERT INTO siege_insert SELECT i, repeat('x', 100) FROM generate_series(1, 1000000000000) s(i)", Cancelled(FULL)).short(),
        t.sql("insert-without-end-closed", "CREATE TABLE siege_insert_closed (id BIGINT PRIMARY KEY, t TEXT); INSERT INTO siege_insert_closed SELECT i, repeat('x', 100) FROM generate_series(1, 1000000000000) s(i)", Closed(FULL)),
        t.sql("create-as-without-end", "CREATE TABLE siege_as AS SELECT i, repeat('x', 100) AS t FROM generate_series(1, 1000000000000) s(i)", Cancelled(FULL)),
        t.sql("create-as-of-a-product", "CREATE TABLE siege_product AS SELECT a.id AS x, b.id AS y FROM crowd a, crowd b", Cancelled(FULL)),
        t.sql("insert-of-wide-values", "CREATE TABLE siege_values (id INT PRIMARY KEY, t TEXT); INSERT INTO siege_values SELECT i, repeat('x', 50000000) FROM generate_series(1, 100) s(i)", Refused(FULL)),
        t.sql("conflicts-without-end", "CREATE TABLE siege_conflict (id INT PRIMARY KEY, n BIGINT); INSERT INTO siege_conflict SELECT i % 10, i FROM generate_series(1, 1000000000) s(i) ON CONFLICT (id) DO UPDATE SET n = siege_conflict.n + 1", Cancelled(&["53200", "53100", "54000", "21000"])),
        t.sql("indexes-of-all-columns", "CREATE TABLE siege_index AS SELECT * FROM crowd; CREATE INDEX ON siege_index (a); CREATE INDEX ON siege_index (g); CREATE INDEX ON siege_index (t)", Ends(FULL)),
        t.sql("alter-rewrites-all-rows", "CREATE TABLE siege_alter AS SELECT * FROM crowd; ALTER TABLE siege_alter ADD COLUMN w TEXT DEFAULT repeat('x', 1000)", Ends(&["53200", "53100", "54000", "0A000"])),
        t.sql("catalog-product", "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d", Ends(NO_MEMORY)),
        t.does("long-statements-by-100", Postgres, long_statements).short(),
        t.does("statement-timeout-holds", Postgres, timeout_holds),
    ]
}

/// Statements that compute for long, and whose steps are short.
const LONG: [&str; 4] = [
    "SELECT g, count(*), max(t), sum(length(t)) FROM crowd, generate_series(1, 20) GROUP BY g",
    "SELECT count(DISTINCT t || i) FROM crowd, generate_series(1, 3) AS s(i)",
    "SELECT count(*) FROM crowd, generate_series(1, 10) WHERE t ~ '[0-9]+9[0-9]*8'",
    "SELECT count(*) FROM crowd a JOIN crowd b ON a.id = b.id WHERE a.t <> b.t || 'x'",
];

/// A hundred sessions with one long statement after the other. Short statements pass them: see the
/// latencies of the bystanders. A hundred joins may need more memory than all queries have
/// together. Some are refused then, which takes no time, so a session may be refused many times
/// while another statement computes: their proportion says nothing.
async fn long_statements(target: Target) -> anyhow::Result<String> {
    let begun = std::time::Instant::now();
    let counts = super::crowd(100, |index| async move {
        let mut session = target.session().await?;
        let (mut done, mut refused) = (0, 0);
        for text in LONG.iter().cycle().skip(index) {
            if begun.elapsed() > 4 * HOLD {
                break;
            }
            let answer = session.run(text).await?;
            match answer.state() {
                None => done += 1,
                Some("53200") => refused += 1,
                Some(_) => anyhow::bail!("{text:.60}: {answer}"),
            }
        }
        Ok((done, refused))
    });
    let counts = counts.await?;
    let done: usize = counts.iter().map(|(done, _)| done).sum();
    let refused: usize = counts.iter().map(|(_, refused)| refused).sum();
    anyhow::ensure!(done >= LONG.len(), "{done} statements done, {refused} refused");
    Ok(format!("{done} statements done, {refused} refused"))
}

/// A statement timeout ends its statements, without a cancel request of the client.
async fn timeout_holds(target: Target) -> anyhow::Result<String> {
    let mut session = target.session().await?;
    session.done("SET statement_timeout = '1s'").await?;
    let mut longest = 0;
    for text in [
        "SELECT count(*) FROM crowd a, crowd b",
        "SELECT max(reverse(repeat(t, 300))) FROM crowd, generate_series(1, 1000)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 0 FROM r) SELECT count(*) FROM r",
        "SELECT i FROM generate_series(1, 1000000000000) AS s(i) ORDER BY i DESC",
    ] {
        let begun = std::time::Instant::now();
        let answer = session.run(text).await?;
        let took = begun.elapsed().as_millis();
        anyhow::ensure!(matches!(answer.state(), Some("57014" | "53200")), "{text:.60}: {answer} after {took} ms");
        anyhow::ensure!(took < 5_000, "{text:.60}: ended by its limit of 1 s after {took} ms");
        longest = longest.max(took);
    }
    Ok(format!("57014 after {longest} ms at most"))
}
