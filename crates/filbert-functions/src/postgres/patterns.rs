//! `LIKE`, `SIMILAR TO` and regular expressions.
//!
//! `text LIKE pattern ESCAPE e` stays DataFusion's `LIKE`, so indexes serve it. Its pattern is
//! rewritten with the backslash as the escape character, only before `%`, `_` and itself. The other
//! operators are functions.

use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::{FieldType, Value};
use filbert_dialect::escaped_pattern;

use super::super::results::check_value;
use super::super::row::{Function, Texts, collect_texts, is_text, wrong_arguments};
use super::each;
use super::expressions::of_similar;
use super::matcher::{self, Matcher, Span};
use super::refused;
use crate::error::carried;
use crate::native::{Call, Native, Take, bool, int4, of_text, pure, text, texts};

pub(super) const FUNCTIONS: &[Native] = &[
    // `text <operator> ANY (patterns)` or `ALL`.
    pure("matches_each", &[Take::Text, Take::Texts, Take::Text, Take::Bool], bool, each::matches).takes_nulls(),
    pure("regexp_like", &[Take::Text, Take::Text, Take::Text], bool, |call| {
        matching(call, 2, "regexp_like", |matcher| Ok(Value::Boolean(matcher.is_match(call.text(0)))))
    })
    .least(2),
    pure("regexp_match", &[Take::Text, Take::Text, Take::Text], texts, |call| {
        matching(call, 2, "regexp_match", |matcher| {
            let found = matcher.captures(call.text(0), 0)?;
            Ok(found.map_or(Value::Null, |groups| groups_of(call.text(0), &groups)))
        })
    })
    .least(2),
    pure("regexp_matches", &[Take::Text, Take::Text, Take::Text], lists, |call| {
        matcher::with(call.text(1), call.text(2), |matcher| {
            let all = matcher.all(call.text(0), 0, matcher.is_global)?;
            Ok(Value::Array(all.iter().map(|groups| groups_of(call.text(0), groups)).collect()))
        })
    })
    .least(2),
    pure("regexp_replace", &[Take::Text, Take::Text, Take::Text, Take::Any, Take::Any, Take::Text], text, replace)
        .least(3),
    pure("regexp_split_to_array", &[Take::Text, Take::Text, Take::Text], texts, split).least(2),
    pure("regexp_split_to_table", &[Take::Text, Take::Text, Take::Text], texts, split).least(2),
    pure("regexp_count", &[Take::Text, Take::Text, Take::Int, Take::Text], int4, |call| {
        let from = start(call, 2)?;
        matching(call, 3, "regexp_count", |matcher| {
            let count = matcher.spans(call.text(0), from)?.len();
            Ok(i32::try_from(count).map_or(Value::Null, Value::Int32))
        })
    })
    .least(2),
    pure(
        "regexp_instr",
        &[Take::Text, Take::Text, Take::Int, Take::Int, Take::Int, Take::Text, Take::Int],
        int4,
        |call| {
            let from = start(call, 2)?;
            let at_end = match call.int(4).unwrap_or(0) {
                0 => false,
                1 => true,
                other => return Err(wrong_parameter("endoption", other)),
            };
            let found = matching(call, 5, "regexp_instr", |matcher| nth(call, matcher, from, 3, 6))?;
            let text = call.text(0);
            let place = found.map_or(0, |(start, end)| {
                let byte = if at_end { end } else { start };
                text.get(..byte).unwrap_or_default().chars().count() + 1
            });
            Ok(i32::try_from(place).map_or(Value::Null, Value::Int32))
        },
    )
    .least(2),
    pure("regexp_substr", &[Take::Text, Take::Text, Take::Int, Take::Int, Take::Text, Take::Int], text, |call| {
        let from = start(call, 2)?;
        let found = matching(call, 4, "regexp_substr", |matcher| nth(call, matcher, from, 3, 5))?;
        Ok(found.and_then(|(start, end)| call.text(0).get(start..end)).map_or(Value::Null, of_text))
    })
    .least(2),
];

fn lists(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Array(Box::new(FieldType::Varchar))))
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("escaped_pattern", coerce, returns_text, escaped_patterns),
        Function::udf("similar_pattern", coerce, returns_text, similar_patterns),
        Function::udf("text_matches", coerce, |_| Ok(FieldType::Boolean), matches),
    ]
}

fn returns_text(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Varchar)
}

fn coerce(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types.iter().all(is_text) {
        true => Ok(vec![DataType::Utf8View; types.len()]),
        false => Err(wrong_arguments(name, types)),
    }
}

