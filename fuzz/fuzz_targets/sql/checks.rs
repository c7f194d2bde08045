//! Checks that every text must pass.

use filbert_data::Value;
use filbert_dialect::{
    DefaultPlace, Limits, Parsed, ParsedStatement, SessionCommand, differ_in_literals_only, parse, parse_declared_type,
    place_of_relation, quote_ident, without_literals,
};
use filbert_grid::query::{Dialect, SqlError};

/// The content of literals that must not be shown.
const SECRET: &str = "q7s3cr3t";

/// Parses a text, and checks the statement or the error.
pub fn text(text: &str, dialect: Dialect) -> Option<ParsedStatement> {
    let parsed = parse(text, dialect, &Limits::default(), &DefaultPlace);
    assert!(place_of_relation(text, "t", dialect).is_none_or(|place| is_within(place, text)));
    let hidden = without_literals(text, dialect);
    assert_eq!(without_literals(&hidden, dialect), hidden, "{text}");
    let _declared = parse_declared_type(text);
    match parsed {
        Ok(statement) => {
            assert!(statement == statement.clone());
            shown(&statement.parsed, dialect);
            Some(statement)
        }
        Err(error) => {
            check_error(&error, text);
            None
        }
    }
}

fn check_error(error: &SqlError, text: &str) {
    assert!(!error.message.is_empty() && !error.to_string().is_empty());
    assert!(error.sqlstate.is_none_or(|sqlstate| sqlstate.len() == 5));
    assert!(error.position.is_none_or(|place| is_within(place, text)), "{error:?} in {text:?}");
}

/// Whether a position in characters, from 1, is within a text or behind its end.
fn is_within(place: u32, text: &str) -> bool {
    (1..=text.chars().count() + 1).contains(&(place as usize))
}

/// Parts of statements that are stored or sent as text are parsed again without a change.
fn shown(parsed: &Parsed, dialect: Dialect) {
    let again = |text: &str| parse(text, dialect, &Limits::default(), &DefaultPlace).map(|again| again.parsed);
    match parsed {
        Parsed::Query(query) => assert!(!query.to_string().is_empty()),
        Parsed::Insert(insert) => {
            let _text = insert.source.as_ref().map(ToString::to_string);
        }
        Parsed::Explain { statement, .. } => shown(statement, dialect),
        Parsed::CreateView { query_text, query, .. } => match again(query_text) {
            Ok(Parsed::Query(found)) => assert_eq!(found.to_string(), query.to_string(), "{query_text}"),
            other => panic!("the query of a view, {query_text:?}, is {other:?}"),
        },
        Parsed::Session(SessionCommand::Ask(text)) => {
            assert!(matches!(again(text), Ok(Parsed::Query(_))), "{text}");
        }
        _ => {}
    }
}

/// Parses words with spaces between them, and checks their literals.
pub fn words(words: &[&str], dialect: Dialect) {
    let whole = words.join(" ");
    let parsed = text(&whole, dialect);
    hidden(words, dialect);
    if parsed.is_some_and(|statement| statement.parameters == 0) {
        template(words, &whole, dialect);
    }
}

/// The text of a plain literal, or the number.
fn literal(word: &str) -> Option<Value<'_>> {
    if let Some(text) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return (!text.contains(['\'', '\\'])).then(|| Value::text(text));
    }
    let is_number = !word.starts_with('0') && word.len() < 18 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten().map(Value::Int64)
}

/// The same statement with parameters differs from it in its literals only.
fn template(words: &[&str], whole: &str, dialect: Dialect) {
    let mut values = Vec::new();
    let template = words.iter().map(|word| match literal(word) {
        Some(value) => {
            values.push(value);
            format!("${}", values.len())
        }
        None => (*word).to_owned(),
    });
    let template = template.collect::<Vec<_>>().join(" ");
    let parsed = parse(&template, dialect, &Limits::default(), &DefaultPlace);
    if values.is_empty() || parsed.map(|statement| statement.parameters) != Ok(values.len()) {
        return;
    }
    assert!(differ_in_literals_only(whole, &template, &values, dialect), "{whole} and {template}");
    for at in 0..values.len() {
        let other = match &values[at] {
            Value::Int64(number) => Value::Int64(number + 1),
            _ => Value::text(SECRET),
        };
        let kept = std::mem::replace(&mut values[at], other);
        assert!(!differ_in_literals_only(whole, &template, &values, dialect), "{whole}, {template} and {values:?}");
        values[at] = kept;
    }
}

/// No literal is shown in logs, whatever text surrounds it.
fn hidden(words: &[&str], dialect: Dialect) {
    let is_quoted = |word: &str| word.len() > 1 && word.starts_with('\'') && word.ends_with('\'');
    // In a quoted name, nothing is a literal.
    if words.iter().any(|word| word.contains(['"', '`', '\\', '$']) || word.contains('\'') && !is_quoted(word)) {
        return;
    }
    let mut forms = ["'_'", "N'_'", "X'_'", "'a''_'", "$$_$$", "$x$_$x$", "E'_'", "U&'_'"].iter().cycle();
    let secret = words.iter().map(|word| match (is_quoted(word), forms.next()) {
        (true, Some(form)) => form.replace('_', SECRET),
        _ => (*word).to_owned(),
    });
    let text = secret.collect::<Vec<_>>().join(" ");
    let hidden = without_literals(&text, dialect);
    assert!(!hidden.contains(SECRET), "{text} is shown as {hidden}");
}

/// A quoted name is read as the name.
pub fn name(name: &str, dialect: Dialect) {
    if dialect == Dialect::Hazelcast || name.is_empty() || name.contains('.') {
        return;
    }
    let name = &name.chars().take(60).collect::<String>();
    let quoted = quote_ident(name);
    let text = format!("CREATE INDEX {quoted} ON public.{quoted} USING btree ({quoted})");
    match parse(&text, dialect, &Limits::default(), &DefaultPlace).map(|statement| statement.parsed) {
        Ok(Parsed::CreateIndex(index)) => assert_eq!(&index.attributes, &[name.clone()], "{text}"),
        other => panic!("{text} is {other:?}"),
    }
}
