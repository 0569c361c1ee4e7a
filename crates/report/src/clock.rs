//! How is a point in time shown? As in a log of the same day, in the reader's time zone.

use tcpwhy_wire::Instant;

use crate::json::moment::civil;

/// `10:00:00.123456`.
pub fn time_of_day(at: Instant, offset_s: i32) -> String {
    let (_, second, ns) = parts(at, offset_s);
    format!("{:02}:{:02}:{:02}.{:06}", second / 3_600, second / 60 % 60, second % 60, ns / 1_000)
}

/// `2026-11-21 10:00:00.123 +01:00`.
pub fn moment(at: Instant, offset_s: i32) -> String {
    let (day, second, ns) = parts(at, offset_s);
    let (year, month, day) = civil(day);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03} {}",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        ns / 1_000_000,
        zone(offset_s)
    )
}

/// `UTC`, `+01:00`.
pub fn zone(offset_s: i32) -> String {
    let minutes = offset_s.unsigned_abs() / 60;
    match offset_s {
        0 => "UTC".to_owned(),
        _ => format!("{}{:02}:{:02}", if offset_s < 0 { '-' } else { '+' }, minutes / 60, minutes % 60),
    }
}

/// Days since 1970, seconds of the day, and nanoseconds of the second.
fn parts(at: Instant, offset_s: i32) -> (i64, i64, i64) {
    let ns = at.as_nanos();
    let seconds = ns.div_euclid(1_000_000_000) + i64::from(offset_s);
    (seconds.div_euclid(86_400), seconds.rem_euclid(86_400), ns.rem_euclid(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `TZ=... date -d @SECONDS`.
    #[test]
    fn clocks_on_the_wall_are_those_of_date() {
        let at = Instant::from_nanos(1_795_255_200_123_456_789);
        assert_eq!(moment(at, 0), "2026-11-21 10:00:00.123 UTC");
        assert_eq!(moment(at, 3_600), "2026-11-21 11:00:00.123 +01:00");
        assert_eq!(moment(at, -12_600), "2026-11-21 06:30:00.123 -03:30");
        assert_eq!(moment(at, 14 * 3_600), "2026-11-22 00:00:00.123 +14:00");
        assert_eq!(time_of_day(at, -12_600), "06:30:00.123456");
        assert_eq!(time_of_day(Instant::from_nanos(-1), 0), "23:59:59.999999");
    }
}