/// The escape character in a text; none if it is empty.
fn escape_of(text: &str) -> Result<Option<char>> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (escape, None) => Ok(escape),
        _ => Err(refused("22025", "invalid escape string")),
    }
}

fn escaped_patterns(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (patterns, escapes) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    collect_texts(args, |row| match (patterns.get(row), escapes.get(row)) {
        (Some(pattern), Some(escape)) => escaped_pattern(pattern, escape_of(escape)?).map(Some).map_err(carried),
        _ => Ok(None),
    })
}

fn similar_patterns(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (patterns, escapes) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    collect_texts(args, |row| match (patterns.get(row), escapes.get(row)) {
        (Some(pattern), Some(escape)) => matcher::valid(of_similar(pattern, escape_of(escape)?)).map(Some),
        _ => Ok(None),
    })
}

/// `text_matches(text, expression, options)`
fn matches(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (texts, patterns, options) = (Texts::of(args, 0)?, Texts::of(args, 1)?, Texts::of(args, 2)?);
    let one = |row: usize| match (texts.get(row), patterns.get(row), options.get(row)) {
        (Some(text), Some(pattern), Some(options)) => {
            matcher::with(pattern, options, |matcher| Ok(Some(matcher.is_match(text))))
        }
        _ => Ok(None),
    };
    if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
        return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(one(0)?)));
    }
    let mut builder = BooleanBuilder::with_capacity(args.number_rows);
    // Usually the expression is the same for all rows.
    let constant = match (&patterns, &options) {
        // A pattern beside NULL only is not compiled, so it may be invalid.
        (Texts::Constant(Some(pattern)), Texts::Constant(Some(options)))
            if (0..args.number_rows).any(|row| texts.get(row).is_some()) =>
        {
            Some(Matcher::new(pattern, options)?)
        }
        _ => None,
    };
    for row in 0..args.number_rows {
        builder.append_option(match &constant {
            Some(matcher) => texts.get(row).map(|text| matcher.is_match(text)),
            None => one(row)?,
        });
    }
    Ok(ColumnarValue::Array(Arc::new(builder.finish())))
}

/// Runs a function with the expression of a call. `options` is the position of its option letters,
/// where `g` is not allowed.
fn matching<T>(call: &Call<'_>, options: usize, name: &str, act: impl FnOnce(&Matcher) -> Result<T>) -> Result<T> {
    let letters = if call.values.len() > options { call.text(options) } else { "" };
    if letters.contains('g') {
        return Err(refused("22023", format!("{name}() does not support the \"global\" option")));
    }
    matcher::with(call.text(1), letters, act)
}

fn wrong_parameter(name: &str, value: i64) -> datafusion::common::DataFusionError {
    refused("22023", format!("invalid value for parameter \"{name}\": {value}"))
}

/// The start of a search in bytes, from its character position.
fn start(call: &Call<'_>, at: usize) -> Result<usize> {
    let from = if call.values.len() > at { call.int(at).unwrap_or(1) } else { 1 };
    if from < 1 {
        return Err(wrong_parameter("start", from));
    }
    let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
    let text = call.text(0);
    Ok(text
        .char_indices()
        .nth(skipped)
        .map_or_else(|| if skipped == text.chars().count() { text.len() } else { text.len() + 1 }, |(byte, _)| byte))
}

/// The n-th match, or a group of it, from the arguments at these positions.
fn nth(call: &Call<'_>, matcher: &Matcher, from: usize, number: usize, group: usize) -> Result<Option<Span>> {
    let wanted = if call.values.len() > number { call.int(number).unwrap_or(1) } else { 1 };
    let Some(wanted) = usize::try_from(wanted - 1).ok().filter(|_| wanted > 0) else {
        return Err(wrong_parameter("n", wanted));
    };
    let group = if call.values.len() > group { call.int(group).unwrap_or(0) } else { 0 };
    let Ok(group) = usize::try_from(group) else { return Err(wrong_parameter("subexpr", group)) };
    if group == 0 {
        return Ok(matcher.spans(call.text(0), from)?.get(wanted).copied());
    }
    let all = matcher.all(call.text(0), from, true)?;
    // Without groups the whole match is the first one.
    let place = |groups: &[Option<Span>]| if groups.len() == 1 { group - 1 } else { group };
    Ok(all.get(wanted).and_then(|groups| groups.get(place(groups))).copied().flatten())
}

