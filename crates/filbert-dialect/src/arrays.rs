//! Array literals: PostgreSQL's `{1,"a b",NULL}` and JSON's `[1, "a b", null]`, split into the
//! texts of their elements.

use filbert_data::is_space;

/// The elements of a literal, as texts and nulls; `None` for other texts.
pub fn items(text: &str) -> Option<Vec<Option<String>>> {
    let text = text.trim_matches(is_space);
    let is_json = text.starts_with('[');
    let inner = match is_json {
        true => text.strip_prefix('[')?.strip_suffix(']')?,
        false => text.strip_prefix('{')?.strip_suffix('}')?,
    };
    let mut items = Vec::new();
    let mut rest = inner.trim_matches(is_space);
    if rest.is_empty() {
        return Some(items);
    }
    loop {
        let (item, after) = item(rest)?;
        items.push(item);
        let after = after.trim_start_matches(is_space);
        if after.is_empty() {
            return Some(items);
        }
        rest = after.strip_prefix(',')?.trim_start_matches(is_space);
    }
}

/// The rows of an array of arrays, `{{1,2},{3,4}}`, as written; `None` for other texts.
pub fn rows(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim_matches(is_space).strip_prefix('{')?.strip_suffix('}')?.trim_matches(is_space);
    let mut rows = Vec::new();
    let (mut depth, mut start, mut is_quoted) = (0_usize, 0, false);
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => depth = depth.checked_sub(1)?,
            ',' if !is_quoted && depth == 0 => {
                rows.push(inner.get(start..at)?.trim_matches(is_space));
                start = at + 1;
            }
            _ => {}
        }
    }
    rows.push(inner.get(start..)?.trim_matches(is_space));
    let are_rows = rows.iter().all(|row| row.starts_with('{') && row.ends_with('}'));
    (are_rows && depth == 0 && !is_quoted).then_some(rows)
}

/// The first element and the rest.
fn item(text: &str) -> Option<(Option<String>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else { return plain(text) };
    let mut unescaped = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Some(unescaped), quoted.get(at + 1..)?)),
            '\\' => unescaped.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'u' => {
                    let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                other => other,
            }),
            other => unescaped.push(other),
        }
    }
    None
}

/// The first element, which is unquoted, and the rest. A backslash escapes the next character.
fn plain(text: &str) -> Option<(Option<String>, &str)> {
    let mut unescaped = String::new();
    // Trailing blanks do not count, unless they are escaped.
    let (mut kept, mut is_escaped) = (0, false);
    let mut characters = text.char_indices();
    let end = loop {
        match characters.next() {
            None => break text.len(),
            Some((at, ',')) => break at,
            Some((_, '\\')) => {
                unescaped.push(characters.next()?.1);
                (kept, is_escaped) = (unescaped.len(), true);
            }
            // Nested arrays are not supported here.
            Some((_, '{' | '}' | '[' | ']' | '"')) => return None,
            Some((_, character)) => {
                unescaped.push(character);
                if !is_space(character) {
                    kept = unescaped.len();
                }
            }
        }
    };
    unescaped.truncate(kept);
    let is_null = !is_escaped && unescaped.eq_ignore_ascii_case("null");
    (kept > 0).then(|| ((!is_null).then_some(unescaped), text.get(end..).unwrap_or_default()))
}
