//! How is a time, a size, a share or a rate written for people?

use tcpwhy_wire::Duration;

/// Three significant digits and a unit: `820 ns`, `43.9 ms`, `1.68 s`, `2 min 5 s`.
pub fn time(span: Duration) -> String {
    let ns = span.as_nanos();
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    match ns {
        0 => "0 ms".to_owned(),
        // Rounding to three digits may carry into the next unit: 999.6 µs is 1.00 ms.
        1..1_000 => format!("{sign}{ns} ns"),
        1_000..999_500 => format!("{sign}{} µs", three_digits(ns, 1_000)),
        999_500..999_500_000 => format!("{sign}{} ms", three_digits(ns, 1_000_000)),
        999_500_000..60_000_000_000 => format!("{sign}{} s", three_digits(ns, 1_000_000_000)),
        _ => {
            let seconds = ns / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            if hours > 0 {
                format!("{sign}{hours} h {minutes} min")
            } else {
                format!("{sign}{minutes} min {seconds} s")
            }
        }
    }
}

/// Milliseconds with three decimals and no unit, for columns in which times are compared.
pub fn millis(span: Duration) -> String {
    let us = (span.as_nanos() + 500 * span.as_nanos().signum()) / 1_000;
    format!("{}{}.{:03}", if us < 0 { "-" } else { "" }, us.unsigned_abs() / 1_000, us.unsigned_abs() % 1_000)
}

/// `132 B`, `64,240 B`, `5.00 MB`. Decimal units, as for rates; exact where the number can be
/// compared with packets.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} B", count(bytes)),
        1_000_000..999_500_000 => format!("{} MB", three_digits(bytes, 1_000_000)),
        _ => format!("{} GB", three_digits(bytes, 1_000_000_000)),
    }
}

/// `100 Mbit/s`.
pub fn rate(bits_per_second: u64) -> String {
    match bits_per_second {
        0..1_000 => format!("{bits_per_second} bit/s"),
        1_000..999_500 => format!("{} kbit/s", three_digits(bits_per_second, 1_000)),
        999_500..999_500_000 => format!("{} Mbit/s", three_digits(bits_per_second, 1_000_000)),
        _ => format!("{} Gbit/s", three_digits(bits_per_second, 1_000_000_000)),
    }
}

/// With thousands separators: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 packet`, `2,000 packets`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `98.1 %`, `<0.1 %`. The part of the whole; 0 if there is no whole.
pub fn percent(part: Duration, whole: Duration) -> String {
    let tenths = per_mille(part, whole);
    if tenths == 0 && part.is_positive() {
        return "<0.1 %".to_owned();
    }
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Thousandths, rounded, without overflow.
pub fn per_mille(part: Duration, whole: Duration) -> u64 {
    parts_of(part, whole, 1_000)
}

/// Rounded, however long both are.
pub(crate) fn per_ten_thousand(part: Duration, whole: Duration) -> u64 {
    parts_of(part, whole, 10_000)
}

fn parts_of(part: Duration, whole: Duration, parts: i128) -> u64 {
    let (part, whole) = (i128::from(part.as_nanos().max(0)), i128::from(whole.as_nanos()));
    if whole <= 0 { 0 } else { u64::try_from((part * parts + whole / 2) / whole).unwrap_or(u64::MAX) }
}

/// `value / unit` with three significant digits; both below 2^63, so the products fit into 128
/// bits.
fn three_digits(value: u64, unit: u64) -> String {
    let scaled = |decimals: u32| {
        let factor = 10_u128.pow(decimals);
        (u128::from(value) * factor + u128::from(unit) / 2) / u128::from(unit)
    };
    let hundredths = scaled(2);
    if hundredths < 1_000 {
        return format!("{}.{:02}", hundredths / 100, hundredths % 100);
    }
    let tenths = scaled(1);
    if tenths < 1_000 {
        return format!("{}.{}", tenths / 10, tenths % 10);
    }
    scaled(0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_carry_into_the_next_unit() {
        for (ns, shown) in [
            (0, "0 ms"),
            (820, "820 ns"),
            (1_234, "1.23 µs"),
            (999_499, "999 µs"),
            (999_600, "1.00 ms"),
            (43_912_000, "43.9 ms"),
            (999_600_000, "1.00 s"),
            (1_675_000_000, "1.68 s"),
            (125_000_000_000, "2 min 5 s"),
            (7_260_000_000_000, "2 h 1 min"),
            (-1_500_000, "-1.50 ms"),
        ] {
            assert_eq!(time(Duration::from_nanos(ns)), shown);
        }
        assert_eq!(time(Duration::MAX), "2562047 h 47 min");
    }

    #[test]
    fn columns_sizes_rates_and_shares() {
        assert_eq!(millis(Duration::from_nanos(43_912_400)), "43.912");
        assert_eq!(millis(Duration::from_nanos(-500_600)), "-0.501");
        assert_eq!(bytes(132), "132 B");
        assert_eq!(bytes(64_240), "64,240 B");
        assert_eq!(bytes(5_000_000), "5.00 MB");
        assert_eq!(rate(100_000_000), "100 Mbit/s");
        assert_eq!(percent(Duration::from_nanos(981), Duration::from_nanos(1000)), "98.1 %");
        assert_eq!(percent(Duration::from_nanos(1), Duration::from_secs(1)), "<0.1 %");
        assert_eq!(percent(Duration::ZERO, Duration::ZERO), "0.0 %");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
