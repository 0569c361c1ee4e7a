//! Which part of a capture is meant? Times as users write them: points in time, or spans from the
//! capture's start or its end.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Time};
use tcpwhy_wire::{Duration, Instant};

use super::zone::Zone;

/// A point in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    anchor: Anchor,
    /// As the user wrote it.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Time(Instant),
    /// Local time in the window's zone; without a date, on the day of the first packet.
    Clock(Option<Date>, Time),
    /// After the first packet.
    FromStart(Duration),
    /// Before the last packet.
    FromEnd(Duration),
}

/// The part of a capture to read: packets of `from` or later, and before `to`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start of the window; the capture's start if not given.
    pub from: Option<Moment>,
    /// End of the window; the capture's end if not given.
    pub to: Option<Moment>,
    /// The zone of times that do not have one.
    pub zone: Zone,
}

impl Window {
    /// Whether the end of the captures has to be known.
    pub(super) fn needs_end(&self) -> bool {
        self.bounds().any(|moment| matches!(moment.anchor, Anchor::FromEnd(_)))
    }

    /// Whether the start of the captures has to be known.
    pub(super) fn needs_start(&self) -> bool {
        self.bounds().any(|moment| matches!(moment.anchor, Anchor::FromStart(_) | Anchor::Clock(None, _)))
    }

    fn bounds(&self) -> impl Iterator<Item = &Moment> {
        self.from.iter().chain(&self.to)
    }
}

impl Moment {
    /// The time meant in a capture with this first and last packet.
    pub(super) fn in_capture(&self, first: Option<Instant>, last: Option<Instant>, zone: &Zone) -> Instant {
        match self.anchor {
            Anchor::Time(at) => at,
            Anchor::Clock(Some(date), time) => zone.instant(date, time).unwrap_or(Instant::MIN),
            Anchor::Clock(None, time) => first.map_or(Instant::MIN, |first| on_the_day_of(first, time, zone)),
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
            Anchor::FromStart(
                span(rest).ok_or("expected a time after the start, such as +90s, +1m30s or +250ms")?,
            )
        } else if let Some(rest) = text.strip_prefix('-') {
            Anchor::FromEnd(span(rest).ok_or("expected a time before the end, such as -5m, -1h30m or -2.5s")?)
        } else if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            Anchor::Time(Instant::from_nanos(
                scaled(text, 1_000_000_000).ok_or("out of range for seconds since 1970")?,
            ))
        } else if let Some(clock) = clock(text) {
            clock
        } else {
            Anchor::Time(rfc3339(text)?)
        };
        Ok(Self { anchor, text: text.to_owned() })
    }
}

/// When clocks show this time on the first packet's day or, if that is long before the packet, on
/// the next day: captures run past midnight.
fn on_the_day_of(first: Instant, time: Time, zone: &Zone) -> Instant {
    let Some(date) = zone.date(first) else { return first };
    let at = |date| zone.instant(date, time);
    let same_day = at(date).unwrap_or(first);
    if first - same_day < Duration::from_secs(12 * 3_600) {
        return same_day;
    }
    date.tomorrow().ok().and_then(at).unwrap_or(same_day)
}

/// `10:00`, `10:00:00.5`, `2026-11-21`, `2026-11-21 10:00`, `2026-11-21T10:00:00`: local times,
/// without a zone.
fn clock(text: &str) -> Option<Anchor> {
    let of_day = |text: &str| -> Option<Time> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
        (digits && text.len() >= 5 && text.is_char_boundary(2) && text.as_bytes()[2] == b':')
            .then(|| text.parse().ok())?
    };
    if let Some(time) = of_day(text) {
        return Some(Anchor::Clock(None, time));
    }
    let (date, time) = match text.split_once(['T', 't', ' ', '_']) {
        Some((date, time)) => (date, of_day(time)?),
        None => (text, Time::midnight()),
    };
    // jiff also accepts week dates and other forms.
    numbers(date, '-', [4, 2, 2])?;
    Some(Anchor::Clock(Some(date.parse().ok()?), time))
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
    // Further digits are less than a nanosecond of a day.
    let fraction = &fraction[..fraction.len().min(18)];
    sum += fraction.parse::<i128>().ok()? * i128::from(unit) / 10_i128.pow(fraction.len() as u32);
    i64::try_from(sum).ok()
}

