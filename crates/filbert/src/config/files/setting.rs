//! The declaration of a setting, with its name, kind, limits, unit and explanation.
//!
//! The declaration provides the reader (accepted values and error text), the default (read from a
//! default value of the target), and the line in docs/reference/settings.md.

use super::error::Problem;
use super::tree::Node;
use super::walk::{Path, Walk};

/// One setting of a target `T`.
pub(crate) struct Setting<T: 'static> {
    /// Dotted name below the section, such as `eviction.size`.
    pub(crate) name: &'static str,
    /// The kind of the value, with its accessors.
    pub(crate) kind: Kind<T>,
    /// Unit of a number; empty where there is none.
    pub(crate) unit: &'static str,
    /// One or two sentences: the effect, and the reason for the default if the setting is a limit.
    pub(crate) doc: &'static str,
}

/// The permitted values of a setting.
pub(crate) enum Kind<T: 'static> {
    /// `true` or `false`.
    Flag { get: fn(&T) -> bool, set: fn(&mut T, bool) },
    /// A whole number from `min` to `max`, both included.
    Whole { min: u64, max: u64, get: fn(&T) -> u64, set: fn(&mut T, u64) },
    /// A whole number as in `Whole`. Without one, `unset` describes the effect.
    Number { min: u64, max: u64, unset: &'static str, get: fn(&T) -> Option<u64>, set: fn(&mut T, u64) },
    /// One of several words, case-insensitive. `set` receives the declared spelling.
    Choice { of: &'static [&'static str], get: fn(&T) -> &'static str, set: fn(&mut T, &'static str) },
    /// An amount of memory such as `512MiB`. `get` returns `None` for no limit.
    Bytes { get: fn(&T) -> Option<u64>, set: fn(&mut T, u64) },
    /// A text. `set` returns false if the text is not a `what`.
    Text { what: &'static str, get: fn(&T) -> String, set: fn(&mut T, &str) -> bool },
    /// A structured value that `read` parses. `doc` describes its settings.
    Structure { what: &'static str, default: &'static str, read: ReadStructure<T> },
}

/// Reads a structured value at a path of the tree.
pub(crate) type ReadStructure<T> = fn(&mut T, &mut Walk<'_>, &Path, &Node) -> Result<(), Problem>;

impl<T> Setting<T> {
    /// Parses a text into the target. The error is the expected value.
    pub(crate) fn read_text(&self, target: &mut T, text: &str) -> Result<(), String> {
        let accepted = match &self.kind {
            Kind::Flag { set, .. } => flag(text).map(|value| set(target, value)),
            Kind::Whole { min, max, set, .. } | Kind::Number { min, max, set, .. } => {
                text.parse().ok().filter(|value| (min..=max).contains(&value)).map(|value| set(target, value))
            }
            Kind::Choice { of, set, .. } => {
                of.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|word| set(target, word))
            }
            Kind::Bytes { set, .. } => bytes(text).map(|value| set(target, value)),
            Kind::Text { set, .. } => set(target, text).then_some(()),
            Kind::Structure { .. } => None,
        };
        accepted.ok_or_else(|| self.expected())
    }

    /// A description of the permitted values, for error texts and the reference.
    pub(crate) fn expected(&self) -> String {
        match &self.kind {
            Kind::Flag { .. } => "true or false".to_owned(),
            Kind::Whole { min, max: u64::MAX, .. } => format!("a whole number from {min}"),
            Kind::Whole { min, max, .. } | Kind::Number { min, max, .. } => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Choice { of, .. } => one_of(of),
            Kind::Bytes { .. } => SIZE_EXPECTED.to_owned(),
            Kind::Text { what, .. } | Kind::Structure { what, .. } => (*what).to_owned(),
        }
    }

    /// The current value of `target`, in the syntax of the file.
    pub(crate) fn show(&self, target: &T) -> String {
        match &self.kind {
            Kind::Flag { get, .. } => get(target).to_string(),
            Kind::Whole { get, .. } => get(target).to_string(),
            Kind::Number { unset, get, .. } => {
                get(target).map_or_else(|| (*unset).to_owned(), |number| number.to_string())
            }
            Kind::Choice { get, .. } => get(target).to_owned(),
            Kind::Bytes { get, .. } => get(target).map_or_else(|| "no limit".to_owned(), show_bytes),
            Kind::Text { get, .. } => get(target),
            Kind::Structure { default, .. } => (*default).to_owned(),
        }
    }
}

/// A description of the values that [`bytes`] accepts.
pub(crate) const SIZE_EXPECTED: &str = "an amount of memory such as 512MiB or 4GiB";

/// Joins alternatives: `LRU, LFU or NONE`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [start @ .., last] => format!("{} or {last}", start.join(", ")),
    }
}

/// Parses a boolean. Hazelcast's configurations also use `yes`, `no`, `on` and `off`.
pub(crate) fn flag(text: &str) -> Option<bool> {
    let is = |words: [&str; 3]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match text {
        _ if is(["true", "yes", "on"]) => Some(true),
        _ if is(["false", "no", "off"]) => Some(false),
        _ => None,
    }
}

/// Parses an amount of memory: a whole number with an optional unit. `KiB`, `MiB`, `GiB` and `TiB`
/// are powers of 1024. So are `K`, `M`, `G` and `T`, with or without `B`, as usual in Java. A
/// number without a unit is in bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Formats an amount of memory with the largest unit that divides it.
pub(crate) fn show_bytes(amount: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    units
        .into_iter()
        .find(|(shift, _)| amount != 0 && amount.trailing_zeros() >= *shift)
        .map_or_else(|| format!("{amount}B"), |(shift, unit)| format!("{}{unit}", amount >> shift))
}

#[cfg(test)]
mod tests {
    use super::{bytes, flag, show_bytes};

    #[test]
    fn amounts_of_memory() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(bytes(text), expect, "{text:?}");
        check("0", Some(0));
        check("4096", Some(4096));
        check("4096B", Some(4096));
        check("1K", Some(1024));
        check("1kb", Some(1024));
        check("512MiB", Some(512 << 20));
        check("512 mib", Some(512 << 20));
        check("4GiB", Some(4 << 30));
        check(" 4G ", Some(4 << 30));
        check("2TB", Some(2 << 40));
        check("", None);
        check("GiB", None);
        check("-1", None);
        check("1.5GiB", None);
        check("4 gigs", None);
        check("99999999999999999999", None);
        check("18446744073709551615T", None);
    }

    #[test]
    fn amounts_are_shown_in_the_unit_that_divides_them() {
        let check = |amount: u64, expect: &str| assert_eq!(show_bytes(amount), expect);
        check(0, "0B");
        check(1000, "1000B");
        check(65536, "64KiB");
        check(16 << 20, "16MiB");
        check(3 << 30, "3GiB");
        check(1 << 40, "1TiB");
    }

    #[test]
    fn words_for_true_and_false() {
        for (text, expect) in [
            ("true", Some(true)),
            ("TRUE", Some(true)),
            ("yes", Some(true)),
            ("on", Some(true)),
            ("false", Some(false)),
            ("No", Some(false)),
            ("off", Some(false)),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(flag(text), expect, "{text:?}");
        }
    }
}
