//! Error texts are our own: no text of a library leaves the engine, in any dialect.

use crate::common::Member;
use filbert_grid::query::Dialect;

/// Words that occur only in the texts of libraries.
const WORDS: [&str; 32] = [
    "DataFusion",
    "datafusion",
    "Arrow",
    "arrow_",
    "sqlparser",
    "sql parser",
    "Schema error",
    "Error during planning",
    "Internal error",
    "Execution error",
    "External error",
    "Optimizer rule",
    "not implemented",
    "LogicalPlan",
    "Utf8",
    "Int64",
    "Int32",
    "Int16",
    "Float64",
    "Decimal128",
    "Decimal256",
    "Timestamp(",
    "ScalarFunction",
    "ScalarValue",
    "Expr",
    "panicked",
    "backtrace",
    "bug in",
    "Candidate functions",
    "Signature",
    "coerce",
    "valid_fields",
];

const STATEMENTS: [&str; 118] = [
    "SELECT nothing FROM t",
    "SELECT t.nothing FROM t",
    "SELECT x.a FROM t",
    "SELECT a FROM t AS x, t AS y",
    "SELECT * FROM nothing",
    "SELECT nothing(a) FROM t",
    "SELECT a + s FROM t",
    "SELECT a + true FROM t",
    "SELECT s * 2 FROM t",
    "SELECT -s FROM t",
    "SELECT NOT a FROM t",
    "SELECT a AND true FROM t",
    "SELECT a || ARRAY[1] FROM t",
    "SELECT a = ARRAY[1] FROM t",
    "SELECT a < true FROM t",
    "SELECT * FROM t WHERE a",
    "SELECT * FROM t WHERE s",
    "SELECT * FROM t WHERE a + 1",
    "SELECT * FROM t HAVING a > 1",
    "SELECT a, sum(f) FROM t",
    "SELECT a, b FROM t GROUP BY a",
    "SELECT a FROM t GROUP BY a ORDER BY b",
    "SELECT sum(sum(a)) FROM t",
    "SELECT a FROM t WHERE sum(a) > 1",
    "SELECT sum(s) FROM t",
    "SELECT avg(s) FROM t",
    "SELECT sum(true) FROM t",
    "SELECT abs(s) FROM t",
    "SELECT abs() FROM t",
    "SELECT abs(1, 2, 3) FROM t",
    "SELECT sqrt(true)",
    "SELECT round('x')",
    "SELECT power(1)",
    "SELECT mod('a', 'b')",
    "SELECT upper(ARRAY[1])",
    "SELECT upper(1, 2)",
    "SELECT substr(1)",
    "SELECT substr('abc', 'x')",
    "SELECT substr('abc', 1, -1)",
    "SELECT split_part('a,b', ',', 0)",
    "SELECT lpad('a', -2, 'b')",
    "SELECT repeat('a', 9999999999)",
    "SELECT chr(-1)",
    "SELECT chr(0)",
    "SELECT regexp_replace('a', '(', 'b')",
    "SELECT 'a' ~ '('",
    "SELECT to_timestamp('nonsense', 'nonsense')",
    "SELECT date_trunc('nonsense', now())",
    "SELECT extract(nonsense FROM now())",
    "SELECT date_part('nonsense', now())",
    "SELECT 'x'::int",
    "SELECT CAST('x' AS DOUBLE PRECISION)",
    "SELECT CAST('x' AS BOOLEAN)",
    "SELECT CAST('x' AS DATE)",
    "SELECT CAST('x' AS TIME)",
    "SELECT CAST('x' AS TIMESTAMP)",
    "SELECT CAST('x' AS DECIMAL(5, 2))",
    "SELECT CAST(123456 AS DECIMAL(5, 2))",
    "SELECT CAST(99999999999 AS INT)",
    "SELECT CAST(1e10 AS SMALLINT)",
    "SELECT CAST(true AS DATE)",
    "SELECT CAST(now() AS INT)",
    "SELECT CAST(DATE '2024-01-01' AS BOOLEAN)",
    "SELECT CAST(1 AS nonsense)",
    "SELECT DATE 'nonsense'",
    "SELECT INTERVAL 'nonsense'",
    "SELECT 1 / 0",
    "SELECT a / 0 FROM t",
    "SELECT 1 % 0",
    "SELECT 9223372036854775807 + 1",
    "SELECT 9223372036854775807 * 2",
    "SELECT -9223372036854775808 - 1",
    "SELECT CAST(99.99 AS DECIMAL(4, 2)) + CAST(1e30 AS DECIMAL(38, 0)) * CAST(1e30 AS DECIMAL(38, 0))",
    "SELECT (SELECT a FROM t)",
    "SELECT (SELECT a, b FROM t)",
    "SELECT * FROM t WHERE a = (SELECT a FROM t)",
    "SELECT * FROM t WHERE a IN (SELECT a, b FROM t)",
    "SELECT * FROM t WHERE a IN (SELECT s FROM t)",
    "SELECT * FROM t WHERE a IN (1, 'x')",
    "SELECT a FROM t UNION SELECT a, b FROM t",
    "SELECT a FROM t UNION SELECT ARRAY[1]",
    "SELECT a FROM t ORDER BY 5",
    "SELECT a FROM t ORDER BY nothing",
    "SELECT a FROM t LIMIT -1",
    "SELECT a FROM t LIMIT 'x'",
    "SELECT a FROM t OFFSET -1",
    "SELECT DISTINCT a FROM t ORDER BY b",
    "SELECT CASE WHEN a THEN 1 END FROM t",
    "SELECT CASE WHEN a > 1 THEN 1 ELSE 'x' END FROM t",
    "SELECT CASE a WHEN 'x' THEN 1 END FROM t",
    "SELECT coalesce(a, 'x') FROM t",
    "SELECT coalesce(a, true) FROM t",
    "SELECT a BETWEEN 'x' AND 'y' FROM t",
    "SELECT a LIKE 'x' FROM t",
    "SELECT s LIKE 'x' ESCAPE 'yy' FROM t",
    "SELECT row_number() FROM t",
    "SELECT rank() OVER (ORDER BY nothing) FROM t",
    "SELECT sum(a) OVER (ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t",
    "SELECT sum(a) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT sum(a) OVER nothing FROM t",
    "SELECT lag(a, 'x') OVER (ORDER BY a) FROM t",
    "SELECT * FROM t JOIN t AS u ON t.a",
    "SELECT * FROM t JOIN t AS u USING (nothing)",
    "SELECT * FROM generate_series(1, 'x')",
    "SELECT * FROM generate_series(1, 10, 0)",
    "SELECT * FROM (VALUES (1), (2, 3)) AS v",
    "SELECT * FROM (VALUES (1), ('x')) AS v",
    "SELECT * FROM t PIVOT (sum(a) FOR b IN (1))",
    "SELECT a[1] FROM t",
    "SELECT ARRAY[1, 'x']",
    "SELECT ARRAY[1][",
    "SELEC 1",
    "SELECT FROM WHERE",
    "SELECT 1 +",
    "SELECT 'x",
    "UPDATE t SET nothing = 1",
    "UPDATE t SET a = s || 'x' WHERE s = 'one'",
    "UPDATE t SET a = sum(a)",
];

