//! What is known of a finished setup, exchange or one-way message besides its account?

use tcpwhy_wire::{Duration, Instant};

use crate::words::cause::Side;
use crate::words::report::{Kind, Pairing};

/// A finished setup, exchange or one-way message, without its account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closed {
    pub connection: u64,
    pub service: ServiceKey,
    pub n: u64,
    pub kind: Kind,
    pub initiator: Side,
    pub by: Option<Pairing>,
    pub start: Instant,
    /// How much of its time nothing else of its connection was billed for; all of it if exchanges take
    /// turns.
    pub by_clock: Option<Duration>,
    pub awaited: Duration,
    pub client_idle: Duration,
    pub request_bytes: u64,
    pub reply_bytes: u64,
    pub packets: [u64; 2],
    /// The connection's smallest round trip.
    pub round: Option<Duration>,
}

/// The place of a service, until that is given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServiceKey {
    pub slot: u32,
    pub generation: u32,
}
