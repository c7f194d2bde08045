//! `to_char` of numbers.

use bigdecimal::{BigDecimal, RoundingMode, Signed, ToPrimitive, Zero};
use datafusion::common::Result;
use filbert_data::Value;

use super::picture::{Anchor, Part, Pattern, Picture};
use crate::error::{carried, data_error};

/// The width to which a Roman numeral is padded.
const ROMAN_WIDTH: usize = 15;
/// The significant digits of 32-bit and 64-bit floating-point numbers.
const REAL_DIGITS: usize = 6;
const DOUBLE_DIGITS: usize = 15;

/// Formats a number by a pattern; `None` for values that are no numbers.
///
/// # Errors
/// The pattern is invalid.
pub(in super::super::super) fn to_char(value: &Value<'_>, text: &str) -> Result<Option<String>> {
    let mut picture = Picture::of(text)?;
    if text.is_empty() {
        return Ok(Some(String::new()));
    }
    let (number, digits) = match value {
        // They are formatted as floating-point numbers.
        Value::Int8(_) | Value::Int16(_) | Value::Int32(_) if picture.is_exponent => {
            (exact(value).and_then(|number| number.to_f64()).unwrap_or(0.0), Some(DOUBLE_DIGITS))
        }
        Value::Float32(number) => (f64::from(*number), Some(REAL_DIGITS)),
        Value::Float64(number) => (*number, Some(DOUBLE_DIGITS)),
        _ => (0.0, None),
    };
    let written = match (digits, exact(value)) {
        (Some(digits), _) => of_float(&mut picture, number, digits),
        (None, Some(number)) => of_exact(&mut picture, &number),
        _ => return Ok(None),
    };
    Ok(Some(written?))
}

fn exact(value: &Value<'_>) -> Option<BigDecimal> {
    Some(match value {
        Value::Int8(number) => BigDecimal::from(*number),
        Value::Int16(number) => BigDecimal::from(*number),
        Value::Int32(number) => BigDecimal::from(*number),
        Value::Int64(number) => BigDecimal::from(*number),
        Value::Decimal(number) => number.clone(),
        _ => return None,
    })
}

fn of_exact(picture: &mut Picture, number: &BigDecimal) -> Result<String> {
    let rounded = |number: &BigDecimal, digits: usize| number.with_scale_round(places(digits), RoundingMode::HalfUp);
    if picture.is_roman {
        let whole = rounded(number, 0).to_i32();
        let whole = whole.ok_or_else(|| carried(data_error("integer out of range").with_sqlstate("22003")))?;
        return Writer::roman(picture, whole);
    }
    if picture.is_exponent {
        return Ok(scientific(number, picture.behind));
    }
    let mut number = number.clone();
    if picture.is_shifted {
        number *= BigDecimal::new(1.into(), -places(picture.shift));
        picture.before += picture.shift;
    }
    let rounded = rounded(&number, picture.behind);
    let mut digits = rounded.abs().to_plain_string();
    if picture.behind > 0 && !digits.contains('.') {
        digits.push('.');
    }
    let written = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    digits.extend(std::iter::repeat_n('0', picture.behind.saturating_sub(written)));
    Writer::digits(picture, rounded.is_negative(), &digits)
}

fn of_float(picture: &mut Picture, number: f64, digits: usize) -> Result<String> {
    if picture.is_roman {
        // A number out of the range of Roman numerals also stays out of range as an `i32`.
        return Writer::roman(picture, number.round_ties_even() as i32);
    }
    if picture.is_exponent {
        if !number.is_finite() {
            let mut filled = "#".repeat(picture.before + picture.behind + 6);
            filled.replace_range(..1, " ");
            filled.replace_range(picture.before + 1..picture.before + 2, ".");
            return Ok(filled);
        }
        let sign = if number.is_sign_negative() { '-' } else { ' ' };
        return Ok(format!("{sign}{}", with_exponent(&format!("{:.*e}", picture.behind, number.abs()))));
    }
    let mut number = number;
    if picture.is_shifted {
        number *= 10_f64.powi(i32::try_from(picture.shift).unwrap_or(i32::MAX));
        picture.before += picture.shift;
    }
    let text = |digits: usize| match number.is_finite() {
        true => format!("{:.*}", digits, number.abs()),
        false if number.is_nan() => "NaN".to_owned(),
        false => "Infinity".to_owned(),
    };
    let whole = text(0).len();
    picture.behind = if whole >= digits { 0 } else { picture.behind.min(digits - whole) };
    Writer::digits(picture, number.is_sign_negative() && !number.is_nan(), &text(picture.behind))
}

fn places(digits: usize) -> i64 {
    i64::try_from(digits).unwrap_or(i64::MAX)
}