const CHANGES: [&str; 14] = [
    "UPDATE t SET a = 'x' WHERE id = 1",
    "UPDATE t SET a = 1 / 0 WHERE id = 1",
    "UPDATE t SET a = 1 / 0",
    "UPDATE t SET a = nothing(a) WHERE id = 1",
    "UPDATE t SET a = coalesce(a, true) WHERE id = 1",
    "UPDATE t SET f = abs(s) WHERE id = 1",
    "INSERT INTO t (id, a) VALUES (9, 'x')",
    "INSERT INTO t (id, a) VALUES (9, 1 / 0)",
    "INSERT INTO t (id, a) VALUES (9, nothing)",
    "INSERT INTO t (id, a) SELECT 9, s FROM t",
    "INSERT INTO t (id, a) VALUES (9, 1, 2)",
    "DELETE FROM t WHERE nothing = 1",
    "DELETE FROM t WHERE a",
    "DELETE FROM t WHERE a = ARRAY[1]",
];

fn member(dialect: Dialect) -> Member {
    let member = Member::of(dialect);
    match dialect {
        Dialect::Hazelcast => {
            member.change(
                "CREATE MAPPING t (id INT EXTERNAL NAME \"__key.id\", a INT, b INT, f DOUBLE, s VARCHAR) TYPE IMap \
                 OPTIONS ('keyFormat' = 'json-flat', 'valueFormat' = 'json-flat')",
            );
        }
        _ => {
            member.change("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, f DOUBLE PRECISION, s TEXT)");
        }
    }
    member.change("INSERT INTO t (id, a, b, f, s) VALUES (1, 1, 2, 1.5, 'one'), (2, 3, 4, 2.5, 'two')");
    member
}

#[test]
fn no_error_has_the_words_of_a_library() {
    let mut found = Vec::new();
    for dialect in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
        let member = member(dialect);
        for statement in STATEMENTS.iter().chain(&CHANGES) {
            let Err(error) = member.try_rows(statement, &[]) else { continue };
            let words = WORDS.iter().filter(|word| error.message.contains(**word));
            if words.count() > 0 || error.sqlstate() == "XX000" {
                found.push(format!("{dialect:?}: {statement}\n    {}: {}", error.sqlstate(), error.message));
            }
        }
    }
    assert!(found.is_empty(), "{} errors\n{}", found.len(), found.join("\n"));
}
