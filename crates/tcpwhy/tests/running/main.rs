//! Are the commands for running systems right in what they say and do? Against the real kernel,
//! faulty applications and their own clocks.
#![cfg(target_os = "linux")]

mod fix;
mod lab;
mod live;
mod programs;
mod rounds;
mod screen;
mod sockets;
