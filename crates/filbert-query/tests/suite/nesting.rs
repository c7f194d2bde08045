//! Every form of expression, nested within itself thirty levels deep: it returns a result, or is
//! rejected as too complex. A form that doubles with each level would have a thousand million
//! copies of the innermost operand.

use std::sync::Arc;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

const LEVELS: usize = 30;
/// Far more time than a form that grows linearly with its levels needs, and far less than a form
/// that doubles.
const TIMEOUT_MS: u64 = 60_000;
/// A memory limit that data which doubles with each level would exceed.
const QUERY_BYTES: usize = 128 << 20;

/// The accepted SQLSTATEs: a result, too complex, or an expression that is not supported.
const ENDS: [&str; 6] = ["00000", "54001", "42P20", "42803", "0A000", "21000"];

/// Forms of a whole number: `@` is the operand, a whole number as well.
const NUMBERS: &[&str] = &[
    "(- @)",
    "(+ @)",
    "(@ / 2)",
    "(@ & 3)",
    "(0 - (@))",
    "((@) * 1.0)::int",
    "(@)::text::int",
    "abs(@)",
    "mod(@, 7)",
    "sign(@)::int",
    "power((@), 1)::int",
    "round((@)::numeric, 1)::int",
    "trunc((@)::numeric)::int",
    "to_char(@, '99')::int",
    "coalesce(@, 1)",
    "coalesce(a, @)",
    "coalesce(a, @, 1)",
    "nullif(@, 3)",
    "greatest(@, 2)",
    "least(@, a)",
    "CASE WHEN @ > 0 THEN 1 ELSE 2 END",
    "CASE WHEN a > 0 THEN @ ELSE 2 END",
    "CASE WHEN a > 0 THEN 2 ELSE @ END",
    "CASE @ WHEN 1 THEN 2 WHEN 2 THEN 4 WHEN 5 THEN 6 ELSE 3 END",
    "(CASE WHEN @ IN (1, 2, a) THEN 1 ELSE 2 END)",
    "(CASE WHEN @ BETWEEN 1 AND a THEN 1 ELSE 2 END)",
    "(CASE WHEN @ BETWEEN SYMMETRIC a AND id THEN 1 ELSE 2 END)",
    "(CASE WHEN @ IS DISTINCT FROM 2 THEN 1 ELSE 2 END)",
    "(CASE WHEN @ = ANY(array[1, 2, a]) THEN 1 ELSE 2 END)",
    "(CASE WHEN 1 = ANY(array[@]) THEN 1 ELSE 2 END)",
    "CASE WHEN (@)::text ILIKE '1%' THEN 1 ELSE 2 END",
    "CASE WHEN (@)::text SIMILAR TO '1%' THEN 1 ELSE 2 END",
    "CASE WHEN (@)::text ~ '1' THEN 1 ELSE 2 END",
    "((@) NOT BETWEEN 1 AND 3)::int",
    "((@) IS NULL)::int",
    "((@)::text LIKE '1%')::int",
    "((@ > 2) IS TRUE)::int",
    "(NOT (@ > 2))::int",
    "(@ > 2 OR a = 1)::int",
    "(@ > 2 AND a / id = 1)::int",
    "(@ IN (1, 2))::int",
    "(row(@, 1) = row(1, 1))::int",
    "(row(@, 1) < row(1, a))::int",
    "(row(@, 1) IN (row(1, a), row(2, 3)))::int",
    "(array[@, 1])[1]",
    "array_length(array_append(array[1], @), 1)",
    "(array(SELECT @))[1]",
    "length(concat('a', @))",
    "length('a' || (@)::text)",
    "length(lower((@)::text))",
    "length(substr('abcdefg', @))",
    "length(overlay('abcdef' PLACING 'x' FROM @))",
    "position('a' IN repeat('b', @))",
    "(date '2020-01-01' + @ - date '2020-01-01')",
    "extract(year FROM date '2020-01-01' + @)::int",
    "extract(day FROM timestamp '2020-01-01' + (@) * interval '1 day')::int",
    "extract(day FROM date_trunc('day', timestamp '2020-01-01' + make_interval(days => @)))::int",
    "(jsonb_build_object('a', @) ->> 'a')::int",
    "sum(@)",
    "max(coalesce(a, @))",
    "sum(a) FILTER (WHERE (@) > 0)",
    "(sum(@) OVER ())::int",
    "(sum(a) OVER (ORDER BY @))::int",
    "(sum(a) OVER (PARTITION BY @))::int",
    "lag(a, 1, @) OVER (ORDER BY id)",
    "(SELECT coalesce(@, 1))",
    "(SELECT max(x.a + @) FROM t x)",
    "(SELECT max(x.a) FROM t x WHERE x.a < @)",
    "(SELECT count(*) FILTER (WHERE x.a = @) FROM t x)::int",
    "(SELECT s.v FROM (SELECT @ AS v) s)",
    "(SELECT g FROM generate_series(1, @) g LIMIT 1)",
    "(SELECT x FROM (VALUES (@)) v(x))",
    "(SELECT max(x) FROM (SELECT @ AS x UNION ALL SELECT 1) u)",
    "(WITH w AS (SELECT @ AS x) SELECT x FROM w)",
    "(CASE WHEN EXISTS (SELECT 1 FROM t x WHERE x.a = @) THEN 1 ELSE 2 END)",
    "(@ IN (SELECT id FROM t))::int",
    "(@ > ALL (SELECT id FROM t))::int",
];

/// Forms of a truth value.
const CONDITIONS: &[&str] = &[
    "(NOT @)",
    "(@ AND b)",
    "(@ OR a = 1)",
    "(@ = b)",
    "(@ IS DISTINCT FROM b)",
    "((@) IS NOT TRUE)",
    "((@) BETWEEN false AND b)",
    "coalesce(@, b)",
    "(CASE WHEN @ THEN b ELSE false END)",
    "(@ IN (b, true))",
    "EXISTS (SELECT 1 FROM t x WHERE x.b = @)",
];

fn nested(form: &str, innermost: &str) -> String {
    let mut text = innermost.to_owned();
    for _ in 0..LEVELS {
        text = form.replace('@', &text);
    }
    format!("SELECT {text} FROM t")
}

#[test]
fn no_form_doubles_with_each_level() {
    let config = QueryConfig {
        query_memory_bytes_max: Some(QUERY_BYTES),
        timeout_ms: Some(TIMEOUT_MS),
        ..QueryConfig::default()
    };
    let mut member = Member::with(config);
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    member.change("CREATE TABLE t (id int PRIMARY KEY, a int, b boolean)");
    member.change("INSERT INTO t VALUES (1, 1, true), (2, 5, false)");
    let statements = NUMBERS.iter().map(|form| (form, "a")).chain(CONDITIONS.iter().map(|form| (form, "b")));
    let mut others = Vec::new();
    for (form, innermost) in statements {
        let state = match member.try_rows(&nested(form, innermost), &[]) {
            Ok(_) => "00000",
            Err(error) if ENDS.contains(&error.sqlstate()) => error.sqlstate(),
            Err(error) => {
                others.push(format!("{form}: {} {error}", error.sqlstate()));
                continue;
            }
        };
        println!("{state} {form}");
    }
    assert!(others.is_empty(), "{others:#?}");
}
