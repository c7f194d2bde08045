//! `to_number`.

use bigdecimal::{BigDecimal, RoundingMode};
use datafusion::common::Result;

use super::picture::{Part, Pattern, Picture};
use crate::error::{carried, data_error, parsing_error};

/// The decimal places of a power of ten.
const POWER_SCALE: i64 = 16;

/// Parses a number by a pattern; `None` for an empty pattern.
///
/// # Errors
/// The pattern is invalid, or does not match the text.
pub(super) fn to_number(text: &str, picture: &str) -> Result<Option<BigDecimal>> {
    if picture.is_empty() {
        return Ok(None);
    }
    let picture = Picture::of(picture)?;
    let refused = |name: &str| {
        let text = format!("\"{name}\" not supported for input");
        Err(carried(parsing_error(text).with_sqlstate("0A000")))
    };
    if picture.is_exponent {
        return refused("EEEE");
    }
    if picture.is_roman {
        return refused("RN");
    }
    let mut reader = Reader {
        picture: &picture,
        input: text.chars().collect(),
        at: 0,
        sign: ' ',
        number: String::new(),
        before: 0,
        behind: 0,
        has_point: false,
        is_in: false,
    };
    reader.read();
    let number = reader.number.trim_end_matches('.');
    let text = format!("{}{number}", reader.sign);
    let wrong =
        || carried(data_error(format!("invalid input syntax for type numeric: \"{text}\"")).with_sqlstate("22P02"));
    let found: BigDecimal = text.trim().parse().map_err(|_| wrong())?;
    let most = picture.before + picture.shift;
    let whole = number.split('.').next().unwrap_or_default().trim_start_matches('0').len();
    if whole > most {
        return Err(carried(data_error("numeric field overflow").with_sqlstate("22003")));
    }
    let scale = i64::try_from(reader.behind).unwrap_or(i64::MAX);
    let found = found.with_scale_round(scale, RoundingMode::HalfUp);
    if !picture.is_shifted {
        return Ok(Some(found));
    }
    let shift = i64::try_from(picture.shift).unwrap_or(i64::MAX);
    // A power of ten below one has this number of decimal places.
    Ok(Some(
        (found * BigDecimal::new(1.into(), shift))
            .with_scale_round(scale + POWER_SCALE.max(shift), RoundingMode::HalfUp),
    ))
}

struct Reader<'p> {
    picture: &'p Picture,
    input: Vec<char>,
    at: usize,
    sign: char,
    number: String,
    before: usize,
    behind: usize,
    has_point: bool,
    is_in: bool,
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.at >= self.input.len()
    }

    fn char_at(&self, at: usize) -> char {
        self.input.get(at).copied().unwrap_or('\0')
    }

    fn next(&self) -> char {
        self.char_at(self.at)
    }

    fn read(&mut self) {
        for part in &self.picture.parts {
            if self.is_over() {
                break;
            }
            let Part::Pattern(pattern) = part else {
                // A literal skips one character, whatever it is.
                self.at += 1;
                continue;
            };
            match pattern {
                Pattern::Nine | Pattern::Zero | Pattern::Point | Pattern::LocalePoint => self.digit(*pattern),
                Pattern::Comma | Pattern::Group if self.next() != ',' || (!self.is_in && self.picture.is_filled) => {
                    continue;
                }
                Pattern::Comma | Pattern::Group => {}
                Pattern::Minus if self.next() == '-' => self.sign = '-',
                Pattern::Plus if self.next() == '+' => self.sign = '+',
                Pattern::PlusMinus if matches!(self.next(), '-' | '+') => self.sign = self.next(),
                Pattern::Minus | Pattern::Plus | Pattern::PlusMinus | Pattern::CurrencySign => {
                    self.pass(1);
                    continue;
                }
                Pattern::Ordinal { .. } => {
                    // With a decimal point in the pattern there are none.
                    self.pass(if self.picture.has_point { 0 } else { 2 });
                    continue;
                }
                _ => continue,
            }
            self.at += 1;
        }
    }

    /// Skips characters that cannot belong to a number.
    fn pass(&mut self, count: usize) {
        for _ in 0..count {
            if self.is_over() || "0123456789.,+-".contains(self.next()) {
                return;
            }
            self.at += 1;
        }
    }

    fn digit(&mut self, pattern: Pattern) {
        if self.next() == ' ' {
            self.at += 1;
        }
        if self.is_over() {
            return;
        }
        let is_digit = matches!(pattern, Pattern::Nine | Pattern::Zero);
        if self.sign == ' ' && is_digit && self.before + self.behind == 0 {
            self.leading_sign();
        }
        if self.is_over() {
            return;
        }
        let mut is_read = false;
        if self.next().is_ascii_digit() {
            if self.has_point && self.behind == self.picture.behind {
                return;
            }
            self.number.push(self.next());
            *(if self.has_point { &mut self.behind } else { &mut self.before }) += 1;
            is_read = true;
        } else if self.picture.has_point && !self.has_point && self.next() == '.' {
            self.number.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign == ' ' && self.before + self.behind > 0 {
            self.trailing_sign(is_read);
        }
    }

    fn leading_sign(&mut self) {
        self.sign = match self.next() {
            '<' if self.picture.has_brackets => '-',
            sign @ ('-' | '+') => sign,
            _ => return,
        };
        self.at += 1;
    }

    fn trailing_sign(&mut self, is_read: bool) {
        let is_signed = self.picture.has_plus || self.picture.has_minus;
        if self.picture.anchor.is_some() {
            let next = self.char_at(self.at + 1);
            if is_read && self.at + 1 < self.input.len() && matches!(next, '-' | '+') {
                self.sign = next;
                self.at += 1;
            }
        } else if !is_read && is_signed && matches!(self.next(), '-' | '+') {
            self.sign = self.next();
        }
    }
}
