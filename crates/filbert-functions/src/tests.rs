//! Expressions and their results, through DataFusion.

use arrow_array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use filbert_dialect::{DefaultPlace, Limits, Parsed, parse};
use futures::StreamExt;

use crate::types::{field_type_of, value_of};

fn context() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2);
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.parse_float_as_decimal = true;
    let context =
        SessionContext::new_with_state(SessionStateBuilder::new().with_config(config).with_default_features().build());
    super::register(&context, filbert_grid::query::Dialect::Hazelcast, &[]);
    context
}

async fn batches(context: &SessionContext, text: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
    let parsed = parse(text, filbert_grid::query::Dialect::Hazelcast, &Limits::default(), &DefaultPlace)
        .map_err(crate::error::carried)?
        .parsed;
    let Parsed::Query(query) = parsed else { panic!("{text} is no query") };
    let state = context.state();
    let statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
    let plan = state.statement_to_plan(statement).await?;
    context.execute_logical_plan(plan).await?.collect().await
}

fn run(text: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(batches(&context(), text))
}

/// Values and types of all rows, `value type, value type; ..`.
fn shown(text: &str) -> String {
    let batches = match run(text) {
        Ok(batches) => batches,
        Err(error) => return format!("error: {}", crate::error::of_datafusion(&error).message),
    };
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = batch
                .columns()
                .iter()
                .zip(batch.schema().fields())
                .map(|(column, field)| {
                    let field_type = field_type_of(field);
                    let scalar = datafusion::common::ScalarValue::try_from_array(column, row).unwrap();
                    let text = match value_of(&scalar, &field_type) {
                        filbert_data::Value::Null => "null".to_owned(),
                        filbert_data::Value::Decimal(number) => number.normalized().to_plain_string(),
                        filbert_data::Value::Float64(number) => number.to_string(),
                        value => match value.clone().convert(&filbert_data::FieldType::Varchar) {
                            Ok(filbert_data::Value::Text(text)) => text.into_owned(),
                            _ => format!("{value:?}"),
                        },
                    };
                    let field_type = match field_type {
                        filbert_data::FieldType::Decimal(_) => "DECIMAL".to_owned(),
                        other => other.to_string(),
                    };
                    format!("{text} {field_type}")
                })
                .collect();
            rows.push(cells.join(", "));
        }
    }
    rows.join("; ")
}

#[track_caller]
fn check(expression: &str, expected: &str) {
    assert_eq!(shown(&format!("SELECT {expression}")), expected, "{expression}");
}

#[track_caller]
fn fails(expression: &str, expected: &str) {
    let found = shown(&format!("SELECT {expression}"));
    assert!(found.starts_with("error: ") && found.contains(expected), "{expression}: {found}");
}

