//! Templates of `to_char`, `to_timestamp` and `to_date`: patterns, and the text between them.

/// A pattern with its prefix and its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// As in [`PATTERNS`].
    pub(super) name: &'static str,
    /// Has the prefix `FM`: no padding with blanks and zeros.
    pub(super) is_bare: bool,
    /// Has the suffix `TH` or `th`.
    pub(super) ordinal: Option<Ordinal>,
}

/// The suffix of an ordinal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordinal {
    Upper,
    Lower,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pattern(Pattern),
    /// Neither a letter nor a digit.
    Separator(char),
    /// Any other character, or a quoted one.
    Literal(char),
}

/// All patterns; among those with a common prefix the longest comes first.
const PATTERNS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
    "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd",
    "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy",
    "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss",
    "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

/// Splits a template.
pub(super) fn parts(template: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = template;
    let mut is_bare = false;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = literal(quoted, &mut parts);
            continue;
        }
        if let Some(after) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (is_bare, rest) = (true, after);
            continue;
        }
        if let Some(after) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm")) {
            // There is one language, and names in it are not padded.
            (is_bare, rest) = (true, after);
            continue;
        }
        if let Some((name, after)) =
            PATTERNS.iter().find_map(|pattern| rest.strip_prefix(pattern).map(|after| (*pattern, after)))
        {
            let (ordinal, after) = match (after.strip_prefix("TH"), after.strip_prefix("th")) {
                (Some(after), _) => (Some(Ordinal::Upper), after),
                (_, Some(after)) => (Some(Ordinal::Lower), after),
                _ => (None, after),
            };
            // The suffix for numbers in words has no effect.
            let after = if ordinal.is_none() { after.strip_prefix("SP").unwrap_or(after) } else { after };
            parts.push(Part::Pattern(Pattern { name, is_bare, ordinal }));
            (is_bare, rest) = (false, after);
            continue;
        }
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            // An escaped quote.
            '\\' if after.starts_with('"') => {
                parts.push(Part::Literal('"'));
                rest = after.get(1..).unwrap_or_default();
            }
            other => {
                let is_separator = other.is_ascii() && !other.is_ascii_alphanumeric();
                parts.push(if is_separator { Part::Separator(other) } else { Part::Literal(other) });
                rest = after;
            }
        }
    }
    parts
}

/// The characters up to a closing quote.
fn literal<'t>(quoted: &'t str, parts: &mut Vec<Part>) -> &'t str {
    let mut chars = quoted.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => parts.extend(chars.next().map(Part::Literal)),
            other => parts.push(Part::Literal(other)),
        }
    }
    chars.as_str()
}

/// The names of months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The names of days.
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Months as Roman numerals.
pub(super) const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The suffix of an ordinal number.
pub(super) fn ordinal_letters(digits: &str, ordinal: Ordinal) -> &'static str {
    let is_teen = digits.len() > 1 && digits.as_bytes().get(digits.len() - 2) == Some(&b'1');
    let at = match digits.as_bytes().last() {
        Some(b'1') if !is_teen => 0,
        Some(b'2') if !is_teen => 1,
        Some(b'3') if !is_teen => 2,
        _ => 3,
    };
    let letters = match ordinal {
        Ordinal::Upper => ["ST", "ND", "RD", "TH"],
        Ordinal::Lower => ["st", "nd", "rd", "th"],
    };
    letters.get(at).copied().unwrap_or_default()
}
