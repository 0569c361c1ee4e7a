//! Which part of a capture? Times as a user writes them: points in time, or spans from the capture's start or its end.

use std::fmt;
use std::str::FromStr;

use tcpwhy_wire::{Duration, Instant};

/// A point in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    anchor: Anchor,
    /// As it was written.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Time(Instant),
    /// After the first packet.
    FromStart(Duration),
    /// Before the last packet.
    FromEnd(Duration),
}

/// The part of a capture to read: packets of `from` or later, and before `to`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From when on; from the start where it is not given.
    pub from: Option<Moment>,
    /// Until when; to the end where it is not given.
    pub to: Option<Moment>,
}

impl Window {
    /// Whether the end of the captures has to be known.
    pub(super) fn needs_end(&self) -> bool {
        self.bounds().any(|moment| matches!(moment.anchor, Anchor::FromEnd(_)))
    }

    /// Whether the start of the captures has to be known.
    pub(super) fn needs_start(&self) -> bool {
        self.bounds().any(|moment| matches!(moment.anchor, Anchor::FromStart(_)))
    }

    fn bounds(&self) -> impl Iterator<Item = &Moment> {
        self.from.iter().chain(&self.to)
    }
}

impl Moment {
    /// The time that is meant in a capture with this first and last packet.
    pub(super) fn in_capture(&self, first: Option<Instant>, last: Option<Instant>) -> Instant {
        match self.anchor {
            Anchor::Time(at) => at,
            Anchor::FromStart(span) => first.map_or(Instant::MIN, |first| first + span),
            Anchor::FromEnd(span) => last.map_or(Instant::MAX, |last| last + -span),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let anchor = if let Some(rest) = text.strip_prefix('+') {
            Anchor::FromStart(span(rest).ok_or("a span is written as in +90s, +1m30s, +250ms")?)
        } else if let Some(rest) = text.strip_prefix('-') {
            Anchor::FromEnd(span(rest).ok_or("a span is written as in -5m, -1h30m, -2.5s")?)
        } else if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            Anchor::Time(Instant::from_nanos(scaled(text, 1_000_000_000).ok_or("not a number of seconds")?))
        } else {
            Anchor::Time(rfc3339(text)?)
        };
        Ok(Self { anchor, text: text.to_owned() })
    }
}

/// Numbers with units, one after the other: `1h30m`, `2.5s`, `250ms`; seconds without a unit.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let number_len = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(number_len);
        let unit_len = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_len);
        let ns = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" | "" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        sum = sum.checked_add(scaled(number, ns)?)?;
        rest = behind;
    }
    (!text.is_empty()).then_some(Duration::from_nanos(sum))
}

/// A decimal number times `unit`, rounded down, without going through floating point.
fn scaled(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut sum = i128::from(whole.parse::<u64>().ok()?) * i128::from(unit);
    // More digits than these are less than a nanosecond of a day.
    let fraction = &fraction[..fraction.len().min(18)];
    sum += fraction.parse::<i128>().ok()? * i128::from(unit) / 10_i128.pow(fraction.len() as u32);
    i64::try_from(sum).ok()
}

/// `2026-11-21T10:00:00Z`, `2026-11-21 12:00:00.25+02:00` (RFC 3339, 5.6).
fn rfc3339(text: &str) -> Result<Instant, String> {
    const FORM: &str = "a time is written as in 2026-11-21T10:00:00Z, 2026-11-21T12:00:00.5+02:00, \
                        1795255200 (seconds since 1970), +90s (after the start) or -5m (before the end)";
    let no_zone = || format!("{text} has no time zone: end it with Z for UTC, or an offset such as +02:00");
    let (date, clock) = text.split_once(['T', 't', ' ', '_']).ok_or(FORM)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or(FORM)?;
    let zone_at = clock.find(['Z', 'z', '+', '-']).ok_or_else(no_zone)?;
    let (clock, zone) = clock.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2]).ok_or(FORM)?;
    let fraction_ns = scaled(&format!("0.{fraction}"), 1_000_000_000).ok_or(FORM)?;
    let offset_min = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), offset) => {
            let [hours, minutes] = numbers(offset, ':', [2, 2]).ok_or(FORM)?;
            (hours * 60 + minutes) * if sign == "-" { -1 } else { 1 }
        }
        _ => return Err(FORM.to_owned()),
    };
    let possible = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && offset_min.abs() < 24 * 60;
    if !possible {
        return Err(format!("there is no {text}"));
    }
    let minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + minute - offset_min;
    let ns = i128::from(minutes * 60 + second) * 1_000_000_000 + i128::from(fraction_ns);
    i64::try_from(ns)
        .map(Instant::from_nanos)
        .map_err(|_| format!("{text} is outside of what captures can say"))
}

