//! Every form of list with many parts: it returns a result, or is rejected as too large. If each
//! part added a level to the plan, the plan would be too deep for the stack of a thread. If each
//! part copied the parts before it, no memory could hold the copies.

use std::sync::Arc;
use std::time::Instant;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

/// Numbers of parts, below and beyond the limits of most forms.
const COUNTS: [usize; 3] = [10, 100, 3_000];
/// Far more time than an accepted form needs.
const TIMEOUT_MS: u64 = 60_000;
const QUERY_BYTES: usize = 128 << 20;

/// The accepted SQLSTATEs: a result, too long, too complex, too large, or a statement that is not
/// supported.
const ENDS: [&str; 7] = ["00000", "54000", "54001", "54011", "42601", "53200", "0A000"];

/// A statement with a list.
struct Form {
    before: &'static str,
    /// `@` is the number of the part, `$` the number of the previous part.
    part: &'static str,
    separator: &'static str,
    after: &'static str,
}

const fn form(before: &'static str, part: &'static str, separator: &'static str, after: &'static str) -> Form {
    Form { before, part, separator, after }
}

const FORMS: &[Form] = &[
    // Items.
    form("SELECT ", "a + @", ", ", " FROM t"),
    form("SELECT ", "sum(a + @)", ", ", " FROM t"),
    form("SELECT ", "count(DISTINCT a + @)", ", ", " FROM t"),
    form("SELECT ", "count(*) FILTER (WHERE a = @)", ", ", " FROM t"),
    form("SELECT ", "array_agg(a ORDER BY a + @)", ", ", " FROM t"),
    form("SELECT ", "percentile_cont(0.5) WITHIN GROUP (ORDER BY a + @)", ", ", " FROM t"),
    form("SELECT ", "sum(a) OVER (PARTITION BY a % @ ORDER BY id)", ", ", " FROM t"),
    form("SELECT ", "sum(a) OVER (ORDER BY id ROWS @ PRECEDING)", ", ", " FROM t"),
    form("SELECT ", "sum(a + @) OVER w", ", ", " FROM t WINDOW w AS (ORDER BY id)"),
    form("SELECT count(*) OVER w0 FROM t WINDOW w0 AS (ORDER BY id), ", "w@ AS (PARTITION BY a % @)", ", ", ""),
    form("SELECT ", "unnest(ARRAY[id, @])", ", ", " FROM t"),
    form("SELECT ", "generate_series(1, @)", ", ", " FROM t WHERE id < 0"),
    form("SELECT DISTINCT ", "a % @", ", ", " FROM t"),
    form("SELECT DISTINCT ON (", "a % @", ", ", ") a FROM t"),
    // Subqueries.
    form("SELECT ", "(SELECT max(a) + @ FROM t)", ", ", " FROM t"),
    form("SELECT ", "(SELECT max(x.a) FROM t x WHERE x.id = t.id)", ", ", " FROM t"),
    form("SELECT ", "(SELECT max(x.a) FROM t x WHERE x.id = t.id + @)", ", ", " FROM t"),
    form("SELECT ", "(SELECT x.a FROM t x WHERE x.id < t.id ORDER BY x.id LIMIT 1)", ", ", " FROM t"),
    form("SELECT ", "EXISTS (SELECT 1 FROM t x WHERE x.a = t.a + @)", ", ", " FROM t"),
    form("SELECT ", "id IN (SELECT a + @ FROM t)", ", ", " FROM t"),
    form("SELECT ", "array(SELECT x.a FROM t x WHERE x.a > t.a + @)", ", ", " FROM t"),
    form("SELECT 1 FROM t WHERE ", "EXISTS (SELECT 1 FROM t x WHERE x.a = t.a + @)", " AND ", ""),
    form("SELECT 1 FROM t WHERE ", "EXISTS (SELECT 1 FROM t x WHERE x.a = t.a + @)", " OR ", ""),
    form("SELECT 1 FROM t WHERE ", "id NOT IN (SELECT a + @ FROM t)", " AND ", ""),
    form("SELECT 1 FROM t WHERE ", "id > ALL (SELECT x.a + @ FROM t x WHERE x.id = t.id)", " OR ", ""),
    form("SELECT 1 FROM t ORDER BY ", "(SELECT x.a FROM t x WHERE x.id = t.id + @)", ", ", ""),
    form("SELECT max(a) FROM t GROUP BY b HAVING ", "max(a) > (SELECT min(id) + @ FROM t)", " AND ", ""),
    form("SELECT CASE ", "WHEN a = @ THEN (SELECT max(x.a) FROM t x WHERE x.id = t.id)", " ", " END FROM t"),
    form("SELECT coalesce(", "(SELECT x.a FROM t x WHERE x.id = t.id + @)", ", ", ") FROM t"),
    // Conditions and expressions.
    form("SELECT 1 FROM t WHERE ", "a <> @", " AND ", ""),
    form("SELECT 1 FROM t WHERE ", "a = @", " OR ", ""),
    form("SELECT 1 FROM t WHERE ", "10 / (a + @) > 1", " AND ", ""),
    form("SELECT 1 FROM t WHERE ", "(a, id) > (@, $)", " OR ", ""),
    form("SELECT 1 FROM t WHERE ", "a::text LIKE '%@%'", " OR ", ""),
    form("SELECT 1 FROM t WHERE ", "a BETWEEN @ AND id", " OR ", ""),
    form("SELECT 1 FROM t WHERE a IN (", "@", ", ", ")"),
    form("SELECT 1 FROM t WHERE a NOT IN (", "id + @", ", ", ")"),
    form("SELECT 1 FROM t WHERE (a, id) IN (", "(@, $)", ", ", ")"),
    form("SELECT 1 FROM t WHERE a = ANY (ARRAY[", "id + @", ", ", "])"),
    form("SELECT CASE a ", "WHEN @ THEN id + @", " ", " END FROM t"),
    form("SELECT CASE ", "WHEN a / @ > id THEN a % @", " ", " END FROM t"),
    form("SELECT coalesce(", "nullif(a, @)", ", ", ") FROM t"),
    form("SELECT greatest(", "a % @", ", ", ") FROM t"),
    form("SELECT concat(", "a + @", ", ", ") FROM t"),
    form("SELECT ", "a", " + ", " FROM t"),
    form("SELECT ", "a::text", " || ", " FROM t"),
    form("SELECT ", "(a % @)::numeric", " * ", " FROM t"),
    form("SELECT a", "::bigint::int", "", " FROM t"),
    form("SELECT ", "-(", "", "a"),
    form("SELECT ARRAY[", "a + @", ", ", "] FROM t"),
    form("SELECT jsonb_build_object(", "'k@', a", ", ", ") FROM t"),
    form("SELECT '{}'::jsonb", " || jsonb_build_object('k@', a)", "", " FROM t"),
    form("SELECT '{}'::jsonb", " -> 'k@'", "", " FROM t"),
    form("SELECT now()", " + @ * interval '1 day'", "", " FROM t"),
    // Relations.
    form("SELECT 1 FROM ", "t t@", ", ", " WHERE t1.id < 0"),
    form("SELECT 1 FROM t t0", " JOIN t t@ ON t@.id = t$.id", "", ""),
    form("SELECT 1 FROM t t0", " LEFT JOIN t t@ ON t@.id = t0.a + @", "", ""),
    form("SELECT 1 FROM t t0", " FULL JOIN t t@ USING (id)", "", ""),
    form("SELECT 1 FROM t t0", " NATURAL JOIN t t@", "", ""),
    form("SELECT 1 FROM t", " CROSS JOIN generate_series(1, @) g@", "", " WHERE id < 0"),
    form("SELECT 1 FROM t", " CROSS JOIN unnest(ARRAY[1]) u@(v@)", "", ""),
    form("SELECT 1 FROM t", ", LATERAL (SELECT a FROM t x WHERE x.id = t.id) l@", "", ""),
    form("SELECT 1 FROM t", ", LATERAL (SELECT a FROM t x WHERE x.id = t.id + @) l@", "", ""),
    form("SELECT 1 FROM t", " LEFT JOIN LATERAL (SELECT a FROM t x WHERE x.id = t.id + @) l@ ON true", "", ""),
    form("SELECT 1 FROM t l0", ", LATERAL (SELECT id FROM t x WHERE x.id = l$.id) l@", "", ""),
    form("SELECT 1 FROM t l0", " LEFT JOIN LATERAL (SELECT max(id) id FROM t x WHERE x.id > l$.id) l@ ON true", "", ""),
    form("SELECT 1 FROM t l0", ", LATERAL unnest(ARRAY[l0.a, @]) l@", "", " WHERE l0.id < 0"),
    form("WITH c0 AS (SELECT id, a FROM t), ", "c@ AS (SELECT id, a + 1 AS a FROM c$ WHERE a > @)", ", ", " SELECT 1"),
    form("", "SELECT @ FROM t", " UNION ", ""),
    form("", "SELECT @ FROM t", " UNION ALL ", ""),
    form("", "SELECT @ FROM t", " EXCEPT ", ""),
    form("", "SELECT @ FROM t", " INTERSECT ", ""),
    form("", "(SELECT id FROM t ORDER BY a LIMIT @)", " UNION ALL ", " ORDER BY 1"),
    // Groups and sort keys.
    form("SELECT 1 FROM t GROUP BY ", "a % @", ", ", ""),
    form("SELECT 1 FROM t GROUP BY GROUPING SETS (", "(a, id)", ", ", ")"),
    form("SELECT count(*) FROM t GROUP BY ROLLUP (", "(a % @)", ", ", ")"),
    form("SELECT count(*) FROM t GROUP BY CUBE (", "(a % @)", ", ", ")"),
    form("SELECT a FROM t ORDER BY ", "a % @", ", ", ""),
    // Rows.
    form("VALUES ", "(@, 'x')", ", ", ""),
    form("SELECT v.* FROM t, LATERAL (VALUES ", "(@, a)", ", ", ") v"),
    form("INSERT INTO u VALUES ", "(@, 1, true)", ", ", " ON CONFLICT DO NOTHING"),
    form("UPDATE u SET ", "a = a + @", ", ", ""),
    form("DELETE FROM u WHERE ", "a = @ AND id = $", " OR ", ""),
    form("UPDATE u SET a = CASE ", "WHEN id = @ THEN (SELECT max(a) FROM t WHERE t.id = u.id)", " ", " END"),
];

