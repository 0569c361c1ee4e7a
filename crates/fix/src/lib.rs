//! What can be changed on a running host so that it can be reverted, even after a crash in the
//! middle?
//!
//! A [`Change`] says what is changed, from what, to what. The [`Journal`] stores it on disk before
//! it is made, and reverting compares first: a value that someone else has changed since is left
//! alone.
//!
//! ```no_run
//! use tcpwhy_fix::{Change, Journal, Knob, Target};
//!
//! # fn main() -> Result<(), tcpwhy_fix::Error> {
//! let target = Target::socket(4242, 7, Knob::NoDelay)?;
//! let (fix, from, to) = ("nodelay".to_owned(), target.read()?, "1".to_owned());
//! let change = Change { fix, target, from, to, memo: None };
//! let journal = Journal::open()?;
//! journal.apply(&change)?;
//! for entry in journal.entries()? {
//!     println!("{}: {}", entry.id, journal.undo(&entry)?);
//! }
//! # Ok(())
//! # }
//! ```
#![cfg(target_os = "linux")]

mod error;
mod journal;
mod route;
mod socket;
mod sys;
mod sysctl;
mod target;

pub use error::Error;
pub use journal::{Applied, Entry, Journal, Undone};
pub use route::{Metric, RouteEnds, route_to};
pub use socket::Knob;
pub use target::{Change, Target};
