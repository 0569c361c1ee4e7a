//! What says a connection's number before it has one?
//!
//! Connections are numbered in the order of their first packets, over all shards, when their epoch is settled. Until then one is
//! known by its first packet, below two bits that no number has.

/// A connection of the present epoch has no number yet, and is known by its first packet.
pub(crate) const UNNUMBERED: u64 = 1 << 63;
/// It will not be listed whatever its number is going to be.
pub(crate) const UNLISTED: u64 = 1 << 62;
/// The rest of such a number.
pub(crate) const PACKET: u64 = UNLISTED - 1;