/// Chains of `WITH` queries: each reads the previous one, and the statement reads the last one.
const CHAINS: &[(&str, &str)] = &[
    ("SELECT id, a FROM t", "SELECT id, a FROM c$"),
    ("SELECT id, a FROM t", "SELECT id, a + 1 AS a FROM c$ WHERE a > @"),
    ("SELECT id, a FROM t", "SELECT id, a FROM c$ ORDER BY a LIMIT @"),
    ("SELECT id, a FROM t", "SELECT id, max(a) AS a FROM c$ GROUP BY id"),
    ("SELECT id, a FROM t", "SELECT id, sum(a) OVER (ORDER BY id) AS a FROM c$"),
    ("SELECT id, a FROM t", "SELECT DISTINCT id, a FROM c$"),
    ("SELECT id, a FROM t", "SELECT id, a FROM c$ UNION SELECT id, @ FROM t"),
    ("SELECT id, a FROM t", "SELECT c.id, c.a FROM c$ c JOIN t ON t.id = c.id"),
    ("SELECT id, a FROM t", "SELECT c.id, d.a FROM c$ c JOIN c$ d ON d.id = c.id"),
    ("SELECT id, a FROM t", "SELECT id, (SELECT max(a) FROM t WHERE t.id = c.id) AS a FROM c$ c"),
    ("SELECT id, a FROM t", "SELECT id, a FROM c$ WHERE id IN (SELECT a FROM t)"),
];

