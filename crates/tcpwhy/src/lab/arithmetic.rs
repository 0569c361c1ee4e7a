//! What does arithmetic predict for a transfer? Its size through the link, a round trip, and while
//! the window is the limit, a round trip for each flight: speed <= window / RTT.

use tcpwhy_lab::ElementSpec;
use tcpwhy_lab::scenario::{Scenario, Transfer};
use tcpwhy_report::quantity::{bytes, counted, rate, time};
use tcpwhy_wire::Duration;

/// The predicted time, and how it was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predicted {
    pub(super) elapsed: Duration,
    said: String,
}

/// The parameters of path and sender for the prediction.
#[derive(Clone, Copy, Debug)]
struct Sums {
    bits_per_s: Option<u64>,
    rtt: Duration,
    mtu_bytes: u64,
    mss_bytes: u64,
    initcwnd: u64,
    /// Limit of a flight.
    flight_max_bytes: u64,
}

/// From the scenario, and from the window that the receiver advertised.
pub(super) fn predict(scenario: &Scenario, window_bytes: Option<u64>) -> Option<Predicted> {
    let transfer = scenario.transfer?;
    let path = &scenario.pair.path;
    let delays = path.forward.iter().chain(&path.backward).map(|element| match element {
        ElementSpec::Delay(delay) => delay.as_nanos(),
        _ => 0,
    });
    let mtu_bytes = u64::from(scenario.pair.server.mtu);
    let limits = [transfer.flight_bytes, window_bytes];
    let sums = Sums {
        bits_per_s: path.backward.iter().find_map(|element| match element {
            ElementSpec::Rate { bits_per_s, .. } => Some(*bits_per_s),
            _ => None,
        }),
        rtt: Duration::from_nanos(delays.sum()),
        mtu_bytes,
        mss_bytes: mtu_bytes - HEADERS_BYTES,
        initcwnd: u64::from(scenario.pair.server.initcwnd.unwrap_or(INITCWND)),
        flight_max_bytes: limits.into_iter().flatten().min().unwrap_or(u64::MAX),
    };
    Some(sums.of(transfer))
}

impl Sums {
    fn of(self, transfer: Transfer) -> Predicted {
        let mut left = transfer.bytes;
        let mut cwnd = if transfer.open { u64::MAX } else { self.initcwnd.saturating_mul(self.mss_bytes) };
        let (mut stops, mut is_limited) = (0, false);
        loop {
            let flight = cwnd.min(self.flight_max_bytes);
            // The last flight, or one that lasts until its ACKs are back: no more stalls.
            if flight >= left || self.on_the_link(flight) >= self.rtt {
                break;
            }
            is_limited |= flight == self.flight_max_bytes;
            left -= flight;
            cwnd = cwnd.saturating_mul(2);
            stops += 1;
        }
        let handshake = if transfer.connects { self.rtt } else { Duration::ZERO };
        let elapsed = handshake + self.rtt.times(stops + 1) + self.on_the_link(left);
        let mut said = format!("{} of {}", counted(stops as u64 + 1, "flight"), time(self.rtt));
        if is_limited {
            said = format!("{said}, at most {}", bytes(self.flight_max_bytes));
        }
        if let Some(bits_per_s) = self.bits_per_s {
            said = format!("{said}, {} at {}", time(self.on_the_link(left)), rate(bits_per_s));
        }
        if transfer.connects {
            said.push_str(", and a handshake");
        }
        Predicted { elapsed, said }
    }

    /// How long the link takes for this many bytes, in full segments.
    fn on_the_link(self, payload_bytes: u64) -> Duration {
        let Some(bits_per_s) = self.bits_per_s else { return Duration::ZERO };
        let wire_bytes = u128::from(payload_bytes) * u128::from(self.mtu_bytes) / u128::from(self.mss_bytes);
        let ns = wire_bytes * 8_000_000_000 / u128::from(bits_per_s);
        Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

impl Predicted {
    /// `624 ms: 24 flights of 26.0 ms, at most 254,560 B`
    pub(super) fn said(&self) -> String {
        format!("{}: {}", time(self.elapsed), self.said)
    }

    /// By how many per cent the measured time is longer, including the connects if the prediction
    /// does.
    pub(super) fn deviation(&self, measured: Duration, connect: Option<Duration>) -> String {
        let whole = measured + connect.unwrap_or_default();
        let per_cent = 100.0 * (whole.as_nanos() as f64 / self.elapsed.as_nanos().max(1) as f64 - 1.0);
        match connect {
            Some(_) => format!("{} with the connect, {per_cent:+.1} % from theory", time(whole)),
            None => format!("{per_cent:+.1} % from theory"),
        }
    }
}

/// IPv4, TCP, time stamps.
const HEADERS_BYTES: u64 = 52;
/// The kernel's default since 2.6.39 (RFC 6928).
const INITCWND: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(set: &str, path: &str, window: Option<u64>) -> (i64, String) {
        let text = format!(
            "shows = 'x'\ntransfer = {{ {set} }}\n[path]\n{path}\n[workload]\nclient = 'connect'\nserver = 'accept'"
        );
        let scenario = Scenario::parse("x", &text, None, &[]).unwrap();
        let predicted = predict(&scenario, window).unwrap();
        (predicted.elapsed.as_nanos() / 1_000_000, predicted.said())
    }

    #[test]
    fn case_d_is_window_over_round_trip() {
        // 10, 20, 40, 80, 160 segments, then 175.8 for each round trip: 3621 segments need 24 of them.
        let path = "rtt = '26ms'";
        let (ms, said) = predicted("bytes = '5m'", path, Some(254_560));
        assert_eq!((ms, said.as_str()), (624, "624 ms: 24 flights of 26.0 ms, at most 254,560 B"));
        assert_eq!(predicted("bytes = '5m'", path, Some(80_480)).0, 67 * 26);
        // The report's own: log2(1 + 5746 / 10) = 9.2 round trips until 8 MiB are in flight.
        assert_eq!(predicted("bytes = '8m'", path, None).0, 10 * 26);
    }

    #[test]
    fn case_c_is_size_over_bandwidth_and_a_round_trip() {
        let path = "rtt = '4ms'\nrate = '1gbit'";
        // 4 MiB in segments of 1448 + 52 B: 34.8 ms, and 4 ms.
        let (ms, said) = predicted("bytes = '4m', open = true", path, Some(3_000_000));
        assert_eq!((ms, said.as_str()), (38, "38.8 ms: 1 flight of 4.00 ms, 34.8 ms at 1.00 Gbit/s"));
        // Flights of 10 to 320 segments wait for ACKs (4 ms of the link are 333); 3,282,064 B are
        // left.
        assert_eq!(predicted("bytes = '4m'", path, None).0, 6 * 4 + 4 + 27);
        assert_eq!(predicted("bytes = '4m', connects = true", path, None).0, 4 + 6 * 4 + 4 + 27);
        assert_eq!(predicted("bytes = '4m', open = true, flight = '128k'", path, None).0, 31 * 4 + 4 + 1);
    }
}
