//! What has one direction of a connection sent, what did its sender know at the time, and what is known of
//! the path to it? The state that segments leave behind, kept by the estimators; nothing here says what a
//! wait was spent on.

pub(crate) mod both_ends;
pub(crate) mod copied_syns;
pub(crate) mod direction;
pub(crate) mod duplicate_filter;
pub(crate) mod ends;
pub(crate) mod handshake;
pub(crate) mod hash;
pub(crate) mod holes;
pub(crate) mod packed;
pub(crate) mod passing;
pub(crate) mod path_memory;
pub(crate) mod ports;
pub(crate) mod segment_class;
pub(crate) mod syn_marks;
pub(crate) mod unusual;
pub(crate) mod view;
