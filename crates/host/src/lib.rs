//! What can only be observed on the running Linux host?
//!
//! Privileged code is here, and nothing is analysed here. Unsafe code is confined to
//! `capture::ring`.
#![cfg(target_os = "linux")]

pub mod capture;
mod sys;
pub mod tcp_info;

pub use tcp_info::TcpInfo;
