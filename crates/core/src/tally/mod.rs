//! What do finished bills add up to: by cause, by server, and one by one if they are listed?

mod alike;
pub(crate) mod closed;
pub(crate) mod ledger;
pub(crate) mod listed;
pub(crate) mod listed_connections;
pub(crate) mod listed_exchange;
pub(crate) mod numbers;
pub(crate) mod service;
pub(crate) mod tallied;
pub(crate) mod thinning;
pub(crate) mod totals;