/// `1.50e+03`, with a blank instead of a minus sign for other numbers.
fn scientific(number: &BigDecimal, behind: usize) -> String {
    let sign = if number.is_negative() { '-' } else { ' ' };
    if number.is_zero() {
        let zeros = if behind > 0 { format!("0.{}", "0".repeat(behind)) } else { "0".to_owned() };
        return format!("{sign}{zeros}e+00");
    }
    let number = number.abs();
    let digits = places(usize::try_from(number.digits()).unwrap_or(0));
    let exponent = digits - 1 - number.as_bigint_and_exponent().1;
    // A mantissa that is rounded up to ten keeps the original exponent.
    let rounded = number.with_scale_round(places(behind) - exponent, RoundingMode::HalfUp);
    let mut digits = rounded.as_bigint_and_exponent().0.to_string();
    if behind > 0 {
        digits.insert(digits.len().saturating_sub(behind), '.');
    }
    format!("{sign}{}", with_exponent(&format!("{digits}e{exponent}")))
}

/// Rust's `1.5e3` with a sign and at least two digits in the exponent.
fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn roman(number: i32) -> String {
    const LETTERS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4000).contains(&number) {
        return "#".repeat(ROMAN_WIDTH);
    }
    let (mut rest, mut out) = (number, String::new());
    for (value, letters) in LETTERS {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    out
}

/// Writes a number by a pattern.
struct Writer<'p> {
    picture: &'p Picture,
    anchor: Option<Anchor>,
    has_brackets: bool,
    /// `None` for a Roman numeral, which has no sign.
    is_negative: Option<bool>,
    is_sign_written: bool,
    /// The digits and the decimal point, without a sign, and the position of the next of them.
    number: Vec<char>,
    at: usize,
    /// The position of the last significant character, if trailing zeros are omitted.
    last_relevant: Option<usize>,
    /// The positions of the pattern before the number starts.
    spaces: usize,
    /// The second to last position of the pattern.
    count: i64,
    /// The position in the pattern.
    place: usize,
    /// Whether a digit has been written.
    is_in: bool,
    out: String,
}

impl<'p> Writer<'p> {
    fn roman(picture: &'p Picture, number: i32) -> Result<String> {
        let mut writer = Writer {
            picture,
            anchor: None,
            has_brackets: false,
            is_negative: None,
            is_sign_written: false,
            number: roman(number).chars().collect(),
            at: 0,
            last_relevant: None,
            spaces: 0,
            count: 0,
            place: 0,
            is_in: false,
            out: String::new(),
        };
        writer.write()?;
        Ok(writer.written())
    }

    /// Output beyond the number's digits, and the sign of an unsigned number, ends the text.
    fn written(mut self) -> String {
        if let Some(end) = self.out.find('\0') {
            self.out.truncate(end);
        }
        self.out
    }

    /// A number with more or fewer digits before the decimal point than the pattern.
    fn digits(picture: &'p Picture, is_negative: bool, text: &str) -> Result<String> {
        let whole = text.find('.').unwrap_or(text.len());
        let (spaces, text) = match whole > picture.before {
            true => (0, format!("{}.{}", "#".repeat(picture.before), "#".repeat(picture.behind))),
            false => (picture.before - whole, text.to_owned()),
        };
        let writes_itself = picture.has_plus || picture.has_minus;
        let is_sign_written = match writes_itself {
            true => picture.has_minus,
            false => !is_negative && picture.is_filled && picture.anchor.is_none(),
        };
        let anchor = match picture.anchor {
            Some(Anchor::Before) if picture.before == picture.before_sign && !writes_itself => Some(Anchor::Behind),
            anchor => anchor,
        };
        let mut writer = Writer {
            picture,
            anchor,
            has_brackets: picture.has_brackets && (writes_itself || is_negative || !picture.is_filled),
            is_negative: Some(is_negative),
            is_sign_written,
            number: text.chars().collect(),
            at: 0,
            last_relevant: None,
            spaces,
            count: places(picture.before + picture.behind) - 1,
            place: 0,
            is_in: false,
            out: String::new(),
        };
        writer.last_relevant = writer.last_relevant();
        writer.count += i64::from(!writer.is_sign_written && writer.spaces == 0);
        writer.write()?;
        Ok(writer.written())
    }

    fn last_relevant(&self) -> Option<usize> {
        if !self.picture.is_filled || !self.picture.has_point {
            return None;
        }
        let point = self.number.iter().position(|char| *char == '.')?;
        let mut last = self.number.iter().rposition(|char| *char != '0').map_or(point, |last| last.max(point));
        // Zeros that the pattern requires stay.
        if self.picture.zero_end > self.spaces {
            let zero = (self.number.len() - 1).min(self.picture.zero_end - self.spaces);
            last = last.max(zero);
        }
        Some(last)
    }

    fn char_at(&self, at: usize) -> char {
        self.number.get(at).copied().unwrap_or('\0')
    }

