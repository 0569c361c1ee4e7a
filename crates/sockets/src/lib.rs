//! What limits each TCP socket of a running Linux host now, and who owns it?
//!
//! The kernel is queried by netlink (sock_diag(7)) twice, and the differences show what happened in
//! between. Nothing here changes a socket.
//!
//! ```no_run
//! use std::time::Duration;
//! use tcpwhy_sockets::{Diag, States, Watch, limit};
//!
//! # fn main() -> std::io::Result<()> {
//! let (mut diag, mut watch) = (Diag::open()?, Watch::default());
//! diag.each_seen(States::CONNECTED, &mut |seen| watch.note(seen, Duration::ZERO))?;
//! std::thread::sleep(Duration::from_secs(1));
//! diag.each(States::CONNECTED, &mut |socket| {
//!     let lately = watch.since(socket, Duration::from_secs(1));
//!     println!("{} -> {}: {}", socket.local, socket.remote, limit::of(socket, &lately, None).words());
//! })
//! # }
//! ```
#![cfg(target_os = "linux")]

pub mod counters;
mod diag;
pub mod limit;
pub mod namespace;
pub mod options;
pub mod owner;
mod seen;
mod socket;
mod sys;
mod watch;

pub use diag::{Diag, States};
pub use limit::Limit;

pub use options::Options;
pub use owner::Owner;
pub use seen::Seen;
pub use socket::{Memory, Socket, State, Timer};
pub use watch::{Lately, Watch};