/// `2026-11-21T10:00:00Z`, `2026-11-21 12:00:00.25+02:00` (RFC 3339, 5.6).
fn rfc3339(text: &str) -> Result<Instant, String> {
    const FORM: &str = "expected a time such as 10:00:00 or 2026-11-21 10:00 (local, or UTC with --utc), \
                        2026-11-21T10:00:00Z, 2026-11-21T12:00:00.5+02:00, 1795255200 (seconds since 1970), +90s (after the start) or -5m (before the end)";
    let (date, clock) = text.split_once(['T', 't', ' ', '_']).ok_or(FORM)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or(FORM)?;
    let zone_at = clock.find(['Z', 'z', '+', '-']).ok_or(FORM)?;
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
        return Err(format!("{text} does not exist"));
    }
    let minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + minute - offset_min;
    let ns = i128::from(minutes * 60 + second) * 1_000_000_000 + i128::from(fraction_ns);
    i64::try_from(ns).map(Instant::from_nanos).map_err(|_| format!("{text} is out of range for captures"))
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
                Anchor::Clock(..) => panic!("{text} has no zone"),
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
            "2026-11",
            "2026-W47-6",
            "1:00",
            "24:00",
            "10:60",
            "2026-02-29",
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
    }

    #[test]
    fn clocks_without_a_zone_are_those_of_the_reader() {
        // By `TZ=Europe/Berlin date -d ... +%s`: clocks go back at 03:00 on 2026-10-25.
        let berlin = Zone::named("Europe/Berlin");
        let first = Instant::from_nanos(1_795_255_200_000_000_000); // 2026-11-21, 11:00 there
        let at = |text: &str, zone: &Zone| {
            let moment: Moment = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            moment.in_capture(Some(first), None, zone).as_nanos() / 1_000_000_000
        };
        for (text, seconds) in [
            ("2026-11-21 11:00", 1_795_255_200),
            ("2026-11-21T11:00:00", 1_795_255_200),
            ("2026-11-21", 1_795_215_600),
            ("2026-07-01 12:00", 1_782_900_000),
            ("11:00", 1_795_255_200),
            ("10:59:30.5", 1_795_255_170),
            ("11:30:00", 1_795_257_000),
            ("2026-11-21T10:00:00Z", 1_795_255_200),
        ] {
            assert_eq!(at(text, &berlin), seconds, "{text}");
        }
        assert_eq!(at("10:00", &Zone::utc()), 1_795_255_200);
        // A capture that goes past midnight.
        let late = Instant::from_nanos(1_795_299_000_000_000_000); // 22:10 UTC
        let moment: Moment = "00:30".parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            moment.in_capture(Some(late), None, &Zone::utc()).as_nanos() / 1_000_000_000,
            1_795_307_400
        );
        assert_eq!(berlin.offset_s(first), 3_600);
    }

    #[test]
    fn spans_count_from_the_first_and_the_last_packet() {
        let moment = |text: &str| text.parse::<Moment>().unwrap_or_else(|error| panic!("{error}"));
        let (first, last) = (Some(Instant::from_nanos(5)), Some(Instant::from_nanos(100)));
        assert_eq!(moment("+3ns").in_capture(first, last, &Zone::utc()), Instant::from_nanos(8));
        assert_eq!(moment("-3ns").in_capture(first, last, &Zone::utc()), Instant::from_nanos(97));
        assert_eq!(moment("+3ns").in_capture(None, None, &Zone::utc()), Instant::MIN);
        assert_eq!(moment("-1m").to_string(), "-1m");
    }
}