    fn is_point_last(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.char_at(last) == '.')
    }

    fn write(&mut self) -> Result<()> {
        let picture = self.picture;
        let is_filled = picture.is_filled;
        let sign = if self.is_negative == Some(true) { '-' } else { '+' };
        for part in &picture.parts {
            let pattern = match part {
                Part::Literal(char) => {
                    self.out.push(*char);
                    continue;
                }
                Part::Pattern(pattern) => *pattern,
            };
            match pattern {
                Pattern::Nine | Pattern::Zero | Pattern::Point | Pattern::LocalePoint => self.digit(pattern),
                Pattern::Comma | Pattern::Group if self.is_in => self.out.push(','),
                Pattern::Comma | Pattern::Group if !is_filled => self.out.push(' '),
                Pattern::CurrencySign => self.out.push(' '),
                Pattern::Roman { is_lower } => self.letters(is_lower),
                Pattern::Ordinal { is_lower } => self.ordinal(is_lower)?,
                // Roman numerals have no sign, not even an implicit one.
                Pattern::Minus | Pattern::Plus | Pattern::PlusMinus if self.is_negative.is_none() => {
                    if pattern == Pattern::PlusMinus {
                        self.out.push('\0');
                    } else if !is_filled {
                        self.out.push(' ');
                    }
                }
                Pattern::Minus if sign == '-' => self.out.push('-'),
                Pattern::Plus if sign == '+' => self.out.push('+'),
                Pattern::Minus | Pattern::Plus if !is_filled => self.out.push(' '),
                Pattern::PlusMinus => self.out.push(sign),
                _ => {}
            }
        }
        Ok(())
    }

    fn letters(&mut self, is_lower: bool) {
        let letters: String = self.number.iter().collect();
        let letters = if is_lower { letters.to_ascii_lowercase() } else { letters };
        match self.picture.is_filled {
            true => self.out.push_str(&letters),
            false => self.out.push_str(&format!("{letters:>ROMAN_WIDTH$}")),
        }
    }

    fn ordinal(&mut self, is_lower: bool) -> Result<()> {
        let is_left_out = self.is_negative != Some(false) || self.char_at(0) == '#' || self.picture.has_point;
        if is_left_out {
            return Ok(());
        }
        let last = self.number.last().copied().unwrap_or('0');
        if !last.is_ascii_digit() {
            let number: String = self.number.iter().collect();
            return Err(carried(data_error(format!("\"{number}\" is not a number")).with_sqlstate("22P02")));
        }
        let is_teen = self.number.len() > 1 && self.char_at(self.number.len() - 2) == '1';
        let letters = match last {
            _ if is_teen => "TH",
            '1' => "ST",
            '2' => "ND",
            '3' => "RD",
            _ => "TH",
        };
        self.out.push_str(&if is_lower { letters.to_ascii_lowercase() } else { letters.to_owned() });
        Ok(())
    }

    /// Whether the zero before the decimal point of a number below one is a blank.
    fn is_blank_zero(&self) -> bool {
        !self.picture.has_zero && self.at == 0 && self.char_at(0) == '0' && self.picture.behind != 0
    }

    /// Writes the character at the position of a digit or the decimal point.
    fn digit(&mut self, pattern: Pattern) {
        if self.is_negative.is_none() {
            return;
        }
        let picture = self.picture;
        self.is_in = false;
        let is_begun = self.place >= self.spaces || (picture.has_zero && picture.zero_start == self.place);
        if !self.is_sign_written && is_begun && (!self.is_blank_zero() || self.is_point_last()) {
            self.sign();
        }
        let is_before = self.place < self.spaces;
        if is_before && (picture.zero_start > self.place || !picture.has_zero) {
            if !picture.is_filled {
                self.out.push(' ');
            }
        } else if is_before {
            self.out.push('0');
            self.is_in = true;
        } else {
            self.digit_of_number(pattern);
        }
        let end = self.count + i64::from(self.spaces > 0) + i64::from(picture.has_point);
        if self.last_relevant != Some(self.at) && places(self.place) + 1 == end {
            let is_negative = self.is_negative == Some(true);
            if self.is_sign_written && self.has_brackets {
                self.out.push(if is_negative { '>' } else { ' ' });
            } else if self.anchor == Some(Anchor::Behind) {
                self.out.push(if is_negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    fn digit_of_number(&mut self, pattern: Pattern) {
        let found = self.char_at(self.at);
        let is_beyond = self.last_relevant.is_some_and(|last| self.at > last);
        if found == '.' {
            if !self.is_point_last() || self.picture.is_filled {
                self.out.push('.');
            }
        } else if is_beyond && pattern != Pattern::Zero {
            // An insignificant zero.
        } else if self.is_blank_zero() {
            if !self.picture.is_filled {
                self.out.push(' ');
            } else if self.is_point_last() {
                self.out.push('0');
            }
        } else {
            self.out.push(found);
            self.is_in = true;
        }
        self.at += usize::from(found != '\0');
    }

    fn sign(&mut self) {
        let is_negative = self.is_negative == Some(true);
        let sign = match self.anchor {
            Some(Anchor::Behind) => return,
            Some(Anchor::Before) if is_negative => '-',
            Some(Anchor::Before) => '+',
            None if self.has_brackets && is_negative => '<',
            None if is_negative => '-',
            None => ' ',
        };
        let is_blank = sign == ' ' && !self.has_brackets && self.picture.is_filled;
        if !is_blank {
            self.out.push(sign);
        }
        self.is_sign_written = true;
    }
}
