//! Bytes to segments.
//!
//! What does this packet say about TCP, and when? Everything here is a pure function of the given
//! bytes: no I/O, no clock. A truncated or damaged packet is a value that says what was parsed and
//! where it stopped, never a panic.
#![forbid(unsafe_code)]

pub mod anonymize;
pub mod capture;
pub mod decode;
pub mod filter;
pub mod segment;
pub mod seq;
pub mod time;

pub use anonymize::Anonymizer;
pub use decode::{Decoded, Skip, Usual, decode, decode_usual, payload};
pub use filter::{Filter, FilterError};
pub use segment::{Endpoint, Flags, SackBlock, Segment, TcpOptions, Timestamps};
pub use seq::Seq;
pub use time::{Duration, Instant};
