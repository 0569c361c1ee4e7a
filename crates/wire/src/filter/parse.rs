//! What does the text of a filter mean?

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Expr, FilterError, What, Which, mask};
use crate::Endpoint;

/// No real filter is nested deeper, and more would overflow the stack.
const MAX_DEPTH: usize = 50;

pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser { text, words: words(text), next: 0, last: None };
    let expr = parser.list(0)?;
    match parser.peek() {
        // Lists that mix `and` and `or` are shown with parentheses, which add to the depth.
        None if expr.depth() > MAX_DEPTH => Err(parser.error("nested too deeply")),
        None => Ok(expr),
        Some(")") => Err(parser.error("unmatched `)`")),
        Some(_) => Err(parser.error("expected `and`, `or` or the end")),
    }
}

/// The words with their byte offsets. Parentheses and operators need no blanks around them.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let len = match rest.as_bytes() {
            [] => return words,
            [b'&', b'&', ..] | [b'|', b'|', ..] => 2,
            [b'(' | b')' | b'!' | b'&' | b'|', ..] => 1,
            _ => rest.find(|c: char| c.is_whitespace() || "()!&|".contains(c)).unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at(len);
        words.push((at, word));
        rest = behind;
    }
}

/// The keywords before a value, which also apply to later values that have none.
#[derive(Clone, Copy)]
struct Words {
    which: Direction,
    kind: Kind,
    family: Family,
}

#[derive(Clone, Copy)]
enum Direction {
    One(Which),
    /// `src and dst`.
    Both,
}

#[derive(Clone, Copy)]
enum Family {
    Both,
    V4,
    V6,
}

impl Family {
    fn expr(self) -> Expr {
        match self {
            Self::Both => Expr::Any,
            Self::V4 => Expr::Is(Which::Either, What::Family { v6: false }),
            Self::V6 => Expr::Is(Which::Either, What::Family { v6: true }),
        }
    }

    /// Restricts an expression to this family.
    fn with(self, expr: Expr) -> Expr {
        match self {
            Self::Both => expr,
            Self::V4 | Self::V6 => Expr::And(vec![self.expr(), expr]),
        }
    }
}

