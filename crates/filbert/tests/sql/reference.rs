//! The examples of the SQL reference, `docs/reference/sql.md`: the statements of its `sql` blocks,
//! in page order, in one member. The expected rows follow a statement as comments, `-- value |
//! value`. Alternatives are `-- error text` and `-- contains text`.

use std::path::Path;

use crate::database::{Answer, Database, Embedded};
use crate::values::text_of;

/// A statement with the comments after it.
struct Example {
    line: usize,
    sql: String,
    expected: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::<Example>::new();
    let (mut inside, mut ended) = (false, true);
    for (at, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```sql";
            ended = true;
        } else if !inside || line.is_empty() {
            continue;
        } else if let Some(comment) = line.strip_prefix("-- ") {
            examples.last_mut().unwrap().expected.push(comment.to_owned());
        } else {
            if ended {
                examples.push(Example { line: at + 1, sql: String::new(), expected: Vec::new() });
            }
            let example = examples.last_mut().unwrap();
            example.sql.push_str(line.trim_end_matches(';'));
            example.sql.push('\n');
            ended = line.ends_with(';');
        }
    }
    examples
}

fn run(database: &mut Embedded, example: &Example) -> Result<(), String> {
    let first = example.expected.first().map(String::as_str).unwrap_or_default();
    let answer = database.answer(&example.sql, &[]);
    let error = first.strip_prefix("error ");
    match (answer, error) {
        (Err(found), Some(error)) if found.to_string().contains(error) => Ok(()),
        (Err(found), _) => Err(found.to_string()),
        (Ok(_), Some(error)) => Err(format!("no error, expected {error}")),
        (Ok(Answer::Count(_)), None) if example.expected.is_empty() => Ok(()),
        (Ok(Answer::Count(_)), None) => Err("a count instead of rows".to_owned()),
        (Ok(Answer::Rows { rows, .. }), None) => {
            let rows: Vec<String> =
                rows.iter().map(|row| row.iter().map(text_of).collect::<Vec<_>>().join(" | ")).collect();
            let is_expected = match first.strip_prefix("contains ") {
                Some(text) => rows.iter().any(|row| row.contains(text)),
                None => rows == example.expected,
            };
            if is_expected { Ok(()) } else { Err(format!("found\n{}", rows.join("\n"))) }
        }
    }
}

pub(crate) fn every_example_of_the_reference_is_as_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql.md");
    let examples = examples(&std::fs::read_to_string(page).unwrap());
    assert!(examples.len() > 30, "the page has {} examples", examples.len());
    let mut database = Embedded::start();
    let failure = |example: &Example| {
        let error = run(&mut database, example).err()?;
        Some(format!("line {}: {}{error}", example.line, example.sql))
    };
    let failures: Vec<String> = examples.iter().filter_map(failure).collect();
    assert!(
        failures.is_empty(),
        "{} of {} examples failed\n\n{}",
        failures.len(),
        examples.len(),
        failures.join("\n\n")
    );
}