/// Unsigned numbers of these widths.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next()?;
        if part.len() != width || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(text: &str) -> Option<Anchor> {
        text.parse().ok().map(|moment: Moment| moment.anchor)
    }

    #[test]
    fn times_are_read_as_date_knows_them() {
        // By `date -ud TIME +%s`.
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T10:00:00Z", 1_795_255_200),
            ("2026-11-21 12:00:00+02:00", 1_795_255_200),
            ("2026-11-20t23:30:00-10:30", 1_795_255_200),
            ("2024-02-29T23:59:59z", 1_709_251_199),
            ("2000-03-01T00:00:00Z", 951_868_800),
            ("1969-12-31T23:59:59Z", -1),
            ("1795255200", 1_795_255_200),
        ] {
            assert_eq!(
                anchor(text),
                Some(Anchor::Time(Instant::from_nanos(seconds * 1_000_000_000))),
                "{text}"
            );
        }
        let ns = |text| {
            anchor(text).map(|anchor| match anchor {
                Anchor::Time(at) => at.as_nanos(),
                Anchor::FromStart(span) => span.as_nanos(),
                Anchor::FromEnd(span) => -span.as_nanos(),
            })
        };
        assert_eq!(ns("1970-01-01T00:00:00.000000001Z"), Some(1));
        assert_eq!(ns("1.9999999999"), Some(1_999_999_999));
        assert_eq!(ns("+90"), Some(90_000_000_000));
        assert_eq!(ns("+1m30s"), Some(90_000_000_000));
        assert_eq!(ns("+1.5ms"), Some(1_500_000));
        assert_eq!(ns("-5m"), Some(-300_000_000_000));
        assert_eq!(ns("-1d"), Some(-86_400_000_000_000));
        assert_eq!(ns("+0.3s"), Some(300_000_000));
    }

    #[test]
    fn what_is_no_time_says_how_times_are_written() {
        for text in [
            "",
            "+",
            "-",
            "+5x",
            "+s",
            "+1..2s",
            "yesterday",
            ".",
            "1.2.3",
            "2026-11-21",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T10:00Z",
            "26-11-21T10:00:00Z",
            "2026-11-21T10:00:00+2",
            "2026-11-21T10:00:00Zulu",
            "9999-01-01T00:00:00Z",
            "99999999999999999999",
            "+999999999d",
            "2026-11-21T10:00:00.Z",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        let error = "2026-11-21T10:00:00".parse::<Moment>().unwrap_err();
        assert!(error.contains("no time zone"), "{error}");
    }

    #[test]
    fn spans_count_from_the_first_and_the_last_packet() {
        let moment = |text: &str| text.parse::<Moment>().unwrap_or_else(|error| panic!("{error}"));
        let (first, last) = (Some(Instant::from_nanos(5)), Some(Instant::from_nanos(100)));
        assert_eq!(moment("+3ns").in_capture(first, last), Instant::from_nanos(8));
        assert_eq!(moment("-3ns").in_capture(first, last), Instant::from_nanos(97));
        assert_eq!(moment("+3ns").in_capture(None, None), Instant::MIN);
        assert_eq!(moment("-1m").to_string(), "-1m");
    }
}
