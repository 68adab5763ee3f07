//! Clock times: "2026-05-01T12:34:56.789Z", "2026-05-01 12:34:56,789", "12:34:56.789".

use crate::number::{shown, whole};

/// Nanoseconds in a day.
pub(crate) const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// The accepted forms, for error texts.
const CLOCK_ALLOWED: &str = "HH:MM:SS.fraction, optionally preceded by YYYY-MM-DD and followed by Z or +HH:MM";

/// Nanoseconds since 1970, or since midnight if there is no date. A time without a zone is taken as UTC.
pub(crate) fn clock(field: &[u8], column: &str) -> Result<u64, String> {
    parse(field.trim_ascii())
        .ok_or_else(|| format!("{} in column {column} is not a time; allowed: {CLOCK_ALLOWED}", shown(field)))
}

/// Counts the days of clock times without a date. Lines may be slightly out of order.
#[derive(Debug, Default)]
pub(crate) struct Days {
    /// The last time, including the days before it.
    last_ns: u64,
    days_ns: u64,
}

impl Days {
    /// Nanoseconds since the midnight before the first line; times with a date are unchanged.
    pub(crate) fn since_first(&mut self, clock_ns: u64) -> u64 {
        if clock_ns >= DAY_NS {
            return clock_ns;
        }
        const MINUTE_NS: u64 = 60_000_000_000;
        if self.days_ns > 0 && self.last_ns < MINUTE_NS && clock_ns + MINUTE_NS > DAY_NS {
            return self.days_ns - DAY_NS + clock_ns;
        }
        if clock_ns + DAY_NS / 2 < self.last_ns {
            self.days_ns = self.days_ns.saturating_add(DAY_NS);
        }
        self.last_ns = clock_ns;
        self.days_ns.saturating_add(clock_ns)
    }
}

/// As [`clock`], for the time format of web server logs: "06/Feb/2019:00:00:38 +0000".
pub(crate) fn dated(field: &[u8], column: &str) -> Result<u64, String> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let parts = match field {
        [day @ .., b'+' | b'-', _, _, _, _] if day.len() == 21 && day[2] == b'/' && day[6] == b'/' => day.split_at(12),
        _ => (&b""[..], field),
    };
    let month = parts.0.get(3..6).and_then(|name| MONTHS.chunks(3).position(|known| known == name));
    let converted = month.map(|month| {
        let date = format!("{}-{:02}-{}", text(&parts.0[7..11]), month + 1, text(&parts.0[..2]));
        format!("{date}T{}{}", text(&parts.1[..8]), text(&field[21..]))
    });
    converted.and_then(|converted| parse(converted.as_bytes())).ok_or_else(|| {
        format!("{} in column {column} is not a time; allowed: a time such as 06/Feb/2019:00:00:38 +0000", shown(field))
    })
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn parse(text: &[u8]) -> Option<u64> {
    let colon = memchr::memchr(b':', text)?;
    let start = colon.checked_sub(2)?;
    let days = match start {
        0 => 0,
        11 if matches!(text[10], b'T' | b't' | b' ') => days_since_1970(&text[..10])?,
        _ => return None,
    };
    let rest = &text[start..];
    let zone = rest.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')).unwrap_or(rest.len());
    let day_ns = since_midnight(&rest[..zone])?;
    let east_ns = if zone < rest.len() { east_of_greenwich(&rest[zone..])? } else { 0 };
    let ns = i128::from(days) * i128::from(DAY_NS) + i128::from(day_ns) - i128::from(east_ns);
    u64::try_from(ns).ok()
}

/// Days from 1970-01-01 to "YYYY-MM-DD" or "YYYY/MM/DD".
fn days_since_1970(date: &[u8]) -> Option<u64> {
    if !matches!((date[4], date[7]), (b'-', b'-') | (b'/', b'/')) {
        return None;
    }
    let (year, month, day) = (digits(&date[..4])?, digits(&date[5..7])?, digits(&date[8..])?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // With years that begin in March, the leap day is the last day of the year (proleptic Gregorian calendar).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    const MARCH_FIRST_0_TO_1970: u64 = 719_468;
    Some(365 * year + leap_days + (153 * month + 2) / 5 + (day - 1) - MARCH_FIRST_0_TO_1970)
}

/// "HH:MM:SS", optionally with a fraction after "." or ",".
fn since_midnight(time: &[u8]) -> Option<u64> {
    let (clock, fraction) = match time.get(8) {
        None => (time, &b""[..]),
        Some(b'.' | b',') => (&time[..8], &time[9..]),
        Some(_) => return None,
    };
    if clock.len() != 8 || clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hours, minutes, seconds) = (digits(&clock[..2])?, digits(&clock[3..5])?, digits(&clock[6..])?);
    if hours > 23 || minutes > 59 || seconds > 60 || fraction.iter().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    let (mut ns, mut unit_ns) = ((hours * 3600 + minutes * 60 + seconds) * 1_000_000_000, 100_000_000);
    for digit in fraction {
        ns += u64::from(digit - b'0') * unit_ns;
        unit_ns /= 10;
    }
    Some(ns)
}

/// "Z", "+HH:MM", "-HHMM": nanoseconds by which the zone is ahead of UTC.
fn east_of_greenwich(zone: &[u8]) -> Option<i64> {
    let sign = match zone {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        _ => -1,
    };
    let (hours, minutes) = match &zone[1..] {
        [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?),
        [h1, h2] => (digits(&[*h1, *h2])?, 0),
        _ => return None,
    };
    Some(sign * (hours * 60 + minutes) as i64 * 60_000_000_000)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().all(u8::is_ascii_digit).then(|| whole(text, "").ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_passes_midnight_goes_on() {
        let hour = DAY_NS / 24;
        let mut days = Days::default();
        let shown = [14 * hour, DAY_NS - 9, 3, DAY_NS - 7, 4, 14 * hour, 23 * hour, 2];
        let since = shown.map(|clock_ns| days.since_first(clock_ns));
        let day = DAY_NS;
        let expected = [shown[0], shown[1], day + 3, shown[3], day + 4, day + 14 * hour, day + 23 * hour, 2 * day + 2];
        assert_eq!(since, expected);
        assert_eq!(days.since_first(9 * DAY_NS), 9 * DAY_NS, "with its date");
    }

    #[test]
    fn dates_and_clocks() {
        let hour = 3_600 * 1_000_000_000;
        for (text, ns) in [
            ("00:00:00", 0),
            ("01:00:00.5", hour + 500_000_000),
            ("23:59:59,000000001", 24 * hour - 999_999_999),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01 00:00:00-0130", hour + hour / 2),
            // 11,016 days: 30 years with 7 leap days, plus 31 + 28 days.
            ("2000-02-29 00:00:00", 11_016 * 24 * hour),
            ("2001/03/01T00:00:00", 11_382 * 24 * hour),
            // `date -u -d @1714566896 --iso-8601=seconds`
            ("2024-05-01T12:34:56.789Z", 1_714_566_896_789_000_000),
        ] {
            assert_eq!(clock(text.as_bytes(), "time"), Ok(ns), "{text}");
        }
        for text in ["", ":", "1:00:00", "24:00:00", "12:60:00", "12:00", "2024-13-01 12:00:00", "2024-05-01T12:00:00x"]
        {
            assert!(clock(text.as_bytes(), "time").unwrap_err().contains("is not a time"), "{text}");
        }
    }
}
