//! How is a connection identified before it has a number?
//!
//! Connections are numbered in the order of their first packets, over all shards, when their epoch
//! is settled. Until then a connection is identified by its first packet, with one of two bits set
//! that no number uses.

/// Marks a connection of the present epoch, which has no number yet, only its first packet.
pub(crate) const UNNUMBERED: u64 = 1 << 63;
/// Marks a connection that will not be listed, whatever its number.
pub(crate) const UNLISTED: u64 = 1 << 62;
/// The mask of the packet number in such an identifier.
pub(crate) const PACKET: u64 = UNLISTED - 1;