/// Whether a term ends before this word.
fn is_between_terms(word: &str) -> bool {
    matches!(word, "and" | "or" | "&&" | "||" | ")")
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A host, a network or an endpoint, depending on its form.
    Any,
    Host,
    Net,
    Port,
    PortRange,
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<(usize, &'a str)>,
    next: usize,
    last: Option<Words>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|(_, word)| *word)
    }

    fn accept(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        self.next += usize::from(found);
        found
    }

    /// An error at the next word.
    fn error(&self, what: impl Into<String>) -> FilterError {
        let (at, word) = self.words.get(self.next).copied().unwrap_or((self.text.trim_end().len(), ""));
        FilterError {
            text: self.text.to_owned(),
            at: self.text[..at].chars().count(),
            len: word.chars().count(),
            what: what.into(),
        }
    }

    /// Terms joined by `and` and `or`, which have equal precedence and associate left to right (pcap-filter(7)).
    fn list(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let mut terms = vec![self.term(depth)?];
        let mut joined: fn(Vec<Expr>) -> Expr = Expr::And;
        let (mut is_and, mut nested) = (true, depth);
        while let Some(and) = self.join() {
            if and != is_and && terms.len() > 1 {
                nested += 1;
                if nested > MAX_DEPTH {
                    return Err(self.error("nested too deeply"));
                }
                terms = vec![joined(terms)];
            }
            (is_and, joined) = (and, if and { Expr::And } else { Expr::Or });
            terms.push(self.term(depth)?);
        }
        Ok(match terms.len() {
            1 => terms.remove(0),
            _ => joined(terms),
        })
    }

    /// The operator before the next term, if there is one: is it `and`?
    fn join(&mut self) -> Option<bool> {
        if self.accept(&["and", "&&"]) { Some(true) } else { self.accept(&["or", "||"]).then_some(false) }
    }

    fn term(&mut self, depth: usize) -> Result<Expr, FilterError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        if self.accept(&["not", "!"]) {
            return Ok(Expr::Not(Box::new(self.term(depth + 1)?)));
        }
        if self.peek() == Some("(") {
            return self.group(None, depth);
        }
        let family = self.family()?;
        let which = self.which();
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            _ => None,
        };
        self.next += usize::from(kind.is_some());
        if let (Some(family), None, None) = (family, which, kind)
            && self.peek().is_none_or(is_between_terms)
        {
            return Ok(family.expr());
        }
        let words = match (which, kind, family, self.last) {
            (None, None, None, Some(last)) => last,
            _ => Words {
                which: which.unwrap_or(Direction::One(Which::Either)),
                kind: kind.unwrap_or(Kind::Any),
                family: family.unwrap_or(Family::Both),
            },
        };
        if self.peek() == Some("(") {
            return self.group(Some(words), depth);
        }
        let what = match self.value(words.kind) {
            // `port 80 or 10.0.0.5:90`: the earlier keywords do not fit, but the value needs none.
            Err(error) if which.is_none() && kind.is_none() && family.is_none() => {
                self.value(Kind::Any).map_err(|_| error)?
            }
            what => what?,
        };
        self.next += 1;
        let what = if words.kind == Kind::Net && self.accept(&["mask"]) { self.masked(what)? } else { what };
        self.last = Some(words);
        Ok(words.family.with(match words.which {
            Direction::One(which) => Expr::Is(which, what),
            Direction::Both => Expr::And(vec![Expr::Is(Which::Src, what), Expr::Is(Which::Dst, what)]),
        }))
    }

    /// `tcp`, `ip` or `ip6`; other protocols and conditions on single packets are refused.
    fn family(&mut self) -> Result<Option<Family>, FilterError> {
        let mut family = None;
        while let Some(word) = self.peek() {
            family = match word {
                "tcp" => Some(family.unwrap_or(Family::Both)),
                "ip" => Some(Family::V4),
                "ip6" => Some(Family::V6),
                "udp" | "icmp" | "icmp6" | "arp" | "rarp" | "sctp" | "igmp" | "esp" | "ah" => {
                    return Err(self.error("only TCP is analysed"));
                }
                "proto" | "less" | "greater" | "len" | "ether" | "vlan" | "mpls" | "gateway"
                | "broadcast" | "multicast" | "inbound" | "outbound" => {
                    return Err(self.error("connections can only be selected by addresses and ports"));
                }
                _ if word.contains('[') && !word.starts_with('[') => {
                    return Err(self.error(
                        "packets cannot be selected by their contents, only whole connections by addresses and ports",
                    ));
                }
                _ => break,
            };
            self.next += 1;
        }
        Ok(family)
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn which(&mut self) -> Option<Direction> {
        let word = |n: usize| self.words.get(self.next + n).map(|(_, word)| *word);
        let (direction, len) = match (word(0)?, word(1), word(2)) {
            ("src", Some("or" | "||"), Some("dst")) | ("dst", Some("or" | "||"), Some("src")) => {
                (Direction::One(Which::Either), 3)
            }
            ("src", Some("and" | "&&"), Some("dst")) | ("dst", Some("and" | "&&"), Some("src")) => {
                (Direction::Both, 3)
            }
            ("src", ..) => (Direction::One(Which::Src), 1),
            ("dst", ..) => (Direction::One(Which::Dst), 1),
            _ => return None,
        };
        self.next += len;
        Some(direction)
    }

    /// The content of parentheses, to which the keywords before them apply: `port (80 or 443)`.
    fn group(&mut self, words: Option<Words>, depth: usize) -> Result<Expr, FilterError> {
        let before = std::mem::replace(&mut self.last, words);
        self.next += 1;
        let expr = self.list(depth + 1)?;
        if !self.accept(&[")"]) {
            return Err(self.error("expected `and`, `or` or `)`"));
        }
        self.last = before;
        Ok(expr)
    }

    fn value(&self, kind: Kind) -> Result<What, FilterError> {
        let expected = match kind {
            Kind::Any => {
                "`host`, `net`, `port`, `portrange`, `src`, `dst`, `tcp`, `ip6`, `not`, `(` or an address"
            }
            Kind::Host => "an address, such as 10.0.0.5 or 2001:db8::1",
            Kind::Net => "a network, such as 10.0.0.0/8",
            Kind::Port => "a port number or the name of a well-known service",
            Kind::PortRange => "two port numbers, such as 8000-8099",
        };
        let Some(word) = self.peek() else { return Err(self.error(format!("expected {expected}"))) };
        let what = match kind {
            Kind::Port => port(word).map(|port| What::Ports(port, port)),
            Kind::PortRange => {
                let range = word.split_once('-').and_then(|(a, b)| Some((port(a)?, port(b)?)));
                if let Some((first, last)) = range
                    && first > last
                {
                    return Err(self.error(format!("empty range: {first} is greater than {last}")));
                }
                range.map(|(first, last)| What::Ports(first, last))
            }
            Kind::Host => host(word),
            Kind::Net => self.net(word)?,
            Kind::Any => match host(word).or_else(|| endpoint(word)) {
                Some(what) => Some(what),
                // A bare `10` may be anything.
                None if word.contains(['/', '.', ':']) => self.net(word)?,
                None => None,
            },
        };
        let is_name = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
        };
        what.ok_or_else(|| match kind {
            Kind::Host | Kind::Net if is_name(word) => self.error(format!(
                "host names are not resolved, as they may have changed since the capture; expected {expected}"
            )),
            _ => self.error(format!("expected {expected}")),
        })
    }

    /// `net 10.1.0.0 mask 255.255.0.0`.
    fn masked(&mut self, net: What) -> Result<What, FilterError> {
        let bits = self.peek().and_then(|word| word.parse::<Ipv4Addr>().ok()).map(u32::from);
        let (What::Net { addr, .. }, Some(bits)) =
            (net, bits.filter(|bits| bits.leading_ones() == bits.count_ones()))
        else {
            return Err(self.error("expected an IPv4 netmask, such as 255.255.0.0"));
        };
        let prefix = 96 + bits.leading_ones() as u8;
        if addr & !mask(prefix) != 0 {
            return Err(self.error("the mask does not cover all bits that are set in the network"));
        }
        self.next += 1;
        Ok(What::Net { addr, prefix })
    }

    /// A network; `None` if the word does not look like one.
    fn net(&self, word: &str) -> Result<Option<What>, FilterError> {
        let (addr, len) = match word.split_once('/') {
            Some((addr, len)) => (addr, Some(len)),
            None => (word, None),
        };
        let Some((ip, own_len)) = network(addr) else { return Ok(None) };
        let Ok(len) = len.map_or(Ok(own_len), str::parse::<u8>) else { return Ok(None) };
        let (bits, before) = if ip.is_ipv4() { (32, 96) } else { (128, 0) };
        if len > bits {
            return Err(self
                .error(format!("an IPv{} prefix has at most {bits} bits", if bits == 32 { 4 } else { 6 })));
        }
        let (addr, prefix) = (number(ip), len + before);
        if addr & !mask(prefix) != 0 {
            let net = Endpoint { addr: addr & mask(prefix), port: 0 }.ip();
            return Err(self.error(format!("non-network bits set; did you mean `{net}/{len}`?")));
        }
        Ok(Some(What::Net { addr, prefix }))
    }
}

