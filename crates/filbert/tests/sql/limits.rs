//! Statements of any size and shape. The member returns rows or an error, and continues to work.

use filbert::{Config, Value};

use crate::database::{Answer, Database, Embedded};

fn rows(database: &mut Embedded, statement: &str, parameters: &[Value<'static>]) -> Result<usize, String> {
    match database.answer(statement, parameters) {
        Ok(Answer::Rows { rows, .. }) => Ok(rows.len()),
        Ok(Answer::Count(_)) => Err("a count".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn statements_beyond_a_limit_are_refused_and_the_member_goes_on() {
    let mut database = Embedded::start();
    let within =
        |open: &str, close: &str, times: usize| format!("SELECT {}1{}", open.repeat(times), close.repeat(times));
    let refused = [
        format!("SELECT '{}'", "x".repeat(11 << 20)),
        within("(", ")", 100_000),
        within("abs(", ")", 100_000),
        within("CASE WHEN TRUE THEN ", " END", 100_000),
        within("(SELECT ", ")", 100_000),
        within("NOT ", "", 100_000),
        within("- ", "", 100_000),
        format!("SELECT {}1", "1 + ".repeat(1_000_000)),
        format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(100_000)),
        format!("SELECT * FROM {}", "(SELECT * FROM ".repeat(10_000)),
        format!("SELECT {}", "[".repeat(10_000)),
        format!("SELECT 1 FROM {}", vec!["a"; 100_000].join(" JOIN ")),
    ];
    for statement in &refused {
        let begin: String = statement.chars().take(40).collect();
        let error = rows(&mut database, statement, &[]).expect_err(&begin);
        assert!(error.len() < 10_000, "{begin}: an error of {} bytes", error.len());
        assert_eq!(rows(&mut database, "SELECT 1", &[]), Ok(1));
    }
}

pub(crate) fn large_statements_within_the_limits_are_answered() {
    let mut database = Embedded::start();
    assert_eq!(rows(&mut database, &format!("SELECT '{}'", "x".repeat(9 << 20)), &[]), Ok(1));
    let terms: Vec<String> = (0..5_000).map(|term| format!("v = {term}")).collect();
    let any = format!("SELECT v FROM TABLE(generate_series(1, 10000)) WHERE {}", terms.join(" OR "));
    assert_eq!(rows(&mut database, &any, &[]), Ok(4_999));
    let list: Vec<String> = (0..5_000).map(|item| item.to_string()).collect();
    let among = format!("SELECT v FROM TABLE(generate_series(1, 10000)) WHERE v IN ({})", list.join(", "));
    assert_eq!(rows(&mut database, &among, &[]), Ok(4_999));
}

pub(crate) fn as_many_parameters_as_in_postgresql_are_taken_and_one_more_is_not() {
    let mut database = Embedded::start();
    let statement = |count: usize| {
        format!("SELECT v FROM TABLE(generate_series(1, 70000)) WHERE v IN ({})", vec!["?"; count].join(", "))
    };
    let values = |count: i64| (1..=count).map(Value::Int64).collect::<Vec<_>>();
    assert_eq!(rows(&mut database, &statement(65_535), &values(65_535)), Ok(65_535));
    assert!(rows(&mut database, &statement(65_536), &values(65_536)).is_err());
}

pub(crate) fn a_row_that_cannot_be_read_is_named_by_its_key() {
    let mut database = Embedded::start();
    let map = database.member().map::<i32, filbert::Json>("documents").unwrap();
    for key in 0..1_000 {
        let text = if key == 777 { "{\"n\": oops".to_owned() } else { format!("{{\"n\": {key}}}") };
        map.set(&key, &filbert::Json(text)).unwrap();
    }
    let mapping = "CREATE MAPPING documents (__key INTEGER, n INTEGER) TYPE IMap \
                   OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat')";
    database.answer(mapping, &[]).map(drop).unwrap();
    let error = rows(&mut database, "SELECT sum(n) FROM documents", &[]).expect_err("a broken document");
    assert!(error.contains("777"), "{error}");
    assert_eq!(rows(&mut database, "SELECT n FROM documents WHERE __key = 5", &[]), Ok(1));
}

pub(crate) fn a_join_that_does_not_fit_is_an_error_and_sorting_goes_to_disk() {
    let mut config = Config::default();
    config.query.query_memory_bytes_max = Some(24 << 20);
    let mut database = Embedded::with(config);
    let side =
        "(SELECT v, CAST(v AS VARCHAR) || '-------------------------' AS t FROM TABLE(generate_series(1, 1000000)))";
    let join = format!("SELECT count(a.t), count(b.t) FROM {side} a JOIN {side} b ON a.v = b.v");
    let error = rows(&mut database, &join, &[]).expect_err("a join beyond the memory");
    assert!(error.to_lowercase().contains("memory"), "{error}");
    let sort = "SELECT v FROM (SELECT v, row_number() OVER (ORDER BY v % 1000, v) AS n \
                FROM TABLE(generate_series(1, 500000))) WHERE n = 1";
    assert_eq!(rows(&mut database, sort, &[]), Ok(1));
    assert_eq!(rows(&mut database, "SELECT 1", &[]), Ok(1));
}

pub(crate) fn cursors_that_are_dropped_cost_nothing_and_hold_nobody_up() {
    let mut database = Embedded::start();
    let mut cursors = Vec::new();
    for _ in 0..1_000 {
        let rows = database.member().sql("SELECT v FROM TABLE(generate_series(1, 1000000))", &[]).unwrap();
        cursors.push(rows.into_rows().unwrap());
    }
    assert_eq!(cursors.iter_mut().filter_map(Iterator::next).count(), 1_000);
    drop(cursors);
    assert_eq!(rows(&mut database, "SELECT 1", &[]), Ok(1));
}
