//! Does this connection match?
//!
//! The syntax is tcpdump's (pcap-filter(7)): `port 8080`, `port http`, `host 10.0.0.5`, `net
//! 10.0.0.0/8` or `net 10`, `portrange 8000-8099`, `src`, `dst` and `tcp`, `ip`, `ip6` before them,
//! `and`, `or`, `not` (`&&`, `||`, `!`) and parentheses. As in tcpdump, a value without keywords
//! takes those of the value before it (`port 80 or 443`), and `and` and `or` have equal precedence,
//! from left to right. An endpoint in tcpwhy's notation needs no keyword: `10.0.0.5:8080`,
//! `[::1]:8080`.

mod parse;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::Endpoint;

/// Selects connections by their endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    expr: Expr,
}

/// A filter is a tree of these.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expr {
    /// Always true: all packets are TCP.
    Any,
    /// One endpoint must match.
    Is(Which, What),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
}

/// Which endpoint a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Src,
    Dst,
    Either,
}

/// A condition on one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The address under the mask. IPv4 in its mapped form, as in [`Endpoint`].
    Net { addr: u128, prefix: u8 },
    /// The port is in this range, both ends included.
    Ports(u16, u16),
    /// Address and port.
    Endpoint(Endpoint),
    /// The address is IPv6, or IPv4.
    Family { v6: bool },
}

impl What {
    fn is(self, endpoint: Endpoint) -> bool {
        match self {
            Self::Net { addr, prefix } => (addr ^ endpoint.addr) & mask(prefix) == 0,
            Self::Ports(first, last) => (first..=last).contains(&endpoint.port),
            Self::Endpoint(this) => this == endpoint,
            Self::Family { v6 } => endpoint.ip().is_ipv6() == v6,
        }
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

impl Expr {
    fn matches(&self, src: Endpoint, dst: Endpoint) -> bool {
        match self {
            Self::Any => true,
            Self::Is(Which::Src, what) => what.is(src),
            Self::Is(Which::Dst, what) => what.is(dst),
            Self::Is(Which::Either, what) => what.is(src) || what.is(dst),
            Self::Not(expr) => !expr.matches(src, dst),
            Self::And(exprs) => exprs.iter().all(|expr| expr.matches(src, dst)),
            Self::Or(exprs) => exprs.iter().any(|expr| expr.matches(src, dst)),
        }
    }
}

impl Expr {
    /// Whether it is shown without keywords, so that it would take those of the value before it.
    fn takes_words(&self) -> bool {
        match self {
            Self::Is(Which::Either, What::Endpoint(_)) => true,
            Self::Not(expr) => expr.takes_words(),
            _ => false,
        }
    }
}

impl Expr {
    /// How deeply it is nested when shown: in parentheses and after `not`.
    fn depth(&self) -> usize {
        let is_list = |expr: &Self| matches!(expr, Self::And(_) | Self::Or(_));
        let in_list = |expr: &Self| expr.depth() + usize::from(is_list(expr) || expr.takes_words());
        match self {
            Self::Any | Self::Is(..) => 0,
            Self::Not(expr) => 1 + expr.depth() + usize::from(is_list(expr)),
            Self::And(exprs) | Self::Or(exprs) => exprs.iter().map(in_list).max().unwrap_or(0),
        }
    }
}

impl Filter {
    /// Whether a packet from `src` to `dst` matches.
    pub fn matches(&self, src: Endpoint, dst: Endpoint) -> bool {
        self.expr.matches(src, dst)
    }

    /// Whether a connection between the two matches, in either direction: a bill needs both, even
    /// for `src 10.0.0.5`.
    pub fn matches_connection(&self, one: Endpoint, other: Endpoint) -> bool {
        self.matches(one, other) || self.matches(other, one)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(|expr| Self { expr })
    }
}

impl fmt::Display for Filter {
    /// In a form that parses to the same filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, exprs: &[Self], word: &str| {
            for (i, expr) in exprs.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match expr {
                    Self::And(_) | Self::Or(_) => write!(f, "({expr})")?,
                    _ if i > 0 && expr.takes_words() => write!(f, "({expr})")?,
                    _ => write!(f, "{expr}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Any => f.write_str("tcp"),
            Self::Is(which, what) => {
                f.write_str(match which {
                    Which::Src => "src ",
                    Which::Dst => "dst ",
                    Which::Either => "",
                })?;
                what.fmt(f)
            }
            Self::Not(expr) => match **expr {
                Self::And(_) | Self::Or(_) => write!(f, "not ({expr})"),
                _ => write!(f, "not {expr}"),
            },
            Self::And(exprs) => list(f, exprs, "and"),
            Self::Or(exprs) => list(f, exprs, "or"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Net { addr, prefix } => {
                let ip = Endpoint { addr, port: 0 }.ip();
                match (ip, prefix) {
                    (ip, 128) => write!(f, "host {ip}"),
                    (IpAddr::V4(ip), 96..) => write!(f, "net {ip}/{}", prefix - 96),
                    // Shorter than the mapped prefix: all of IPv4 and more.
                    _ => write!(f, "net {}/{prefix}", Ipv6Addr::from(addr)),
                }
            }
            Self::Ports(first, last) if first == last => write!(f, "port {first}"),
            Self::Ports(first, last) => write!(f, "portrange {first}-{last}"),
            Self::Endpoint(endpoint) => endpoint.fmt(f),
            Self::Family { v6 } => f.write_str(if v6 { "ip6" } else { "ip" }),
        }
    }
}

/// Where a filter cannot be parsed, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    /// Characters before the error.
    at: usize,
    /// Characters that are wrong.
    len: usize,
    what: String,
}

impl fmt::Display for FilterError {
    /// The filter, a caret under the error, and what was expected.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One column per character: characters that would act on a terminal, or take no column, are
        // shown as a blank.
        let shown: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let caret = "^".repeat(self.len.max(1));
        write!(f, "{shown}\n{:at$}{caret} {}", "", self.what, at = self.at)
    }
}

impl std::error::Error for FilterError {}
