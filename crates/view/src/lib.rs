//! How is live traffic shown? An answer in, lines or a screen out.
//!
//! An [`Answer`] is what has been found so far, sent periodically by the reader of a live capture.
//! [`lines`] formats it as lines, serde as JSON, and [`State`] holds what the user has chosen to
//! see and draws it. Nothing here uses a terminal, a clock or a file.
#![forbid(unsafe_code)]

pub mod answer;
mod bars;
pub mod cells;
mod draw;
mod pages;
pub mod socket;
pub mod state;

pub use answer::{Answer, Finding, lines};
pub use socket::Socket;
pub use state::{Connection, Key, State, Wish};
