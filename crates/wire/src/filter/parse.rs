//! What do the words of a filter mean?

use std::net::{IpAddr, SocketAddr};

use super::{Expr, FilterError, What, Which, mask};
use crate::Endpoint;

/// Deeper nesting is nobody's filter, and would be our stack.
const MAX_DEPTH: usize = 50;

pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser { text, words: words(text), next: 0, last: None };
    let expr = parser.list(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(")") => Err(parser.error("a `)` without its `(`")),
        Some(_) => Err(parser.error("expected `and`, `or` or the end here")),
    }
}

/// The words with their place in bytes. Parentheses and operators need no blanks around them.
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

/// The words before a value, which hold for later values that have none.
#[derive(Clone, Copy)]
struct Words {
    which: Which,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A host, a network or an endpoint, by its look.
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

    /// Terms joined by `and`, or terms joined by `or`.
    fn list(&mut self, depth: usize) -> Result<Expr, FilterError> {
        let first = self.term(depth)?;
        let (is_and, is_or) = (["and", "&&"], ["or", "||"]);
        let (joins, other) = match self.peek() {
            Some(word) if is_and.contains(&word) => (is_and, is_or),
            Some(word) if is_or.contains(&word) => (is_or, is_and),
            _ => return Ok(first),
        };
        let mut terms = vec![first];
        while self.accept(&joins) {
            terms.push(self.term(depth)?);
        }
        if self.peek().is_some_and(|word| other.contains(&word)) {
            return Err(self.error("`and` and `or` together need parentheses to say which comes first"));
        }
        Ok(if joins == is_and { Expr::And(terms) } else { Expr::Or(terms) })
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
        let which = match self.peek() {
            Some("src") => Some(Which::Src),
            Some("dst") => Some(Which::Dst),
            _ => None,
        };
        self.next += usize::from(which.is_some());
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            _ => None,
        };
        self.next += usize::from(kind.is_some());
        let words = match (which, kind, self.last) {
            (None, None, Some(last)) => last,
            _ => Words { which: which.unwrap_or(Which::Either), kind: kind.unwrap_or(Kind::Any) },
        };
        if self.peek() == Some("(") {
            return self.group(Some(words), depth);
        }
        let what = match self.value(words.kind) {
            // `port 80 or 10.0.0.5:90`: the words before do not fit, but the value needs none.
            Err(error) if which.is_none() && kind.is_none() => self.value(Kind::Any).map_err(|_| error)?,
            what => what?,
        };
        self.next += 1;
        self.last = Some(words);
        Ok(Expr::Is(words.which, what))
    }

    /// What stands in parentheses, which the words before them hold for: `port (80 or 443)`.
    fn group(&mut self, words: Option<Words>, depth: usize) -> Result<Expr, FilterError> {
        let before = std::mem::replace(&mut self.last, words);
        self.next += 1;
        let expr = self.list(depth + 1)?;
        if !self.accept(&[")"]) {
            return Err(self.error("expected `and`, `or` or `)` here"));
        }
        self.last = before;
        Ok(expr)
    }

    fn value(&self, kind: Kind) -> Result<What, FilterError> {
        let expected = match kind {
            Kind::Any => "`host`, `net`, `port`, `portrange`, `src`, `dst`, `not`, `(` or an address",
            Kind::Host => "an address, such as 10.0.0.5 or 2001:db8::1",
            Kind::Net => "a network, such as 10.0.0.0/8",
            Kind::Port => "a port number",
            Kind::PortRange => "two port numbers, such as 8000-8099",
        };
        let Some(word) = self.peek() else { return Err(self.error(format!("expected {expected} here"))) };
        let what = match kind {
            Kind::Port => word.parse().ok().map(|port| What::Ports(port, port)),
            Kind::PortRange => {
                let range = word.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                if let Some((first, last)) = range
                    && first > last
                {
                    return Err(self.error(format!("the range is empty: {first} is more than {last}")));
                }
                range.map(|(first, last)| What::Ports(first, last))
            }
            Kind::Host => host(word),
            Kind::Net => self.net(word)?,
            Kind::Any => match host(word).or_else(|| endpoint(word)) {
                Some(what) => Some(what),
                None => self.net(word)?,
            },
        };
        what.ok_or_else(|| self.error(format!("expected {expected} here")))
    }

    /// A network; `None` where the word does not look like one.
    fn net(&self, word: &str) -> Result<Option<What>, FilterError> {
        let Some((addr, len)) = word.split_once('/') else { return Ok(None) };
        let (Ok(ip), Ok(len)) = (addr.parse::<IpAddr>(), len.parse::<u8>()) else { return Ok(None) };
        let (bits, before) = if ip.is_ipv4() { (32, 96) } else { (128, 0) };
        if len > bits {
            return Err(self
                .error(format!("an IPv{} prefix has at most {bits} bits", if bits == 32 { 4 } else { 6 })));
        }
        let (addr, prefix) = (number(ip), len + before);
        if addr & !mask(prefix) != 0 {
            let net = Endpoint { addr: addr & mask(prefix), port: 0 }.ip();
            return Err(self.error(format!("bits are set behind the prefix; `{net}/{len}` is the network")));
        }
        Ok(Some(What::Net { addr, prefix }))
    }
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