/// The texts of the groups, or of the whole match if there are none.
fn groups_of(text: &str, groups: &[Option<Span>]) -> Value<'static> {
    let skipped = usize::from(groups.len() > 1);
    let one = |span: &Option<Span>| match span.and_then(|(start, end)| text.get(start..end)) {
        Some(found) => of_text(found),
        None => Value::Null,
    };
    Value::Array(groups.iter().skip(skipped).map(one).collect())
}

/// `regexp_replace(text, expression, new [, options])` or
/// `(text, expression, new, start [, number [, options]])`
fn replace(call: &Call<'_>) -> Result<Value<'static>> {
    let (from, wanted, letters) = match call.values.get(3) {
        None => (0, 1, ""),
        Some(Value::Text(letters)) => {
            if letters.starts_with(|first: char| first.is_ascii_digit()) {
                let hint = format!("invalid regular expression option: \"{letters}\"");
                return Err(refused("22023", hint));
            }
            (0, 1, &**letters)
        }
        Some(_) => {
            let number = if call.values.len() > 4 { call.int(4).unwrap_or(1) } else { 1 };
            if number < 0 {
                return Err(wrong_parameter("n", number));
            }
            (start(call, 3)?, number, if call.values.len() > 5 { call.text(5) } else { "" })
        }
    };
    let (text, new) = (call.text(0), call.text(2));
    matcher::with(call.text(1), letters, |matcher| {
        let mut all = found_all(matcher, text, new, from)?;
        let takes_all = wanted == 0 || (matcher.is_global && call.values.len() < 5);
        if !takes_all {
            let at = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
            all = all.into_iter().skip(at).take(1).collect();
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for groups in &all {
            let Some((start, end)) = groups.first().copied().flatten() else { continue };
            check_value(out.len() + new.len())?;
            out.push_str(text.get(at..start).unwrap_or_default());
            push_new(new, text, groups, &mut out)?;
            at = end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Ok(of_text(out))
    })
}

/// All matches, with their groups if the replacement uses them.
fn found_all(matcher: &Matcher, text: &str, new: &str, from: usize) -> Result<Vec<Vec<Option<Span>>>> {
    let asks = new.as_bytes().windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9']));
    match asks {
        true => matcher.all(text, from, true),
        false => Ok(matcher.spans(text, from)?.into_iter().map(|span| vec![Some(span)]).collect()),
    }
}

/// Writes the replacement of a match, up to the maximum length: `\1` is a group, `\&` the whole
/// match, `\\` a backslash.
fn push_new(new: &str, text: &str, groups: &[Option<Span>], out: &mut String) -> Result<()> {
    let mut rest = new;
    while let Some((plain, marked)) = rest.split_once('\\') {
        out.push_str(plain);
        let group = match marked.bytes().next() {
            Some(b'&') => 0,
            Some(digit @ b'1'..=b'9') => usize::from(digit - b'0'),
            other => {
                out.push('\\');
                rest = marked.get(usize::from(other == Some(b'\\'))..).unwrap_or_default();
                continue;
            }
        };
        rest = marked.get(1..).unwrap_or_default();
        let found = groups.get(group).copied().flatten().and_then(|(start, end)| text.get(start..end));
        out.push_str(found.unwrap_or_default());
        check_value(out.len())?;
    }
    out.push_str(rest);
    Ok(())
}

/// The parts between matches. Empty matches at the ends, or after another match, do not split.
fn split(call: &Call<'_>) -> Result<Value<'static>> {
    let text = call.text(0);
    matching(call, 2, "regexp_split_to_array", |matcher| {
        let mut parts = Vec::new();
        let mut at = 0;
        for (start, end) in matcher.spans(text, 0)? {
            if start == end && (start == at || start >= text.len()) {
                continue;
            }
            parts.push(of_text(text.get(at..start).unwrap_or_default()));
            at = end;
        }
        parts.push(of_text(text.get(at..).unwrap_or_default()));
        Ok(Value::Array(parts))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_escape_only_what_has_to_be() {
        for (pattern, escape, expected) in [
            (r"a\%b", Some('\\'), r"a\%b"),
            (r"a\b%", Some('\\'), "ab%"),
            (r"a\\_", Some('\\'), r"a\\_"),
            (r"a\%", None, r"a\\%"),
            ("a!%!!!a%", Some('!'), r"a\%!a%"),
            ("%%_", Some('%'), r"\%_"),
        ] {
            assert_eq!(escaped_pattern(pattern, escape).unwrap(), expected, "{pattern}");
        }
        assert!(escaped_pattern("a!", Some('!')).is_err());
    }
}
