//! Statements and their parsed forms.

use super::*;

fn statement(text: &str) -> Parsed {
    match parse(text, Dialect::Hazelcast, &Limits::default(), &DefaultPlace) {
        Ok(statement) => statement.parsed,
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn error(text: &str, expected: &str) {
    match parse(text, Dialect::Hazelcast, &Limits::default(), &DefaultPlace) {
        Ok(statement) => panic!("{text} is {:?}", statement.parsed),
        Err(error) => assert!(error.message.contains(expected), "{text}: {}", error.message),
    }
}

#[track_caller]
fn query(text: &str, expected: &str) {
    match statement(text) {
        Parsed::Query(query) => assert_eq!(query.to_string(), expected),
        other => panic!("{text} is {other:?}"),
    }
}

#[track_caller]
fn expression(text: &str, expected: &str) {
    query(&format!("SELECT {text}"), &format!("SELECT {expected}"));
}

#[test]
fn a_mapping_has_columns_external_names_and_options() {
    let Parsed::CreateMapping(mapping) = statement(
        "create or replace external mapping hazelcast.public.\"my-map\" external name \"other\" (
            __key INT, Name VARCHAR EXTERNAL NAME \"this.name\", c CHARACTER VARYING external name this.c,
            price DECIMAL(10, 2), d DEC, t TIMESTAMP WITH TIME ZONE, o OBJECT, j JSON, x DOUBLE PRECISION, y DOUBLE,
            a INT[], b BIGINT ARRAY, k REAL, l TIMESTAMP, u UUID
        ) type IMap options ('keyFormat'='int', 'valueFormat' = 'json-flat');",
    ) else {
        panic!("no mapping")
    };
    assert!(mapping.or_replace && !mapping.if_not_exists);
    assert_eq!((mapping.name.as_str(), mapping.external_name.as_deref()), ("my-map", Some("other")));
    let columns: Vec<String> = mapping
        .columns
        .iter()
        .map(|column| {
            format!("{} {} {}", column.name, column.field_type, column.external_name.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        columns,
        [
            "__key INTEGER -",
            "Name VARCHAR this.name",
            "c VARCHAR this.c",
            "price DECIMAL(10, 2) -",
            "d DECIMAL -",
            "t TIMESTAMP WITH TIME ZONE -",
            "o OBJECT -",
            "j JSON -",
            "x DOUBLE -",
            "y DOUBLE -",
            "a INTEGER[] -",
            "b BIGINT[] -",
            "k REAL -",
            "l TIMESTAMP -",
            "u UUID -",
        ]
    );
    assert_eq!(mapping.options[1], ("valueFormat".to_owned(), "json-flat".to_owned()));
}

#[test]
fn statements_of_schemas_are_understood() {
    for (text, expected) in [
        ("DROP MAPPING IF EXISTS m", Parsed::DropMapping { name: "m".into(), if_exists: true }),
        ("drop external mapping public.m;", Parsed::DropMapping { name: "m".into(), if_exists: false }),
        ("DROP INDEX i ON m", Parsed::DropIndex { name: "i".into(), map: Some("m".into()), if_exists: false }),
        ("DROP VIEW IF EXISTS v", Parsed::DropView { names: vec!["v".into()], if_exists: true, cascade: false }),
        ("SHOW MAPPINGS", Parsed::Show(ShowWhat::Mappings)),
        ("SHOW EXTERNAL MAPPINGS", Parsed::Show(ShowWhat::Mappings)),
        ("show views", Parsed::Show(ShowWhat::Views)),
        ("SHOW JOBS", Parsed::Show(ShowWhat::Jobs)),
        ("SHOW DATA CONNECTIONS", Parsed::Show(ShowWhat::DataConnections)),
        ("SHOW INDEXES ON m", Parsed::Show(ShowWhat::Indexes(Some("m".into())))),
        (
            "CREATE INDEX IF NOT EXISTS i ON m (a, this.b) TYPE HASH",
            Parsed::CreateIndex(CreateIndex {
                name: Some("i".into()),
                map: "m".into(),
                kind: IndexType::Hash,
                attributes: vec!["a".into(), "this.b".into()],
                unique: false,
                if_not_exists: true,
                options: vec![],
            }),
        ),
        (
            "CREATE INDEX i ON m (a)",
            Parsed::CreateIndex(CreateIndex {
                name: Some("i".into()),
                map: "m".into(),
                kind: IndexType::Sorted,
                attributes: vec!["a".into()],
                unique: false,
                if_not_exists: false,
                options: vec![],
            }),
        ),
    ] {
        assert_eq!(statement(text), expected, "{text}");
    }
    let Parsed::CreateView { query_text, name, or_replace, .. } =
        statement("CREATE OR REPLACE VIEW v AS\n  SELECT 'ä', a\n  FROM m ;  ")
    else {
        panic!("no view")
    };
    assert_eq!((query_text.as_str(), name.as_str(), or_replace), ("SELECT 'ä', a\n  FROM m", "v", true));
}

#[test]
fn changes_are_understood() {
    let Parsed::Insert(insert) = statement("SINK INTO public.m(__key, this) VALUES (?, ?), (1, 'a')") else {
        panic!("no insert")
    };
    assert!(insert.sink);
    assert_eq!((insert.table.as_str(), insert.columns.join(" ")), ("m", "__key this".to_owned()));
    assert_eq!(insert.source.as_ref().map(ToString::to_string).as_deref(), Some("VALUES ($1, $2), (1, 'a')"));
    let Parsed::Insert(insert) = statement("INSERT INTO m SELECT * FROM n") else { panic!("no insert") };
    assert!(!insert.sink && insert.columns.is_empty());
    let Parsed::Update(update) = statement("UPDATE m AS x SET a = a + 1, \"B\" = ? WHERE __key = ?") else {
        panic!("no update")
    };
    assert_eq!((update.table.as_str(), update.alias.as_deref()), ("m", Some("x")));
    assert_eq!(update.assignments[1].0, "B");
    assert_eq!(update.selection.unwrap().to_string(), "__key = $2");
    let Parsed::Delete(delete) = statement("DELETE FROM m WHERE a IN (SELECT b FROM n)") else { panic!("no delete") };
    assert_eq!(delete.table, "m");
    let Parsed::Delete(delete) = statement("WITH a AS (SELECT b FROM n) DELETE FROM m WHERE c IN (SELECT b FROM a)")
    else {
        panic!("no delete")
    };
    assert_eq!(delete.with.unwrap().to_string(), "WITH a AS (SELECT b FROM n)");
    let Parsed::Insert(insert) = statement("WITH a AS (SELECT b FROM n) INSERT INTO m SELECT * FROM a") else {
        panic!("no insert")
    };
    assert_eq!(insert.source.unwrap().to_string(), "WITH a AS (SELECT b FROM n) SELECT * FROM a");
    let Parsed::Explain { analyze: true, statement } = statement("EXPLAIN ANALYZE DELETE FROM m") else {
        panic!("no explain")
    };
    let Parsed::Delete(delete) = *statement else { panic!("no delete") };
    assert!(delete.table == "m" && delete.using.is_empty() && delete.selection.is_none());
    assert!(matches!(super::tests::statement("EXPLAIN PLAN FOR SELECT 1"), Parsed::Explain { analyze: false, .. }));
}

#[test]
fn parameters_are_numbered_in_the_order_of_the_text() {
    query("SELECT ?, a FROM m WHERE b = ? AND c IN (?,?)", "SELECT $1, a FROM m WHERE b = $2 AND c IN ($3, $4)");
    query("SELECT '?', \"?\" FROM m -- ?\n WHERE a=?", "SELECT '?', \"?\" FROM m WHERE a = $1");
    query("SELECT a WHERE ?<>? AND ?-1>?", "SELECT a WHERE $1 <> $2 AND $3 - 1 > $4");
    assert_eq!(parse("SELECT ? + ?", Dialect::Hazelcast, &Limits::default(), &DefaultPlace).unwrap().parameters, 2);
    let many = format!("SELECT {}", vec!["?"; 65_536].join(","));
    error(&many, "65536 parameters, more than the 65535");
}

#[test]
fn json_functions_become_calls() {
    for (text, expected) in [
        ("json_value(this, '$.a')", "json_value(this, '$.a', 'VARCHAR', 'NULL', 'NULL')"),
        (
            "JSON_VALUE(this, '$.a' RETURNING INTEGER NULL ON EMPTY ERROR ON ERROR)",
            "json_value(this, '$.a', 'INTEGER', 'NULL', 'ERROR')",
        ),
        (
            "JSON_VALUE(this, '$.a' RETURNING VARCHAR DEFAULT 'x' ON EMPTY)",
            "json_value(this, '$.a', 'VARCHAR', 'DEFAULT', 'NULL', 'x', NULL)",
        ),
        ("JSON_QUERY(this, '$.a' WITH WRAPPER)", "json_query(this, '$.a', 'UNCONDITIONAL', 'NULL', 'NULL')"),
        (
            "JSON_QUERY(this, '$.a' WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY ERROR ON ERROR)",
            "json_query(this, '$.a', 'CONDITIONAL', '[]', 'ERROR')",
        ),
        ("JSON_OBJECT()", "json_object('NULL')"),
        ("JSON_OBJECT(KEY 'a' VALUE 1, 'b' : 2, 'c' VALUE x)", "json_object('NULL', 'a', 1, 'b', 2, 'c', x)"),
        ("JSON_OBJECT(key : value)", "json_object('NULL', key, value)"),
        ("JSON_OBJECT('a': x ABSENT ON NULL)", "json_object('ABSENT', 'a', x)"),
        (
            "JSON_OBJECT('a': b.c, k || 'x' : JSON_ARRAY(1))",
            "json_object('NULL', 'a', b.c, k || 'x', json_array('ABSENT', 1))",
        ),
        ("JSON_ARRAY(1, 'a', NULL NULL ON NULL)", "json_array('NULL', 1, 'a', NULL)"),
        ("JSON_ARRAY()", "json_array('ABSENT')"),
        (
            "JSON_ARRAYAGG(a ORDER BY b DESC NULL ON NULL)",
            "json_array_from('NULL', array_agg(json_text(a) ORDER BY b DESC))",
        ),
        ("JSON_OBJECTAGG(k VALUE v)", "json_object_from('NULL', array_agg(json_member('NULL', k, v)))"),
        ("JSON_OBJECTAGG(k : v ABSENT ON NULL)", "json_object_from('ABSENT', array_agg(json_member('ABSENT', k, v)))"),
        ("json_value, value FROM m", "json_value, value FROM m"),
    ] {
        expression(text, expected);
    }
    error("SELECT JSON_VALUE(this)", "expected ,");
    error("SELECT JSON_QUERY(this, '$' NULL ON EMPTY NULL ON EMPTY)", "each at most once");
}

#[test]
fn what_datafusion_does_not_know_is_rewritten() {
    for (text, expected) in [
        ("CAST(a AS OBJECT)", "cast_object(a)"),
        ("CAST(CAST(a AS JSON) AS VARCHAR)", "CAST(cast_json(a) AS VARCHAR)"),
        ("CAST(a AS TIMESTAMP)", "CAST(a AS TIMESTAMP(6))"),
        ("CAST(a AS DECIMAL)", "CAST(a AS DECIMAL(76,38))"),
        ("CAST(a AS CHAR VARYING)", "CAST(a AS VARCHAR)"),
        ("a LIKE 'x\\%'", "a LIKE 'x\\\\%'"),
        ("a LIKE 'x!%!!_' ESCAPE '!'", "a LIKE 'x\\%!_'"),
        ("a NOT LIKE ? ESCAPE '!'", "a NOT LIKE like_pattern($1, '!')"),
        ("1e3, 1.5, 2E-1", "CAST('1e3' AS DOUBLE PRECISION), 1.5, CAST('2E-1' AS DOUBLE PRECISION)"),
        ("POSITION('a' IN b FROM 2)", "position('a', b, 2)"),
        ("position('a' || 'b' IN b)", "position('a' || 'b', b)"),
        ("EXTRACT(DECADE FROM t)", "extract_field('DECADE', t)"),
        ("v FROM TABLE(generate_series(1, 5)) AS s", "v FROM generate_series(1, 5) AS s"),
        ("v FROM TABLE(generate_series(stop => 5, start => 1))", "v FROM generate_series(1, 5) AS \"generate_series\""),
        ("a FROM (SELECT b FROM m)", "a FROM (SELECT b FROM m) AS \"$derived1\""),
        ("a BETWEEN SYMMETRIC 3 AND 1", "(a BETWEEN 3 AND 1 OR a BETWEEN 1 AND 3)"),
        ("a NOT BETWEEN SYMMETRIC 3 AND 1 AND b", "(a NOT BETWEEN 3 AND 1 AND a NOT BETWEEN 1 AND 3) AND b"),
        (
            "1, -1000, 100000, 10000000000, 1 + 1",
            "CAST(1 AS TINYINT), CAST(-1000 AS SMALLINT), CAST(100000 AS INT), 10000000000, 1 + 1",
        ),
        ("a FROM m WHERE a IN (SELECT b FROM n)", "a FROM m WHERE a IN (SELECT b FROM n)"),
        (
            "sum(a) OVER (w ROWS 1 PRECEDING) FROM m WINDOW w AS (PARTITION BY b ORDER BY c)",
            "sum(a) OVER (PARTITION BY b ORDER BY c ROWS 1 PRECEDING) FROM m WINDOW w AS (PARTITION BY b ORDER BY c)",
        ),
        ("a FROM m FETCH FIRST 3 ROWS ONLY", "a FROM m LIMIT 3"),
        ("a FROM m OFFSET 2 ROWS FETCH NEXT ROW ONLY", "a FROM m LIMIT 1 OFFSET 2 ROWS"),
    ] {
        expression(text, expected);
    }
    error("SELECT CAST(a AS NONSENSE)", "there is no type NONSENSE");
    error("SELECT a LIKE 'x!y' ESCAPE '!'", "escape character can be escaped");
}

#[test]
fn errors_tell_line_column_and_what_was_expected() {
    error("SELECT a\nFROM m WHERE b = )", "expected an expression, found: ) at line 2, column 18");
    error("CREATE MAPPING m (a NONSENSE) TYPE IMap", "there is no type NONSENSE, of column 'a', at line 1, column 21");
    error("CREATE MAPPING m (a INT, a INT) TYPE IMap", "Column 'a' specified more than once");
    error("CREATE MAPPING m TYPE IMap OPTIONS ('a'='1', 'a'='2')", "Option 'a' specified more than once");
    error("CREATE MAPPING m (a INT)", "expected TYPE, found: EOF at line 1, column 25");
    error("CREATE JOB j AS SINK INTO m SELECT 1", "CREATE JOB is not served");
    error("CREATE DATA CONNECTION c TYPE x", "CREATE DATA CONNECTION is not served");
    error("CREATE VIEW v AS SELECT ?", "a view cannot have parameters");
    error("SELECT 1; SELECT 2", "expected the end of the statement, found: SELECT at line 1, column 11");
    error("", "the statement is empty");
    error("foo", "expected a statement");
    error("SELECT 'abc", "at line 1, column");
    error("SHOW NOTHING", "expected MAPPINGS, VIEWS");
    error("INSERT INTO other.schema.m VALUES (1)", "the database \"other\" of other.schema.m is not there");
    error("DELETE FROM m LIMIT 1", "DELETE .. LIMIT is not served");
    error("SELECT sum(a) OVER w FROM m", "window \"w\" does not exist");
    error("ALTER JOB j SUSPEND", "the statement ALTER JOB is not served");
}

#[test]
fn statements_that_are_not_served_are_named() {
    // Only statements that are rejected because they are not supported.
    let refused = "ALTER DATABASE d|ALTER DEFAULT PRIVILEGES GRANT x|ALTER FOREIGN DATA WRAPPER w|ALTER INDEX i|ALTER \
                   LARGE OBJECT 1|ALTER SCHEMA s|ALTER SEQUENCE s|ALTER SYSTEM SET x = 1|ALTER USER MAPPING FOR u|ALTER \
                   VIEW v|CALL p()|CLUSTER t|CREATE ACCESS METHOD m|CREATE AGGREGATE a|CREATE CAST (a AS \
                   b)|CREATE COLLATION c|CREATE CONVERSION c|CREATE DATABASE d|CREATE DOMAIN d|CREATE EVENT TRIGGER \
                   t|CREATE EXTENSION e|CREATE FOREIGN TABLE t|CREATE OR REPLACE FUNCTION f()|CREATE GROUP g|CREATE \
                   LANGUAGE l|CREATE MATERIALIZED VIEW v AS SELECT 1|CREATE OPERATOR +|CREATE POLICY p|CREATE PROCEDURE \
                   p()|CREATE PUBLICATION p|CREATE ROLE r|CREATE RULE r|CREATE SEQUENCE s|CREATE SERVER s|CREATE \
                   STATISTICS s|CREATE SUBSCRIPTION s|CREATE TABLESPACE t|CREATE TEXT SEARCH PARSER p|CREATE TRANSFORM \
                   FOR t|CREATE TRIGGER t|CREATE TRUSTED LANGUAGE l|CREATE TYPE t|CREATE USER MAPPING FOR u|CREATE USER \
                   u|DROP OWNED BY u|DROP ROUTINE r|DROP SEQUENCE s|DROP USER u|GRANT SELECT ON t TO u|IMPORT FOREIGN \
                   SCHEMA s|LOAD 'l'|LOCK TABLE t|MERGE INTO t|REASSIGN OWNED BY u|REINDEX TABLE t|REVOKE SELECT ON t \
                   FROM u|SECURITY LABEL ON t";
    for text in refused.split('|') {
        let Err(error) = parse(text, Dialect::Postgres, &Limits::default(), &DefaultPlace) else {
            panic!("{text} is served");
        };
        assert!(error.message.ends_with(" is not served"), "{text}: {}", error.message);
        let words = text.replace(" OR REPLACE", "");
        let named = error.message.trim_start_matches("the statement ").trim_end_matches(" is not served").to_owned();
        assert!(words.starts_with(&named) && named.contains(words.split(' ').next().unwrap()), "{text}: {named}");
        assert_eq!(error.sqlstate, Some("0A000"), "{text}");
    }
}

#[test]
fn explain_takes_options_as_words_and_in_parentheses() {
    let analyzes = |text: &str| match parse(text, Dialect::Postgres, &Limits::default(), &DefaultPlace) {
        Ok(statement) => match statement.parsed {
            Parsed::Explain { analyze, .. } => Ok(analyze),
            other => panic!("{text} is {other:?}"),
        },
        Err(error) => Err(error.message),
    };
    for (text, expected) in [
        ("EXPLAIN SELECT 1", false),
        ("EXPLAIN ANALYZE VERBOSE SELECT 1", true),
        ("EXPLAIN (SELECT 1)", false),
        ("EXPLAIN (ANALYZE, BUFFERS) SELECT 1", true),
        ("EXPLAIN (analyze false, verbose on, format text) SELECT 1", false),
        ("EXPLAIN (ANALYZE true, TIMING OFF) (SELECT 1)", true),
    ] {
        assert_eq!(analyzes(text), Ok(expected), "{text}");
    }
    for (text, expected) in [
        ("EXPLAIN (FORMAT JSON) SELECT 1", "in the format json is not served"),
        ("EXPLAIN (ANALYZE maybe) SELECT 1", "requires a Boolean value, not maybe"),
        ("EXPLAIN (NONSENSE) SELECT 1", "unrecognized EXPLAIN option"),
    ] {
        assert!(analyzes(text).unwrap_err().contains(expected), "{text}");
    }
}

#[test]
fn words_are_counted_without_spaces_and_within_quotes_once() {
    let counts = [
        ("SELECT a, b FROM t", 6),
        ("  SELECT\n'it is one text'  ", 2),
        ("SELECT \"one name\", 'a''b', 12.5e3 -- a comment", 10),
        ("SELECT NullIf(a, 1)", 7 + 11),
        ("", 0),
    ];
    for (text, count) in counts {
        assert_eq!(word_count(text), count, "{text}");
    }
}

#[test]
fn limits_are_errors_and_no_overflow_of_the_stack() {
    error(&format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)), "nested more than");
    error(&format!("SELECT {}1", "NOT ".repeat(100_000)), "more than 500 operators");
    error(&format!("SELECT {}1", "- ".repeat(400)), "nested more than");
    error(&format!("SELECT 1{}", "+1".repeat(100_000)), "more than 500 operators");
    error(&format!("SELECT 1{}", " UNION SELECT 1".repeat(100_000)), "operators, joins or UNIONs");
    error(&format!("SELECT a{}", ".a".repeat(100_000)), "nested more than");
    error(&format!("SELECT '{}'", "x".repeat(11 << 20)), "bytes, more than");
    error(&format!("SELECT 1{}", ",1".repeat(2 << 20)), "words, numbers and signs");
    // Invalid at the innermost level: a failed alternative must not be tried again at every level.
    for word in ["CASE WHEN a THEN ", "CAST(", "POSITION(", "(SELECT ", "EXISTS(SELECT ", "TRIM(", "JSON_VALUE(", "f("]
    {
        for times in [60, 10_000] {
            error(&format!("SELECT {}", word.repeat(times)), "");
        }
    }
    assert!(
        parse(&format!("SELECT '{}'", "x".repeat(9 << 20)), Dialect::Hazelcast, &Limits::default(), &DefaultPlace)
            .is_ok()
    );
    // The depth is the logarithm of the length.
    for word in ["AND", "OR"] {
        let text = format!("SELECT 1 FROM m WHERE a = 0{}", format!(" {word} a = 1").repeat(20_000));
        assert!(parse(&text, Dialect::Hazelcast, &Limits::default(), &DefaultPlace).is_ok());
    }
    query("SELECT a AND b AND c OR d AND e", "SELECT a AND b AND c OR d AND e");
    query("SELECT a BETWEEN 1 AND 2 AND b", "SELECT a BETWEEN 1 AND 2 AND b");
}

#[test]
fn window_functions_do_not_contain_each_other() {
    error("SELECT sum(sum(a) OVER ()) OVER () FROM t", "cannot be nested");
    error("SELECT sum(a) OVER (ORDER BY sum(a) OVER ()) FROM t", "cannot be nested");
    error("SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY sum(a) OVER ())", "not allowed in window definitions");
    for served in [
        "SELECT sum(a) OVER (), sum(a) OVER () FROM t",
        "SELECT sum((SELECT sum(b) OVER () FROM u)) OVER () FROM t",
        "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY (SELECT max(sum(b)) OVER () FROM u))",
    ] {
        statement(served);
    }
}