#[test]
fn json_value_finds_scalars() {
    for (expression, expected) in [
        (r#"JSON_VALUE('{"a": 1}', '$.a')"#, "1 VARCHAR"),
        (r#"JSON_VALUE('{"a": "x\u00e4\n"}', '$.a')"#, "xä\n VARCHAR"),
        (r#"JSON_VALUE('{"a": 12}', '$.a' RETURNING INTEGER)"#, "12 INTEGER"),
        (r#"JSON_VALUE('{"a": 1.5}', '$.a' RETURNING DOUBLE) + 1e0"#, "2.5 DOUBLE"),
        (r#"JSON_VALUE('{"a": true}', '$.a' RETURNING BOOLEAN)"#, "true BOOLEAN"),
        (r#"JSON_VALUE('{"a": "2020-01-02"}', '$.a' RETURNING DATE)"#, "2020-01-02 DATE"),
        (r#"JSON_VALUE('{"a": null}', '$.a')"#, "null VARCHAR"),
        (r#"JSON_VALUE('{"a": 1}', '$.b')"#, "null VARCHAR"),
        (r#"JSON_VALUE('{"a": 1}', '$.b' RETURNING INT DEFAULT 7 ON EMPTY)"#, "7 INTEGER"),
        (r#"JSON_VALUE('{"a": "x"}', '$.a' RETURNING INT)"#, "null INTEGER"),
        (r#"JSON_VALUE('{"a": "x"}', '$.a' RETURNING INT DEFAULT 1 + 2 ON ERROR)"#, "3 INTEGER"),
        (r#"JSON_VALUE('{"a": [1]}', '$.a')"#, "null VARCHAR"),
        ("JSON_VALUE('nonsense', '$.a')", "null VARCHAR"),
        (r#"JSON_VALUE('{"a": [1, {"b": 3}]}', '$.a[1].b')"#, "3 VARCHAR"),
        (r#"JSON_VALUE('{"a b": {"c": 4}}', '$."a b".c')"#, "4 VARCHAR"),
        (r#"JSON_VALUE('[1, 2, 3]', '$[last]')"#, "3 VARCHAR"),
        (r#"JSON_VALUE('[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]', '$[?(@.a > 1)].b')"#, "y VARCHAR"),
        ("JSON_VALUE(NULL, '$.a')", "null VARCHAR"),
    ] {
        check(expression, expected);
    }
    fails(r#"JSON_VALUE('{"a": 1}', '$.b' ERROR ON EMPTY)"#, "evaluated to no value");
    fails(r#"JSON_VALUE('{"a": [1]}', '$.a' ERROR ON ERROR)"#, "cannot be array or object");
    fails(r#"JSON_VALUE('[1, 2]', '$[*]' ERROR ON ERROR)"#, "multiple values");
    fails(r#"JSON_VALUE('{"a" 1}', '$.a' ERROR ON ERROR)"#, "expected a colon at byte 5");
    fails("JSON_VALUE('{}', 'nonsense')", "Invalid JSON path 'nonsense': expected $ at character 1");
}

#[test]
fn json_query_finds_documents() {
    for (expression, expected) in [
        (r#"JSON_QUERY('{"a": {"b": 1.0}}', '$.a')"#, r#"{"b":1.0} JSON"#),
        (r#"JSON_QUERY('{"a": 1}', '$.a')"#, "1 JSON"),
        (r#"JSON_QUERY('{"a": [1]}', '$.a' WITH WRAPPER)"#, "[1] JSON"),
        (r#"JSON_QUERY('{"a": [[1]]}', '$.a[*]' WITH WRAPPER)"#, "[[1]] JSON"),
        (r#"JSON_QUERY(' { "a b" : [ 1 , " \" x " ] } ', '$')"#, r#"{"a b":[1," \" x "]} JSON"#),
        (r#"JSON_QUERY('{"a": 1}', '$.a' WITH WRAPPER)"#, "[1] JSON"),
        (r#"JSON_QUERY('[1, 2]', '$[*]' WITH CONDITIONAL WRAPPER)"#, "[1,2] JSON"),
        (r#"JSON_QUERY('[[1]]', '$[0]' WITH CONDITIONAL WRAPPER)"#, "[1] JSON"),
        (r#"JSON_QUERY('{}', '$.a' EMPTY ARRAY ON EMPTY)"#, "[] JSON"),
        (r#"JSON_QUERY('{', '$.a' EMPTY OBJECT ON ERROR)"#, "{} JSON"),
        (r#"JSON_VALUE(JSON_QUERY('{"a": {"b": "x"}}', '$.a'), '$.b')"#, "x VARCHAR"),
    ] {
        check(expression, expected);
    }
    fails(r#"JSON_QUERY('{}', '$.a' ERROR ON EMPTY)"#, "no value");
}

#[test]
fn json_is_made() {
    for (expression, expected) in [
        (
            "JSON_OBJECT('a': 1, KEY 'b' VALUE 'x\"y', 'c': NULL, 'd': TRUE, 'e': 1.50)",
            r#"{"a":1,"b":"x\"y","c":null,"d":true,"e":1.50} JSON"#,
        ),
        ("JSON_OBJECT('a': NULL, 'b': 1 ABSENT ON NULL)", r#"{"b":1} JSON"#),
        ("JSON_OBJECT()", "{} JSON"),
        ("JSON_ARRAY(1, NULL, 'x', DATE '2020-01-02')", r#"[1,"x","2020-01-02"] JSON"#),
        ("JSON_ARRAY(1, NULL NULL ON NULL)", "[1,null] JSON"),
        ("JSON_OBJECT('a': JSON_ARRAY(1, JSON_OBJECT('b': '[1]')))", r#"{"a":[1,{"b":"[1]"}]} JSON"#),
        ("JSON_OBJECT('a': CAST('[1, 2]' AS JSON))", r#"{"a":[1, 2]} JSON"#),
        ("JSON_ARRAYAGG(v ORDER BY v DESC) FROM TABLE(generate_series(1, 3))", "[3,2,1] JSON"),
        ("JSON_ARRAYAGG(NULLIF(v, 2) NULL ON NULL) FROM TABLE(generate_series(1, 3))", "[1,null,3] JSON"),
        ("JSON_OBJECTAGG(CAST(v AS VARCHAR): v * 2) FROM TABLE(generate_series(1, 2))", r#"{"1":2,"2":4} JSON"#),
        ("CAST(CAST('[1]' AS JSON) AS VARCHAR)", "[1] VARCHAR"),
        (
            "x, CAST(x AS VARCHAR) AS z FROM (SELECT CAST(y AS JSON) AS x FROM (VALUES ('1')) AS t(y)) AS u",
            "1 JSON, 1 VARCHAR",
        ),
    ] {
        check(expression, expected);
    }
    fails("JSON_OBJECT(CAST(NULL AS VARCHAR): 1)", "cannot be null");
}

#[test]
fn whole_numbers_do_not_wrap_around() {
    for (expression, expected) in [
        ("1 + 2", "3 TINYINT"),
        ("1 + 127, 1 - 1000000", "128 SMALLINT, -999999 INTEGER"),
        ("CAST(2147483647 AS INT) + CAST(1 AS INT)", "2147483648 BIGINT"),
        ("CAST(100 AS TINYINT) * CAST(100 AS TINYINT)", "10000 SMALLINT"),
        ("v + 1 FROM TABLE(generate_series(1, 2))", "2 BIGINT; 3 BIGINT"),
        ("-v FROM TABLE(generate_series(1, 1))", "-1 BIGINT"),
        ("CAST(1 AS TINYINT) + CAST(1 AS TINYINT), CAST(1 AS INT) * 2", "2 SMALLINT, 2 BIGINT"),
        ("7 / 2", "3 TINYINT"),
        ("7 % 4", "3 TINYINT"),
        ("1.5 + 1", "2.5 DECIMAL"),
        ("1e0 / 0", "inf DOUBLE"),
        ("DATE '2020-01-31' + INTERVAL '1' DAY", "2020-02-01T00:00:00 TIMESTAMP"),
        ("v FROM TABLE(generate_series(1, 3)) WHERE v + CAST(1 AS INT) > CAST(2 AS TINYINT) * v", ""),
        (
            "sum(v + 1), v % 2 FROM TABLE(generate_series(1, 3)) GROUP BY v % 2 ORDER BY 2",
            "3 DECIMAL, 0 INTEGER; 6 DECIMAL, 1 INTEGER",
        ),
    ] {
        check(expression, expected);
    }
    for (expression, expected) in [
        ("9223372036854775807 + 1", "BIGINT overflow in '+' operator"),
        ("v - 9223372036854775807 - 2 FROM TABLE(generate_series(0, 1))", "BIGINT overflow in '-' operator"),
        ("v * 4611686018427387904 FROM TABLE(generate_series(1, 2))", "2 * 4611686018427387904"),
        ("1 / 0", "zero"),
        ("1 % 0", "zero"),
        ("1.5 / 0", "zero"),
        ("CAST(300 AS TINYINT)", "300"),
        ("CAST('x' AS INT)", "x"),
    ] {
        fails(expression, expected);
    }
}

#[test]
fn totals_have_hazelcasts_types() {
    for (expression, expected) in [
        (
            "SUM(v), AVG(v), COUNT(*), MIN(v) FROM TABLE(generate_series(1, 2))",
            "3 BIGINT, 1.5 DECIMAL, 2 BIGINT, 1 INTEGER",
        ),
        ("SUM(v) FROM (VALUES (9223372036854775807), (1)) AS t(v)", "9223372036854775808 DECIMAL"),
        ("SUM(CAST(v AS INT)) FROM TABLE(generate_series(1, 2))", "3 BIGINT"),
        ("SUM(CAST(v AS DOUBLE)), AVG(CAST(v AS REAL)) FROM TABLE(generate_series(1, 2))", "3 DOUBLE, 1.5 DOUBLE"),
        ("SUM(v) OVER (ORDER BY v) FROM TABLE(generate_series(1, 3))", "1 BIGINT; 3 BIGINT; 6 BIGINT"),
        ("SUM(CAST(v AS REAL)), SUM(1.5) FROM TABLE(generate_series(1, 2))", "3.0 REAL, 3 DECIMAL"),
        (
            "SUM(CAST(v AS SMALLINT)), v % 2 FROM TABLE(generate_series(1, 3)) GROUP BY v % 2 ORDER BY 2",
            "2 BIGINT, 0 INTEGER; 4 BIGINT, 1 INTEGER",
        ),
        (
            "AVG(CAST(v AS DECIMAL(15, 2)) / 3), AVG(CAST(v AS DECIMAL(15, 2))) FROM (VALUES (1), (2), (2)) AS t(v)",
            "0.55555555555555555555555555555555555556 DECIMAL, 1.6666666666666666 DECIMAL",
        ),
        (
            "1.0 / 3, 2 / 3.00, -SUM(CAST(NULL AS INTEGER)) + (-59)",
            "0.33333333333333333333333333333333333333 DECIMAL, 0.66666666666666666666666666666666666667 DECIMAL, null BIGINT",
        ),
        (
            "SUM(d) / SUM(e) FROM (VALUES (CAST(1.25 AS DECIMAL(15, 2)), CAST(3.75 AS DECIMAL(15, 2)))) AS t(d, e)",
            "0.33333333333333333333333333333333333333 DECIMAL",
        ),
        ("AVG(DISTINCT v), AVG(v) FILTER (WHERE v > 1) FROM TABLE(generate_series(1, 3))", "2 DECIMAL, 2.5 DECIMAL"),
        (
            "AVG(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM TABLE(generate_series(1, 3))",
            "1 DECIMAL; 1.5 DECIMAL; 2.5 DECIMAL",
        ),
        ("SUM(DISTINCT v % 2) FROM TABLE(generate_series(1, 3))", "1 BIGINT"),
        ("SUM(v) FROM TABLE(generate_series(1, 0))", "null BIGINT"),
    ] {
        check(expression, expected);
    }
    fails("SUM('x')", "Cannot apply 'SUM' function to [VARCHAR]");
}

#[test]
fn texts() {
    for (expression, expected) in [
        ("POSITION('b' IN 'abcb')", "2 INTEGER"),
        ("POSITION('b' IN 'abcb' FROM 3)", "4 INTEGER"),
        ("POSITION('x' IN 'abcb')", "0 INTEGER"),
        ("'a\\c' LIKE 'a\\_'", "true BOOLEAN"),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", "true BOOLEAN"),
        ("'abc' LIKE 'a!%c' ESCAPE '!'", "false BOOLEAN"),
        ("'abc' LIKE x ESCAPE '!' FROM (VALUES ('a_c'), ('a!_c')) AS t(x)", "true BOOLEAN; false BOOLEAN"),
        ("NULL LIKE 'a'", "null BOOLEAN"),
        (
            "UPPER('ä'), LOWER('Ä'), INITCAP('ab cd'), LENGTH('äb'), ASCII('a')",
            "Ä VARCHAR, ä VARCHAR, Ab Cd VARCHAR, 2 INTEGER, 97 INTEGER",
        ),
        (
            "SUBSTRING('abc' FROM 2), SUBSTRING('abc', 1, 2), REPLACE('abc', 'b', 'x')",
            "bc VARCHAR, ab VARCHAR, axc VARCHAR",
        ),
        (
            "TRIM(LEADING 'x' FROM 'xxa'), TRIM('  a '), RTRIM('a '), BTRIM(' a ')",
            "a VARCHAR, a VARCHAR, a VARCHAR, a VARCHAR",
        ),
        ("CONCAT_WS('-', 'a', NULL, 'b'), 'a' || 1 || NULL", "a-b VARCHAR, null VARCHAR"),
        (
            "COALESCE(CAST(1 AS DECIMAL), 2e0), COALESCE(CAST(1 AS REAL), 1.5), GREATEST(2.5, 1e0)",
            "1 DOUBLE, 1.0 REAL, 2.5 DOUBLE",
        ),
        (
            "COALESCE(NULL, 'x'), NULLIF(1, 1), GREATEST(1, 3), LEAST(1, 3)",
            "x VARCHAR, null TINYINT, 3 TINYINT, 1 TINYINT",
        ),
    ] {
        check(expression, expected);
    }
}

#[test]
fn numbers() {
    for (expression, expected) in [
        ("ABS(-5) , ABS(-1.5), ABS(-2e0)", "5 TINYINT, 1.5 DECIMAL, 2 DOUBLE"),
        (
            "SIGN(-5), SIGN(0.0), CBRT(27), SQRT(16), POWER(2, 10)",
            "-1 TINYINT, 0 DECIMAL, 3 DOUBLE, 4 DOUBLE, 1024 DOUBLE",
        ),
        ("CEIL(1.2), FLOOR(-1.2), CEIL(1.2e0), FLOOR(7)", "2 DECIMAL, -2 DECIMAL, 2 DOUBLE, 7 TINYINT"),
        (
            "ROUND(1.255, 2), ROUND(2.5e0), TRUNCATE(1.99, 1), ROUND(1234, -2)",
            "1.26 DECIMAL, 3 DOUBLE, 1.9 DECIMAL, 1200 SMALLINT",
        ),
        ("LN(1), LOG10(100), EXP(0), DEGREES(PI()), ATAN2(0, 1)", "0 DOUBLE, 2 DOUBLE, 1 DOUBLE, 180 DOUBLE, 0 DOUBLE"),
        ("RAND() < 1, RAND(1) = RAND(1)", "true BOOLEAN, true BOOLEAN"),
        ("2 BETWEEN SYMMETRIC 3 AND 1", "true BOOLEAN"),
        ("MOD(7, 4), ABS(NULL)", "3 TINYINT, null BIGINT"),
        ("v, SQRT(v) FROM TABLE(generate_series(4, 9, 5))", "4 INTEGER, 2 DOUBLE; 9 INTEGER, 3 DOUBLE"),
        ("TO_CHAR(1234.5, 'FM999,990.00'), TO_CHAR(12, '999')", "1,234.50 VARCHAR,   12 VARCHAR"),
    ] {
        check(expression, expected);
    }
    check("ABS(CAST(-128 AS TINYINT))", "128 SMALLINT");
    fails("ABS(CAST('-9223372036854775808' AS BIGINT))", "overflow");
    fails("SQRT(DATE '2020-01-01')", "Cannot apply 'SQRT' function to [DATE]");
}

#[test]
fn dates_and_times() {
    for (field, timestamp, expected) in [
        ("EPOCH", "DATE '1970-01-01'", "0"),
        ("EPOCH", "TIMESTAMP '2001-02-16 20:38:40.123'", "982355920.123"),
        ("ISOYEAR", "TIMESTAMP '2006-01-01 00:00:00'", "2005"),
        ("WEEK", "TIMESTAMP '2006-01-01 00:00:00'", "52"),
        ("DOW", "TIMESTAMP '2006-01-01 00:00:00'", "0"),
        ("ISODOW", "TIMESTAMP '2006-01-01 00:00:00'", "7"),
        ("MILLENNIUM", "DATE '2000-12-31'", "2"),
        ("CENTURY", "DATE '2001-12-31'", "21"),
        ("DECADE", "DATE '2001-12-31'", "200"),
        ("DOY", "DATE '2000-12-31'", "366"),
        ("QUARTER", "DATE '2010-10-04'", "4"),
        ("MILLISECOND", "TIME '10:30:20.456456'", "20456"),
        ("MICROSECOND", "TIME '10:30:20.456456'", "20456456"),
        ("SECOND", "TIME '10:30:20.456456'", "20"),
        ("HOUR", "TIMESTAMP '2001-02-16 20:38:40'", "20"),
    ] {
        check(&format!("EXTRACT({field} FROM {timestamp})"), &format!("{expected} DOUBLE"));
    }
    fails("EXTRACT(YEAR FROM TIME '10:00:00')", "Cannot extract YEAR from TIME");
    fails("EXTRACT(YEAR FROM 1)", "Cannot extract field from BIGINT");
    for (expression, expected) in [
        (
            "CAST('2024-02-29T12:34:56+02:00' AS TIMESTAMP WITH TIME ZONE)",
            "2024-02-29T10:34:56Z TIMESTAMP WITH TIME ZONE",
        ),
        ("TO_EPOCH_MILLIS(TO_TIMESTAMP_TZ(1))", "1000 BIGINT"),
        ("TO_EPOCH_MILLIS(TO_TIMESTAMP_TZ(1700000000123))", "1700000000123 BIGINT"),
        ("TO_EPOCH_MILLIS(TO_TIMESTAMP_TZ(1700000000123456))", "1700000000123 BIGINT"),
        (
            "TO_CHAR(TIMESTAMP '2022-09-26 14:53:30', 'YYYY-MM-DD HH12:MI:SS PM FMMonth Dy')",
            "2022-09-26 02:53:30 PM September Mon VARCHAR",
        ),
        (
            "CAST('2020-01-02T03:04:05Z' AS TIMESTAMP WITH TIME ZONE) = TIMESTAMP WITH TIME ZONE '2020-01-02 03:04:05Z'",
            "true BOOLEAN",
        ),
        ("CAST('2020-01-02T03:04:05' AS TIMESTAMP)", "2020-01-02T03:04:05 TIMESTAMP"),
    ] {
        check(expression, expected);
    }
}

#[test]
fn series() {
    check("* FROM TABLE(generate_series(5, 1, -2))", "5 INTEGER; 3 INTEGER; 1 INTEGER");
    check("count(*) FROM TABLE(generate_series(1, 5000))", "5000 BIGINT");
    check("max(v) FROM TABLE(generate_series(9223372036854775806, 9223372036854775807))", "9223372036854775807 BIGINT");
    check("v FROM TABLE(generate_stream(1000)) LIMIT 3", "0 BIGINT; 1 BIGINT; 2 BIGINT");
    fails("v FROM TABLE(generate_series(1, 5, 0))", "step cannot equal zero");
    fails("v FROM TABLE(generate_series('a', 5))", "takes whole numbers");
    fails("v FROM TABLE(generate_stream(-1))", "rate cannot be less than zero");
}

#[test]
fn a_stream_does_not_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = context();
        let plan = context.sql("SELECT v FROM generate_stream(100)").await.unwrap();
        let mut stream = plan.execute_stream().await.unwrap();
        let mut rows = 0;
        while rows < 5 {
            rows += stream.next().await.unwrap().unwrap().num_rows();
        }
    });
}

/// Calls functions with constant arguments of every kind, for a batch without rows.
#[test]
fn functions_of_constants_take_batches_without_rows() {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, FieldRef};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
    use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
    use filbert_grid::query::Dialect;

    let samples = [
        ScalarValue::Utf8View(Some("a".to_owned())),
        ScalarValue::Utf8View(None),
        ScalarValue::BinaryView(Some(vec![1, 2])),
        ScalarValue::Int64(Some(0)),
        ScalarValue::Float64(Some(0.5)),
        ScalarValue::Decimal128(Some(15), 10, 1),
        ScalarValue::Boolean(Some(true)),
        ScalarValue::Date32(Some(0)),
        ScalarValue::TimestampMicrosecond(Some(0), None),
        ScalarValue::new_interval_mdn(0, 1, 0),
        ScalarValue::List(ScalarValue::new_list(&[ScalarValue::Int32(Some(1))], &DataType::Int32, true)),
    ];
    let mut lists: Vec<Vec<ScalarValue>> = vec![Vec::new()];
    for count in 1..=3 {
        let shorter: Vec<_> = lists.iter().filter(|list| list.len() == count - 1).cloned().collect();
        lists.extend(
            shorter
                .iter()
                .flat_map(|list| samples.iter().map(|one| [list.as_slice(), std::slice::from_ref(one)].concat())),
        );
    }
    let plain = SessionContext::new().state();
    let mut panics: Vec<String> = Vec::new();
    for dialect in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
        let context = SessionContext::new();
        super::register(&context, dialect, &[]);
        let state = context.state();
        let mut called = 0;
        for (name, function) in state.scalar_functions() {
            if plain.scalar_functions().get(name) == Some(function) {
                continue;
            }
            for list in &lists {
                let fields: Vec<FieldRef> =
                    list.iter().map(|value| Arc::new(Field::new("", value.data_type(), true))).collect();
                let Ok(fields) = fields_with_udf(&fields, function.as_ref()) else { continue };
                let values: Option<Vec<ScalarValue>> =
                    list.iter().zip(&fields).map(|(value, field)| value.cast_to(field.data_type()).ok()).collect();
                let Some(values) = values else { continue };
                let scalars: Vec<Option<&ScalarValue>> = values.iter().map(Some).collect();
                let returns = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalars };
                let Ok(return_field) = function.return_field_from_args(returns) else { continue };
                called += 1;
                let args = ScalarFunctionArgs {
                    args: values.into_iter().map(ColumnarValue::Scalar).collect(),
                    arg_fields: fields,
                    number_rows: 0,
                    return_field,
                    config_options: Arc::clone(state.config_options()),
                };
                // An error is fine, a panic is not.
                let call = std::panic::AssertUnwindSafe(|| function.invoke_with_args(args).is_ok());
                if std::panic::catch_unwind(call).is_err() {
                    panics.push(format!("{dialect:?} {name} of {list:?}"));
                }
            }
        }
        assert!(called > 300, "{dialect:?} called {called}");
    }
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
}