fn numbered(part: &str, number: usize) -> String {
    part.replace('@', &number.to_string()).replace('$', &(number - 1).to_string())
}

fn statements(count: usize) -> impl Iterator<Item = (&'static str, String)> {
    let parts = move |part: &str, separator: &str| {
        (1..=count).map(|number| numbered(part, number)).collect::<Vec<_>>().join(separator)
    };
    let forms = FORMS.iter().map(move |form| {
        let Form { before, part, separator, after } = form;
        (*part, format!("{before}{}{after}", parts(part, separator)))
    });
    let chains = CHAINS.iter().map(move |(first, next)| {
        let queries = parts(&format!("c@ AS ({next})"), ", ");
        (*next, format!("WITH c0 AS ({first}), {queries} SELECT * FROM c{count}"))
    });
    forms.chain(chains)
}

fn member() -> Member {
    let config = QueryConfig {
        query_memory_bytes_max: Some(QUERY_BYTES),
        timeout_ms: Some(TIMEOUT_MS),
        ..QueryConfig::default()
    };
    let mut member = Member::with(config);
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    for table in ["t", "u"] {
        member.change(&format!("CREATE TABLE {table} (id int PRIMARY KEY, a int, b boolean)"));
        member.change(&format!("INSERT INTO {table} VALUES (1, 1, true), (2, 5, false)"));
    }
    member
}

#[test]
fn lists_of_any_length_are_answered_or_refused() {
    let member = member();
    let mut others = Vec::new();
    for count in COUNTS {
        for (part, text) in statements(count) {
            let began = Instant::now();
            let state = match member.try_rows(&text, &[]) {
                Ok(_) => "00000".to_owned(),
                Err(error) if ENDS.contains(&error.sqlstate()) => error.sqlstate().to_owned(),
                Err(error) => {
                    let told: String = error.to_string().chars().take(200).collect();
                    others.push(format!("{count} times {part}: {} {told}", error.sqlstate()));
                    continue;
                }
            };
            println!("{state} {count} times {part}: {} ms", began.elapsed().as_millis());
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}
