//! Parses numbers from bytes without allocating a `String` per field; decimal fractions are parsed exactly, without
//! floating point.

use headstart_types::printable;

/// Formats a field for an error text: quoted, on one line, shortened, with control characters and invalid UTF-8
/// escaped.
pub(crate) fn shown(field: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 40;
    let cut = field.len().min(SHOWN_BYTES_MAX);
    let dots = if cut < field.len() { "..." } else { "" };
    let text: String = field[..cut]
        .utf8_chunks()
        .map(|chunk| format!("{}{}", printable(chunk.valid()), chunk.invalid().escape_ascii()))
        .collect();
    format!("\"{text}{dots}\"")
}

/// Parses a whole number of at most 64 bits; surrounding spaces are allowed.
#[inline]
pub(crate) fn whole(field: &[u8], column: &str) -> Result<u64, String> {
    let digits = field.trim_ascii();
    let mut value = 0u64;
    // 19 digits always fit, so the common case needs no overflow check.
    if !digits.is_empty() && digits.len() <= 19 {
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(not_whole(field, column));
            }
            value = value * 10 + u64::from(digit);
        }
        return Ok(value);
    }
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| not_whole(field, column))
}

/// Parses a whole number of at most 32 bits.
#[inline]
pub(crate) fn whole_u32(field: &[u8], column: &str) -> Result<u32, String> {
    let value = whole(field, column)?;
    u32::try_from(value)
        .map_err(|_| format!("{} in column {column} is too large; allowed: 0 to {}", shown(field), u32::MAX))
}

#[cold]
fn not_whole(field: &[u8], column: &str) -> String {
    let digits = field.trim_ascii();
    if digits.is_empty() {
        return format!("column {column} is empty; allowed: a whole number, 0 or more");
    }
    let (sign, rest) = digits.split_at(usize::from(digits[0] == b'-'));
    let is_number = !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    let problem = match (is_number, sign.is_empty()) {
        (true, false) => "is negative; allowed: 0 or more".to_owned(),
        (true, true) => format!("is too large; allowed: 0 to {}", u64::MAX),
        _ => "is not a whole number; allowed: 0 or more".to_owned(),
    };
    format!("{} in column {column} {problem}", shown(field))
}

/// Parses a decimal number in units of `unit_ns` nanoseconds into whole nanoseconds; further digits are cut off.
///
/// "0.000088" seconds is 88,000 ns exactly. Numbers with an exponent ("1e-05") are rounded to the nearest double first.
#[inline]
pub(crate) fn nanos(field: &[u8], column: &str, unit_ns: u64) -> Result<u64, String> {
    let text = field.trim_ascii();
    let dot = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (integer, fraction) = (&text[..dot], text.get(dot + 1..).unwrap_or(&[]));
    let digits_only = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if integer.len() + fraction.len() == 0 || !digits_only(integer) || !digits_only(fraction) {
        return nanos_of_float(field, column, unit_ns);
    }
    let too_large = || format!("{} in column {column} is too large; allowed: up to 584 years", shown(field));
    let whole_units = if integer.is_empty() { 0 } else { whole(integer, column).map_err(|_| too_large())? };
    let mut ns = whole_units.checked_mul(unit_ns).ok_or_else(too_large)?;
    let mut scale = unit_ns;
    for &digit in fraction {
        scale /= 10;
        if scale == 0 {
            break;
        }
        ns = ns.checked_add(u64::from(digit - b'0') * scale).ok_or_else(too_large)?;
    }
    Ok(ns)
}

#[cold]
fn nanos_of_float(field: &[u8], column: &str, unit_ns: u64) -> Result<u64, String> {
    let problem = |what: &str| format!("{} in column {column} {what}; allowed: a time, 0 or more", shown(field));
    let text = std::str::from_utf8(field.trim_ascii()).map_err(|_| problem("is not a number"))?;
    let value: f64 = text.parse().map_err(|_| problem("is not a number"))?;
    if !value.is_finite() {
        return Err(problem("is not finite"));
    }
    if value < 0.0 {
        return Err(problem("is negative"));
    }
    let ns = (value * unit_ns as f64).round();
    if ns >= u64::MAX as f64 {
        return Err(problem("is too large"));
    }
    Ok(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_times_are_exact() {
        for (text, unit, ns) in [
            ("0.000088", 1_000_000_000, 88_000),
            ("12", 1_000, 12_000),
            (" 1.5 ", 1_000_000, 1_500_000),
            (".25", 1_000_000_000, 250_000_000),
            ("3.", 1_000_000_000, 3_000_000_000),
            ("1e-05", 1_000_000_000, 10_000),
            ("0.0000000019", 1_000_000_000, 1),
            ("15849.28847", 1_000_000, 15_849_288_470),
        ] {
            assert_eq!(nanos(text.as_bytes(), "time", unit), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_reason() {
        for (text, reason) in [
            ("-1", "is negative"),
            ("-0.5", "is negative"),
            ("NaN", "is not finite"),
            ("inf", "is not finite"),
            ("abc", "is not a number"),
            ("", "is not a number"),
            (".", "is not a number"),
            ("99999999999", "is too large"),
            ("99999999999999999999999", "is too large"),
            ("1e300", "is too large"),
        ] {
            let error = nanos(text.as_bytes(), "time", 1_000_000_000).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn whole_numbers_say_what_is_wrong() {
        let error = |field: &[u8]| whole(field, "offset").unwrap_err();
        assert_eq!(error(b"abc"), "\"abc\" in column offset is not a whole number; allowed: 0 or more");
        assert_eq!(error(b"-7"), "\"-7\" in column offset is negative; allowed: 0 or more");
        assert!(error(b"18446744073709551616").contains("too large"));
        assert!(error(b"\xff\xfe\n\0\x1b").contains("\\xff\\xfe\\n\\0\\u{1b}"));
        assert_eq!(whole(b"18446744073709551615", "offset"), Ok(u64::MAX));
        assert_eq!(whole(b"000000000000000000000007", "offset"), Ok(7));
    }

    proptest! {
        #[test]
        fn whole_agrees_with_the_standard_library(value in any::<u64>(), field in proptest::collection::vec(any::<u8>(), 0..24)) {
            prop_assert_eq!(whole(value.to_string().as_bytes(), "c"), Ok(value));
            let expected = std::str::from_utf8(&field).ok().map(str::trim).filter(|t| !t.starts_with('+')).and_then(|t| t.parse::<u64>().ok());
            prop_assert_eq!(whole(&field, "c").ok(), expected);
        }

        #[test]
        fn nanoseconds_written_as_seconds_read_back(ns in 0..u64::MAX) {
            let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            prop_assert_eq!(nanos(text.as_bytes(), "time", 1_000_000_000), Ok(ns));
        }
    }
}
