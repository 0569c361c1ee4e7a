//! Do the commands for running systems say and do what is so? Against the real kernel, faulty applications and their own clocks.
#![cfg(target_os = "linux")]

mod fix;
mod lab;
mod live;
mod programs;
mod rounds;
mod screen;
mod sockets;
