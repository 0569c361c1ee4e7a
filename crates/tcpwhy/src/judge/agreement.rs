//! Do both ends reach the same bill? Each sees one half of the path directly and infers the other.

use std::fmt;

use tcpwhy_core::{Cause, Report, Side};

use super::{share, spent};

/// Where the bills of both ends differ most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// The cause on which they disagree.
    pub cause: Cause,
    /// The side responsible.
    pub side: Side,
    /// Its share at the client and at the server, 0 to 1.
    pub shares: [f64; 2],
}

impl Agreement {
    /// The difference of the shares, 0 to 1.
    pub fn difference(self) -> f64 {
        (self.shares[0] - self.shares[1]).abs()
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [client, server] = self.shares.map(|share| 100.0 * share);
        write!(f, "{} ({}): {client:.1}% at the client, {server:.1}% at the server", self.cause, self.side)
    }
}

/// The cause whose share differs most; `None` if both bills are empty.
pub fn agreement(client: &Report, server: &Report) -> Option<Agreement> {
    let of = |report: &Report, cause, side| share(report.elapsed, spent(report, None, cause, side));
    Cause::ALL
        .into_iter()
        .flat_map(|cause| {
            [Side::Client, Side::Server, Side::Path, Side::Unknown].map(|side| Agreement {
                cause,
                side,
                shares: [of(client, cause, side), of(server, cause, side)],
            })
        })
        .filter(|agreement| agreement.shares.iter().any(|share| *share > 0.0))
        .max_by(|a, b| a.difference().total_cmp(&b.difference()))
}
