//! Parses texts in a dialect: any text, words in any order, statements of the SQL tests with
//! changes, and pieces that are nested or repeated many times.
//!
//! The first byte selects the kind of text. A parsed statement can be printed and parsed again. An
//! error has a text, and a position within the statement. No text takes long, or much of the stack.

mod checks;
mod words;

use filbert_grid::query::Dialect;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use words::WORDS;

/// The maximum number of words of a text.
const WORDS_MAX: usize = 2_000;
/// The maximum number of repetitions of a piece.
const REPEATED_MAX: usize = 600;

/// Reads a text that `data` describes.
pub fn read(data: &[u8], dialect: Dialect) {
    let Some((first, rest)) = data.split_first() else { return };
    let input = &mut Unstructured::new(rest);
    // The only possible error is an input with too few bytes, which is no finding.
    let _drawn = match first % 6 {
        0 => {
            checks::text(&String::from_utf8_lossy(rest), dialect);
            Ok(())
        }
        1 => any_words(input).map(|words| checks::words(&words, dialect)),
        2 | 3 => changed_statement(input).map(|words| checks::words(&words, dialect)),
        4 => nested(input).map(|words| checks::words(&words, dialect)),
        _ => {
            checks::name(&String::from_utf8_lossy(rest), dialect);
            any_words(input).map(|words| words.iter().for_each(|word| checks::name(word, dialect)))
        }
    };
}

fn word(input: &mut Unstructured<'_>) -> Result<&'static str> {
    let words = &WORDS.all;
    Ok(words[usize::from(input.arbitrary::<u16>()?) % words.len()].as_str())
}

fn statement(input: &mut Unstructured<'_>) -> Result<&'static [String]> {
    let statements = &WORDS.statements;
    Ok(&statements[usize::from(input.arbitrary::<u16>()?) % statements.len()])
}

fn any_words(input: &mut Unstructured<'_>) -> Result<Vec<&'static str>> {
    let mut words = Vec::new();
    while !input.is_empty() && words.len() < WORDS_MAX {
        words.push(word(input)?);
    }
    Ok(words)
}

/// The words of a statement, with changes.
fn changed_statement(input: &mut Unstructured<'_>) -> Result<Vec<&'static str>> {
    let mut words: Vec<&str> = statement(input)?.iter().map(String::as_str).collect();
    while !input.is_empty() && words.len() < WORDS_MAX {
        let from = input.choose_index(words.len() + 1)?;
        let to = (from + usize::from(input.int_in_range(0..=7u8)?)).min(words.len());
        match input.int_in_range(0..=7u8)? {
            0 => drop(words.drain(from..to)),
            1 => words.insert(from, word(input)?),
            2 => drop(words.splice(from..to, [word(input)?])),
            3 => {
                let copied = words[from..to].to_vec();
                let at = input.choose_index(words.len() + 1)?;
                drop(words.splice(at..at, copied));
            }
            4 => {
                words.insert(to, ")");
                words.insert(from, "(");
            }
            5 => words[from..to].reverse(),
            _ => {
                let other = statement(input)?;
                let start = input.choose_index(other.len().max(1))?;
                let count = usize::from(input.int_in_range(0..=12u8)?);
                drop(words.splice(from..to, other.iter().skip(start).take(count).map(String::as_str)));
            }
        }
    }
    Ok(words)
}

/// A statement in which a piece is repeated before and after a place.
fn nested(input: &mut Unstructured<'_>) -> Result<Vec<&'static str>> {
    let mut words: Vec<&str> = statement(input)?.iter().map(String::as_str).collect();
    let at = input.choose_index(words.len() + 1)?;
    let piece = |input: &mut Unstructured<'_>, common: &[&'static str]| {
        let count = input.int_in_range(0..=4usize)?;
        let words = (0..count).map(|_| match input.ratio(1, 2)? {
            true => input.choose(common).copied(),
            false => word(input),
        });
        words.collect::<Result<Vec<_>>>()
    };
    let before = piece(input, &["(", "[", "{", "NOT", "-", "SELECT", "CASE", "WHEN", "f", "ARRAY", "a", ",", "FROM"])?;
    let between = piece(input, &["1", "a", "'x'", "NULL", "SELECT", "1"])?;
    let behind = piece(input, &[")", "]", "}", "END", ".", "::", "+", "a", "1", ",", "UNION", "SELECT"])?;
    let (times_before, times_behind) = (input.int_in_range(0..=REPEATED_MAX)?, input.int_in_range(0..=REPEATED_MAX)?);
    let repeated = |piece: Vec<&'static str>, times: usize| {
        let words = piece.len() * times;
        piece.into_iter().cycle().take(words)
    };
    let pieces = repeated(before, times_before).chain(between).chain(repeated(behind, times_behind));
    drop(words.splice(at..at, pieces.collect::<Vec<_>>()));
    Ok(words)
}
