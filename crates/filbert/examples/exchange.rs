//! An embedded member that shares its maps with clients of all languages: `exchange types.json`.
//!
//! It serves on a free loopback port and prints the ready line of the `filbert` program. Before the
//! ready line it writes the values of the file that Rust supports, under their names and as keys.
//! Each line of standard input names a language. For each language the program compares the bytes
//! that this language's client has written with the bytes that Rust would write. It prints `same`
//! or the differences. It ends at the end of its input. The end-to-end tests run it; see
//! e2e/shared/types.json.

#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::io::{BufRead, stdin};
use std::net::Ipv4Addr;
use std::str::FromStr;

use filbert::{Blob, Config, Filbert, Json, List, Map, ToBlob};
use serde_json::Value;
use uuid::Uuid;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One value of the file.
struct Row {
    name: Blob,
    shown: String,
    writers: Vec<String>,
    /// `None` if the type has no Rust counterpart in the crates of this project.
    value: Option<Blob>,
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("usage: exchange types.json")?;
    let rows = read(&std::fs::read_to_string(path)?)?;
    let filbert = Filbert::start(Config::default().with_listener((Ipv4Addr::LOCALHOST, 0).into()))?;
    let (values, keys) = maps(&filbert, "rust")?;
    for row in rows.iter().filter(|row| row.writers.iter().any(|writer| writer == "rust")) {
        let value = row.value.as_ref().ok_or_else(|| format!("Rust cannot write {}", row.shown))?;
        values.set(&row.name, value)?;
        keys.set(value, &row.name)?;
    }
    println!("ready: Hazelcast clients on {}", filbert.address().ok_or("the member has no listener")?);
    for language in stdin().lock().lines() {
        let differences = compare(&filbert, &rows, language?.trim())?;
        println!("{}", if differences.is_empty() { "same".to_owned() } else { differences.join("; ") });
    }
    filbert.shutdown();
    Ok(())
}

fn maps(filbert: &Filbert, language: &str) -> Result<(Map<Blob, Blob>, Map<Blob, Blob>)> {
    let map = |what: &str| filbert.map::<Blob, Blob>(&format!("exchange-{what}-{language}"));
    Ok((map("values")?, map("keys")?))
}

/// Returns the differences between the values of a language's client and the values of Rust.
fn compare(filbert: &Filbert, rows: &[Row], language: &str) -> Result<Vec<String>> {
    let (values, keys) = maps(filbert, language)?;
    let mut differences = Vec::new();
    for row in rows.iter().filter(|row| row.writers.iter().any(|writer| writer == language)) {
        let Some(value) = &row.value else { continue };
        let found = values.get(&row.name)?;
        if found.as_ref() != Some(value) {
            differences.push(format!("{}: expected {value:?}, found {found:?}", row.shown));
        }
        if keys.get(value)?.as_ref() != Some(&row.name) {
            differences.push(format!("{}: not found by key", row.shown));
        }
    }
    Ok(differences)
}

fn read(text: &str) -> Result<Vec<Row>> {
    let file: Value = serde_json::from_str(text)?;
    let rows = file.get("values").and_then(Value::as_array).ok_or("the file has no list of values")?;
    rows.iter().map(row).collect()
}

fn row(row: &Value) -> Result<Row> {
    let field = |name: &str| row.get(name).ok_or_else(|| format!("a value has no {name}: {row}"));
    let shown = text(field("name")?);
    let writers = field("writers")?.as_array().into_iter().flatten().map(text).collect();
    let value = blob(&text(field("type")?), field("value")?)?;
    Ok(Row { name: shown.to_blob()?, shown, writers, value })
}

/// The text of a JSON value. Numbers become text too.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn blob(kind: &str, value: &Value) -> Result<Option<Blob>> {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(text).collect();
    let one = text(value);
    Ok(Some(match kind {
        "boolean" => one.parse::<bool>()?.to_blob()?,
        "byte" => one.parse::<i8>()?.to_blob()?,
        "char" => one.chars().next().ok_or("a char is empty")?.to_blob()?,
        "short" => one.parse::<i16>()?.to_blob()?,
        "int" => one.parse::<i32>()?.to_blob()?,
        "long" => one.parse::<i64>()?.to_blob()?,
        "float" => one.parse::<f32>()?.to_blob()?,
        "double" => one.parse::<f64>()?.to_blob()?,
        "string" => one.to_blob()?,
        "uuid" => Uuid::parse_str(&one)?.to_blob()?,
        "json" => Json(one).to_blob()?,
        "byte[]" => parsed::<i8>(&items)?.into_iter().map(i8::cast_unsigned).collect::<Vec<u8>>().to_blob()?,
        "boolean[]" => parsed::<bool>(&items)?.to_blob()?,
        "short[]" => parsed::<i16>(&items)?.to_blob()?,
        "int[]" => parsed::<i32>(&items)?.to_blob()?,
        "long[]" => parsed::<i64>(&items)?.to_blob()?,
        "float[]" => parsed::<f32>(&items)?.to_blob()?,
        "double[]" => parsed::<f64>(&items)?.to_blob()?,
        "string[]" => items.to_blob()?,
        "list" => List(items).to_blob()?,
        _ => return Ok(None),
    }))
}

fn parsed<T: FromStr<Err: Error + 'static>>(items: &[String]) -> Result<Vec<T>> {
    items.iter().map(|item| Ok(item.parse()?)).collect()
}
