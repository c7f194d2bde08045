//! Floating-point numbers in PostgreSQL's text format: the fewest digits that read back as the same
//! number.

use std::fmt::Write;

use super::Text;

/// Writes a number. `scientific` is its shortest form in Rust, such as `1.5e-7`. A number with an
/// exponent of at least `exponent_min` or below -4 is written with the exponent, any other number
/// without it.
fn float(value: f64, scientific: &str, exponent_min: i32, out: &mut Text<'_>) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (sign, scientific) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    out.push_str(sign);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..exponent_min).contains(&exponent) {
        out.push_str(digits);
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing into a buffer does not fail.
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let digits = digits.replace('.', "");
    match usize::try_from(exponent) {
        Ok(exponent) => match digits.split_at_checked(exponent + 1) {
            Some((whole, "")) => out.push_str(whole),
            Some((whole, fraction)) => {
                let _ = write!(out, "{whole}.{fraction}");
            }
            None => {
                let _ = write!(out, "{digits:0<width$}", width = exponent + 1);
            }
        },
        Err(_) => {
            let zeros = usize::try_from(-1 - exponent).unwrap_or_default();
            let _ = write!(out, "0.{}{digits}", "0".repeat(zeros));
        }
    }
}

/// Writes a `double precision`.
pub(super) fn float8(value: f64, out: &mut Text<'_>) {
    float(value, &format!("{value:e}"), 15, out);
}

/// Writes a `real`.
pub(super) fn float4(value: f32, out: &mut Text<'_>) {
    float(value.into(), &format!("{value:e}"), 6, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (0.0001, "0.0001"),
            (0.00012, "0.00012"),
            (0.00001, "1e-05"),
            (1e14, "100000000000000"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (-1.234_567_890_123_456_8e17, "-1.2345678901234568e+17"),
            (1e300, "1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(Text::written(|out| float8(value, out)), expected);
        }
        for (value, expected) in
            [(1e5, "100000"), (1e6, "1e+06"), (0.1, "0.1"), (123_456.0, "123456"), (3.4e38, "3.4e+38")]
        {
            assert_eq!(Text::written(|out| float4(value, out)), expected);
        }
    }
}
