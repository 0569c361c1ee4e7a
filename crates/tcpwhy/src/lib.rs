//! The parts of the `tcpwhy` command that other programs can use too: opening and reading captures.

pub mod input;
