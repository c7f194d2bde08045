//! Intervals in binary: microseconds, days and months.

use filbert_data::Interval;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Writes microseconds, days and months.
pub(super) fn write_binary(interval: &Interval, out: &mut Vec<u8>) {
    out.extend_from_slice(&(interval.nanoseconds / 1_000).to_be_bytes());
    out.extend_from_slice(&interval.days.to_be_bytes());
    out.extend_from_slice(&interval.months.to_be_bytes());
}

/// Reads microseconds, days and months. Returns `None` if the microseconds exceed the range of
/// nanoseconds in 64 bits, 292 years.
pub(super) fn read_binary(bytes: &[u8; 16]) -> Option<Interval> {
    let (microseconds, rest) = bytes.split_first_chunk::<8>()?;
    let (days, rest) = rest.split_first_chunk::<4>()?;
    let months = rest.first_chunk::<4>()?;
    let nanoseconds = i64::from_be_bytes(*microseconds).checked_mul(1_000_000_000 / MICROSECONDS_PER_SECOND)?;
    Some(Interval { months: i32::from_be_bytes(*months), days: i32::from_be_bytes(*days), nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["P1Y2M3DT4H5M6.5S", "PT0S", "P-1DT1H", "PT-0.000001S"] {
            let interval: Interval = text.parse().unwrap();
            let mut bytes = Vec::new();
            write_binary(&interval, &mut bytes);
            assert_eq!(read_binary(bytes.first_chunk().unwrap()), Some(interval));
        }
    }
}
