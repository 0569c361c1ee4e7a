//! Turns segments into connections, exchanges, bills and findings.
//!
//! Pure and deterministic: the same segments give the same report. The modules, each of which uses only
//! those before it: `words` is the vocabulary of reports; `estimate` measures; `flow` is one direction
//! of a connection; `bill` adds up charges; `rules` decide what each interval was spent on; `tally`
//! sums finished bills and finds what a server's have in common; `connection` finds out whose turn it
//! is; `epoch` which connection, and when; `analysis` is the entry point. `conduct` is asked
//! afterwards, about the report alone.
#![forbid(unsafe_code)]

mod analysis;
mod bill;
pub mod conduct;
mod connection;
mod epoch;
mod estimate;
mod flow;
mod rules;
mod tally;
mod words;

pub use analysis::Analysis;
pub use epoch::asked::Asked;
pub use epoch::coordinator::Coordinator;
pub use epoch::front::{Arrival, Front};
pub use epoch::groups::Groups;
pub use epoch::options::Options;
pub use epoch::orders::{End, Epoch, Orders, Roll};
pub use epoch::requests::Requests;
pub use epoch::shard::Shard;
pub use flow::packed::Spare;
pub use tally::ledger::{DRAWN_BYTES, DRAWN_PACKETS, LADDERS_MAX, Listing};
pub use tally::thinning::{stands_for, thinned};
pub use words::cause::{Cause, Side};
pub use words::form::Form;
pub use words::mark::{Credit, Mark, Role};
pub use words::opening::Opening;
pub use words::report::Report;
pub use words::{cause, report};
