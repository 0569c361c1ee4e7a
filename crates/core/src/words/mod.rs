//! What can be said: the causes, who can change them, and the report in which they stand? Everything here is names and numbers of
//! the output; nothing is decided.

pub mod cause;
pub(crate) mod form;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod mark;
pub(crate) mod opening;
pub mod report;
pub(crate) mod rung;
pub(crate) mod steps;
