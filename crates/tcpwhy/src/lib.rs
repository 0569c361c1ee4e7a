//! The parts of the `tcpwhy` command that other programs can use too: opening and reading captures, analysing them on
//! several threads, and judging bills against what the applications' own clocks said.

pub mod input;
#[cfg(target_os = "linux")]
pub mod judge;
pub mod threads;
