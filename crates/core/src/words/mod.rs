//! What can be said: the causes, who can change them, and the report that contains them? Names and
//! numbers of the output only; nothing is decided here.

pub mod cause;
pub(crate) mod form;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod mark;
pub(crate) mod opening;
pub mod report;
pub(crate) mod rung;
pub(crate) mod steps;
