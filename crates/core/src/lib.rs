//! Segments to connections, exchanges, bills and findings.
//!
//! Pure and deterministic: the same segments give the same report. In the order in which data flows: `analysis` finds
//! the connection of a segment; `connection` keeps both `half`s and the `exchange` under way; `mechanism` decides what
//! each interval was spent on; `account` adds it up; `ledger` sums finished bills, `service` finds what is common to those
//! of a server; `report` is the result.
#![forbid(unsafe_code)]

mod account;
mod analysis;
mod cadence;
pub mod cause;
mod clock;
pub mod conduct;
mod conductor;
mod connection;
mod early;
mod echo;
mod exchange;
mod fetch;
mod flows;
mod full_size;
mod groups;
mod half;
mod holes;
mod ip_id;
mod ladder;
mod ledger;
mod link;
mod listed;
mod mechanism;
mod order;
mod pace;
mod packed;
mod passing;
mod queue;
mod rate;
pub mod report;
mod rto;
mod service;
mod setup;
mod shard;
mod sighting;
mod spread;
mod suspects;
mod table;
mod view;
mod way;
mod window_scale;

pub use analysis::{Analysis, Arrival, Front, Options};
pub use cause::{Cause, Side};
pub use conductor::{Conductor, Epoch, Orders, Roll};
pub use groups::Groups;
pub use ledger::Listing;
pub use report::Report;
pub use shard::Shard;
