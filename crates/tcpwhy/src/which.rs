//! Which connection is meant? It is named by its number, one endpoint, or both.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use tcpwhy_core::report::Connection;
use tcpwhy_wire::Endpoint;

/// How a connection was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Counted from 1, in order of first packet.
    Number(u64),
    /// One end.
    End(Endpoint),
    /// Both ends, in any order.
    Ends(Endpoint, Endpoint),
}

impl Which {
    pub(crate) fn is(self, connection: &Connection) -> bool {
        let ends = [connection.client, connection.server];
        match self {
            Self::Number(number) => connection.id == number,
            Self::End(end) => ends.contains(&end),
            Self::Ends(one, other) => ends == [one, other] || ends == [other, one],
        }
    }
}

impl FromStr for Which {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected a number, host:port, or host:port-host:port ([address]:port for IPv6)";
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let endpoint = |text: &str| text.trim().parse::<SocketAddr>().ok().map(endpoint);
        if let Some(end) = endpoint(text) {
            return Ok(Self::End(end));
        }
        let (one, other) = text.split_once('-').ok_or(FORM)?;
        Ok(Self::Ends(endpoint(one).ok_or(FORM)?, endpoint(other.trim_start_matches('>')).ok_or(FORM)?))
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::End(end) => end.fmt(f),
            Self::Ends(one, other) => write!(f, "{one}-{other}"),
        }
    }
}

fn endpoint(addr: SocketAddr) -> Endpoint {
    match addr.ip() {
        IpAddr::V4(ip) => Endpoint::v4(ip.octets(), addr.port()),
        IpAddr::V6(ip) => Endpoint::v6(ip.octets(), addr.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_an_end_or_both() {
        let (one, other) = (Endpoint::v4([10, 0, 0, 1], 5), Endpoint::v4([10, 0, 0, 2], 80));
        assert_eq!("7".parse(), Ok(Which::Number(7)));
        assert_eq!("10.0.0.2:80".parse(), Ok(Which::End(other)));
        assert_eq!("10.0.0.1:5-10.0.0.2:80".parse(), Ok(Which::Ends(one, other)));
        assert_eq!("10.0.0.1:5 -> 10.0.0.2:80".parse(), Ok(Which::Ends(one, other)));
        assert!(matches!("[::1]:5-[::1]:80".parse(), Ok(Which::Ends(..))));
        for text in ["", "x", "10.0.0.1", "10.0.0.1:", "10.0.0.1:5-", "-1"] {
            assert!(text.parse::<Which>().is_err(), "{text}");
        }
    }
}
