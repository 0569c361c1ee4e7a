//! What would this path, or these hosts, do to these packets?
//!
//! A model of two hosts and the path between them. Pure: no I/O, no clock, no randomness but seeded streams; time is
//! an argument. The path elements run here on a virtual clock and in the laboratory on the real one.
#![forbid(unsafe_code)]

pub mod path;