/// An address, or the first bytes of an IPv4 address, and their number of bits: `10`, `10.1`.
fn network(word: &str) -> Option<(IpAddr, u8)> {
    if let Ok(ip) = word.parse::<IpAddr>() {
        return Some((ip, if ip.is_ipv4() { 32 } else { 128 }));
    }
    let mut bytes = [0; 4];
    let mut parts = 0;
    for part in word.split('.') {
        *bytes.get_mut(parts)? = part.parse().ok()?;
        parts += 1;
    }
    Some((IpAddr::from(bytes), 8 * parts as u8))
}

/// A number, or the name of a common service (IANA's service names).
fn port(word: &str) -> Option<u16> {
    const SERVICES: [(&str, u16); 24] = [
        ("ftp-data", 20),
        ("ftp", 21),
        ("ssh", 22),
        ("telnet", 23),
        ("smtp", 25),
        ("domain", 53),
        ("http", 80),
        ("www", 80),
        ("kerberos", 88),
        ("pop3", 110),
        ("imap", 143),
        ("imap2", 143),
        ("bgp", 179),
        ("ldap", 389),
        ("https", 443),
        ("microsoft-ds", 445),
        ("submission", 587),
        ("ldaps", 636),
        ("imaps", 993),
        ("pop3s", 995),
        ("mysql", 3306),
        ("postgresql", 5432),
        ("redis", 6379),
        ("http-alt", 8080),
    ];
    let named = |word: &str| SERVICES.iter().find(|(name, _)| *name == word).map(|(_, port)| *port);
    word.parse().ok().or_else(|| named(word))
}

fn host(word: &str) -> Option<What> {
    let ip: IpAddr = word.parse().ok()?;
    Some(What::Net { addr: number(ip), prefix: 128 })
}

fn endpoint(word: &str) -> Option<What> {
    let addr: SocketAddr = word.parse().ok()?;
    Some(What::Endpoint(Endpoint { addr: number(addr.ip()), port: addr.port() }))
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}
