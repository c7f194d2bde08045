//! The statements of the SQL tests, and the words in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// The directory of the SQL tests.
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/filbert/tests/slt");

/// The vocabulary of texts.
pub static WORDS: LazyLock<Words> = LazyLock::new(Words::read);

/// Statements and words.
pub struct Words {
    /// The words of each statement.
    pub statements: Vec<Vec<String>>,
    /// All different words.
    pub all: Vec<String>,
}

impl Words {
    fn read() -> Words {
        let entries = fs::read_dir(Path::new(TESTS)).expect("the SQL tests are in the repository");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("the directory can be read").path()).collect();
        paths.sort();
        let mut statements: Vec<Vec<String>> = Vec::new();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "slt")) {
            let text = fs::read_to_string(path).expect("the SQL tests are texts");
            statements.extend(records(&text).iter().map(|statement| split(statement)));
        }
        let more = MORE.iter().map(|word| (*word).to_owned());
        let all: BTreeSet<String> = statements.iter().flatten().cloned().chain(more).collect();
        assert!(statements.len() > 1_000 && all.len() > 1_000, "the SQL tests have statements");
        Words { statements, all: all.into_iter().collect() }
    }
}

/// Words that the tests do not contain.
const MORE: [&str; 24] = [
    "--",
    "/*",
    "*/",
    "$$",
    "$1",
    "$2",
    "$x$",
    "?",
    "\\",
    "'",
    "\"",
    "`",
    "E'\\''",
    "U&'\\0061'",
    "0x1f",
    "1e400",
    "1.",
    ".5",
    "9223372036854775808",
    "\u{2}",
    "\0",
    "ß",
    "\n",
    "..",
];

/// The statements of a file: the lines between the head of a record and its rows.
fn records(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("statement") || line.starts_with("query") {
            let statement = lines.by_ref().take_while(|line| !line.is_empty() && *line != "----");
            statements.push(statement.collect::<Vec<_>>().join("\n"));
        }
    }
    statements
}

/// The words, numbers, literals and signs of a text.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | '.');
        let is_sign = |char: char| !is_word(char) && !char.is_whitespace() && !"'\"()[]{},;".contains(char);
        let count = match first {
            '\'' | '"' => rest.char_indices().skip(1).find(|(_, char)| *char == first).map_or(1, |(at, _)| at + 1),
            _ if is_word(first) => rest.find(|char: char| !is_word(char)).unwrap_or(rest.len()),
            _ if is_sign(first) => rest.find(|char: char| !is_sign(char)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(count);
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}
