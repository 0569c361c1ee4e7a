//! What was requested, and how long did each kind of request take?
//!
//! Exchanges whose request has a name (`Exchange::request`) are grouped by it: without a path's
//! query, and with `*` for each number, so that requests that differ only in an identifier are one
//! kind.

use std::collections::BTreeMap;

use tcpwhy_core::report::{Exchange, Report};
use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::Duration;

/// All listed exchanges with the same kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// `GET /api/items/*`.
    pub name: String,
    /// Number of exchanges.
    pub count: u64,
    /// Their total time.
    pub ns: Duration,
    /// Their median.
    pub p50: Duration,
    /// Their 99th percentile.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// The causes of that time, largest first.
    pub bill: Vec<RequestLine>,
}

/// One cause over all requests of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// Total time.
    pub ns: Duration,
    /// Number of requests affected.
    pub hits: u64,
    /// Median over these.
    pub p50: Duration,
}

/// The listed exchanges by request, most total time first.
pub fn requests(report: &Report) -> Vec<Requests> {
    let mut by_name: BTreeMap<String, Vec<&Exchange>> = BTreeMap::new();
    for exchange in report.connections.iter().flat_map(|connection| &connection.exchanges) {
        if let Some(request) = &exchange.request {
            by_name.entry(kind_of(request)).or_default().push(exchange);
        }
    }
    let mut all: Vec<Requests> =
        by_name.into_iter().map(|(name, exchanges)| of_one_name(name, &exchanges)).collect();
    all.sort_by_key(|requests| std::cmp::Reverse(requests.ns));
    all
}

fn of_one_name(name: String, exchanges: &[&Exchange]) -> Requests {
    let mut elapsed: Vec<Duration> = exchanges.iter().map(|exchange| exchange.elapsed).collect();
    elapsed.sort();
    let mut lines: BTreeMap<(Cause, Side), Vec<Duration>> = BTreeMap::new();
    for line in exchanges.iter().flat_map(|exchange| &exchange.bill) {
        lines.entry((line.cause, line.side)).or_default().push(line.ns);
    }
    let mut bill: Vec<RequestLine> = lines
        .into_iter()
        .map(|((cause, side), mut each)| {
            each.sort();
            RequestLine {
                cause,
                side,
                ns: each.iter().copied().sum(),
                hits: each.len() as u64,
                p50: quantile(&each, 50),
            }
        })
        .collect();
    bill.sort_by_key(|line| std::cmp::Reverse(line.ns));
    Requests {
        name,
        count: elapsed.len() as u64,
        ns: elapsed.iter().copied().sum(),
        p50: quantile(&elapsed, 50),
        p99: quantile(&elapsed, 99),
        max: elapsed.last().copied().unwrap_or_default(),
        bill,
    }
}

/// The smallest value that this percentage does not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The common form of requests that differ only in an identifier.
fn kind_of(request: &str) -> String {
    let path = request
        .split_once(" /")
        .and_then(|(_, rest)| rest.find('?').map(|at| request.len() - rest.len() + at));
    let mut kind = String::new();
    let mut rest = &request[..path.unwrap_or(request.len())];
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, digits) = rest.split_at(start);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let is_part_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let of_word =
            is_part_of_word(before.chars().next_back()) || is_part_of_word(digits[end..].chars().next());
        kind.push_str(before);
        kind.push_str(if of_word { &digits[..end] } else { "*" });
        rest = &digits[end..];
    }
    kind.push_str(rest);
    kind
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn questions_that_differ_in_an_identifier_are_one_kind() {
        assert_eq!(kind_of("GET /api/items/17?page=3"), "GET /api/items/*");
        assert_eq!(kind_of("GET /v2/items"), "GET /v2/items");
        assert_eq!(
            kind_of("Query select * from t where id = 99 limit 1"),
            "Query select * from t where id = * limit *"
        );
        assert_eq!(
            kind_of("Query select name from t where ok is null?"),
            "Query select name from t where ok is null?"
        );
        assert_eq!(kind_of("GET user:42:name"), "GET user:*:name");
        assert_eq!(kind_of("GET /"), "GET /");
    }
}
