//! Which fields of a `tcpwhy read --json` document (`tcpwhy.report/1`) does this program read
//! itself, once a sandboxed reader has written it?

use serde::Deserialize;

/// The document.
#[derive(Deserialize)]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) connections: Vec<Connection>,
}

/// One of its connections.
#[derive(Deserialize)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) client: String,
    pub(crate) server: String,
    pub(crate) last_ns: i64,
    pub(crate) packets: u64,
    /// Exchanges with a bill.
    pub(crate) billed: u64,
    /// Largest first.
    #[serde(default)]
    pub(crate) bill: Vec<Line>,
    #[serde(default)]
    pub(crate) exchanges: Vec<Exchange>,
}

/// A line of a bill.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) cause: String,
    pub(crate) ns: u64,
}

/// An exchange.
#[derive(Deserialize)]
pub(crate) struct Exchange {
    pub(crate) kind: String,
    pub(crate) elapsed_ns: u64,
}
