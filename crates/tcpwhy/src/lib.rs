//! Which parts of the `tcpwhy` command can other programs use? Opening and reading captures,
//! analysing them on several threads, and comparing bills with the applications' own clocks.

pub mod input;
#[cfg(target_os = "linux")]
pub mod judge;
pub mod threads;
