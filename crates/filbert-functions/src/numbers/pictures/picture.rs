//! Parses number patterns.

use datafusion::common::Result;

use crate::error::{carried, parsing_error};

/// An element of a pattern, with its meaning at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    Currency,
    LocalePoint,
    Exponent,
    Fill,
    Group,
    CurrencySign,
    Minus,
    Plus,
    Brackets,
    Roman { is_lower: bool },
    PlusMinus,
    Spell,
    Sign,
    Ordinal { is_lower: bool },
    Shift,
}

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pattern(Pattern),
    /// A literal character.
    Literal(char),
}

/// All elements; among those with a common prefix the longest comes first. Except for two, lower
/// case means the same.
const PATTERNS: [(&str, Pattern); 20] = [
    (",", Pattern::Comma),
    (".", Pattern::Point),
    ("0", Pattern::Zero),
    ("9", Pattern::Nine),
    ("B", Pattern::Blank),
    ("C", Pattern::Currency),
    ("D", Pattern::LocalePoint),
    ("EEEE", Pattern::Exponent),
    ("FM", Pattern::Fill),
    ("G", Pattern::Group),
    ("L", Pattern::CurrencySign),
    ("MI", Pattern::Minus),
    ("PL", Pattern::Plus),
    ("PR", Pattern::Brackets),
    ("RN", Pattern::Roman { is_lower: false }),
    ("SG", Pattern::PlusMinus),
    ("SP", Pattern::Spell),
    ("S", Pattern::Sign),
    ("TH", Pattern::Ordinal { is_lower: false }),
    ("V", Pattern::Shift),
];

/// The position of a sign that is anchored to the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Before,
    Behind,
}

/// A parsed pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) parts: Vec<Part>,
    /// The digits before and after the decimal point.
    pub(super) before: usize,
    pub(super) behind: usize,
    /// The number of digits of the shift.
    pub(super) shift: usize,
    /// The range of digits in which zeros are written, from 0.
    pub(super) zero_start: usize,
    pub(super) zero_end: usize,
    pub(super) anchor: Option<Anchor>,
    /// The digits before the sign.
    pub(super) before_sign: usize,
    pub(super) has_zero: bool,
    pub(super) has_point: bool,
    pub(super) is_filled: bool,
    pub(super) has_plus: bool,
    pub(super) has_minus: bool,
    pub(super) has_brackets: bool,
    pub(super) is_roman: bool,
    pub(super) is_shifted: bool,
    pub(super) is_exponent: bool,
    is_blank: bool,
}

fn wrong(text: &str) -> datafusion::common::DataFusionError {
    carried(parsing_error(text))
}

impl Picture {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Its elements exclude each other.
    pub(super) fn of(text: &str) -> Result<Picture> {
        let mut picture = Picture::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some((pattern, after)) = pattern(rest) {
                picture.take(pattern)?;
                picture.parts.push(Part::Pattern(pattern));
                rest = after;
                continue;
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            match first {
                '"' => rest = picture.quoted(rest),
                // An escaped quote.
                '\\' if rest.starts_with('"') => {
                    picture.parts.push(Part::Literal('"'));
                    rest = rest.get(1..).unwrap_or_default();
                }
                other => picture.parts.push(Part::Literal(other)),
            }
        }
        // Counted from 1 during parsing.
        picture.zero_start = picture.zero_start.saturating_sub(1);
        Ok(picture)
    }

    fn quoted<'t>(&mut self, rest: &'t str) -> &'t str {
        let mut chars = rest.chars();
        while let Some(char) = chars.next() {
            match char {
                '"' => break,
                '\\' => self.parts.push(Part::Literal(chars.next().unwrap_or('\\'))),
                other => self.parts.push(Part::Literal(other)),
            }
        }
        chars.as_str()
    }

    fn take(&mut self, pattern: Pattern) -> Result<()> {
        if self.is_exponent && pattern != Pattern::Exponent {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        let is_anchored = self.anchor.is_some();
        match pattern {
            Pattern::Nine | Pattern::Zero if self.has_brackets => {
                let digit = if pattern == Pattern::Nine { '9' } else { '0' };
                return Err(wrong(&format!("\"{digit}\" must be ahead of \"PR\"")));
            }
            Pattern::Nine if self.is_shifted => self.shift += 1,
            Pattern::Nine if self.has_point => self.behind += 1,
            Pattern::Nine => self.before += 1,
            Pattern::Zero => {
                if !self.has_zero && !self.has_point {
                    self.has_zero = true;
                    self.zero_start = self.before + 1;
                }
                *(if self.has_point { &mut self.behind } else { &mut self.before }) += 1;
                self.zero_end = self.before + self.behind;
            }
            Pattern::Blank => self.is_blank |= self.before == 0 && self.behind == 0 && !self.has_zero,
            Pattern::Point | Pattern::LocalePoint => {
                if self.has_point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.is_shifted {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Pattern::Fill => self.is_filled = true,
            Pattern::Sign if is_anchored => return Err(wrong("cannot use \"S\" twice")),
            Pattern::Sign if self.has_plus || self.has_minus || self.has_brackets => {
                return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            Pattern::Sign if self.has_point => self.anchor = Some(Anchor::Behind),
            Pattern::Sign => {
                self.anchor = Some(Anchor::Before);
                self.before_sign = self.before;
            }
            Pattern::Minus if is_anchored => return Err(wrong("cannot use \"S\" and \"MI\" together")),
            Pattern::Minus => self.has_minus = true,
            Pattern::Plus if is_anchored => return Err(wrong("cannot use \"S\" and \"PL\" together")),
            Pattern::Plus => self.has_plus = true,
            Pattern::PlusMinus if is_anchored => return Err(wrong("cannot use \"S\" and \"SG\" together")),
            Pattern::PlusMinus => (self.has_minus, self.has_plus) = (true, true),
            Pattern::Brackets if is_anchored || self.has_plus || self.has_minus => {
                return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            Pattern::Brackets => self.has_brackets = true,
            Pattern::Roman { .. } => self.is_roman = true,
            Pattern::Shift if self.has_point => return Err(wrong("cannot use \"V\" and decimal point together")),
            Pattern::Shift => self.is_shifted = true,
            Pattern::Exponent if self.is_exponent => return Err(wrong("cannot use \"EEEE\" twice")),
            Pattern::Exponent => {
                let is_alone = !(self.is_blank || self.is_filled || is_anchored || self.has_brackets);
                if !is_alone || self.has_minus || self.has_plus || self.is_roman || self.is_shifted {
                    return Err(wrong("\"EEEE\" is incompatible with other formats"));
                }
                self.is_exponent = true;
            }
            Pattern::Comma
            | Pattern::Currency
            | Pattern::Group
            | Pattern::CurrencySign
            | Pattern::Spell
            | Pattern::Ordinal { .. } => {}
        }
        Ok(())
    }
}

/// The element at the start of a text, and the rest.
fn pattern(text: &str) -> Option<(Pattern, &str)> {
    PATTERNS.iter().find_map(|(name, pattern)| {
        if let Some(rest) = text.strip_prefix(name) {
            return Some((*pattern, rest));
        }
        let rest = text.strip_prefix(name.to_ascii_lowercase().as_str())?;
        Some(match pattern {
            Pattern::Roman { .. } => (Pattern::Roman { is_lower: true }, rest),
            Pattern::Ordinal { .. } => (Pattern::Ordinal { is_lower: true }, rest),
            other => (*other, rest),
        })
    })
}
