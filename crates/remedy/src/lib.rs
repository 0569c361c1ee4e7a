//! What should be changed, by whom, and what would it save?
//!
//! `advise` answers for one finding, `catalogue` holds the fixes with instructions for each
//! language and server, `alternatives` names the other readings of a line, `explain` describes each
//! cause and how to check it by hand. Pure: no I/O, no clock.
#![forbid(unsafe_code)]

pub mod advise;
pub mod alternatives;
pub mod catalogue;
pub mod explain;
mod form;

pub use advise::{Remedy, Saves, remedies_for};
pub use alternatives::{Alternative, Reading, alternatives};
pub use catalogue::{Fix, How, Stack};
pub use explain::{Explanation, explain};
pub use form::form_in_words;
