//! How does a program get a point in time if it keeps numbers as doubles? As text beside the
//! number: nanoseconds since 1970 exceed 2^53, and JavaScript and jq round them to some 256 ns.

use std::fmt;

use serde::{Serialize, Serializer};
use tcpwhy_wire::Instant;

/// A point in time, to the nanosecond: `2026-11-21T10:00:00.000000000Z` (RFC 3339).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact(pub(crate) Instant);

/// A point in time in the form of the document.
pub fn exact(at: Instant) -> String {
    Exact(at).to_string()
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let (seconds, ns) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Year, month and day of a day since 1970-01-01, in the Gregorian calendar. Years begin in March,
/// so that a leap day is the last day of its year; 400 years have 146,097 days.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // 0000-03-01 is 719,468 days before 1970.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // March to July and August to December have 153 days each.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let year = 400 * era + year + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `date -u -d @SECONDS`.
    #[test]
    fn times_are_those_that_date_prints() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (1_795_255_200_123_456_789, "2026-11-21T10:00:00.123456789Z"),
            (951_782_399_000_000_000, "2000-02-28T23:59:59.000000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (951_868_800_000_000_000, "2000-03-01T00:00:00.000000000Z"),
            (4_107_542_399_000_000_001, "2100-02-28T23:59:59.000000001Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(Exact(Instant::from_nanos(ns)).to_string(), text);
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let (mut last, mut days) = (civil(-200_000), 0);
        for day in -199_999..200_000 {
            let (year, month, date) = civil(day);
            let next = match last {
                (y, 12, 31) => (year, month, date) == (y + 1, 1, 1),
                (y, m, _) if date == 1 => (year, month) == (y, m + 1),
                (y, m, d) => (year, month, date) == (y, m, d + 1),
            };
            assert!(next, "{last:?} and {year}-{month}-{date}");
            last = (year, month, date);
            days += 1;
        }
        assert_eq!(days, 399_999);
        for (s, want) in [("1969-12-31", -1), ("2024-12-31", 20_088)] {
            let (year, month, date) = civil(want);
            assert_eq!(format!("{year}-{month:02}-{date:02}"), s);
        }
    }
}
