//! Segments to connections, exchanges, bills and findings.
//!
//! Pure and deterministic: the same segments give the same report. Read `report` for what comes out.
#![forbid(unsafe_code)]

pub mod cause;
pub mod report;

pub use cause::{Cause, Side};
pub use report::Report;
