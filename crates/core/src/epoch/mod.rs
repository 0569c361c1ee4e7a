//! Which connection does a segment belong to, when is its turn, and on which thread? Segments are
//! gathered for an epoch and worked on by pair of hosts; what concerns all of them is settled between
//! epochs.

pub(crate) mod asked;
pub(crate) mod budget;
pub(crate) mod coordinator;
pub(crate) mod earliest;
pub(crate) mod finished;
pub(crate) mod front;
pub(crate) mod groups;
pub(crate) mod listening;
pub(crate) mod new_connections;
pub(crate) mod numbering;
pub(crate) mod options;
pub(crate) mod orders;
pub(crate) mod path_memories;
pub(crate) mod releases;
pub(crate) mod requests;
pub(crate) mod roles;
pub(crate) mod shard;
pub(crate) mod slab;
pub(crate) mod table;
