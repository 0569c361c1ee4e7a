//! How is told what passes now? One answer in, lines or a screen out.
//!
//! An [`Answer`] is what was found so far, as the reader of a live capture gives it every so often. [`lines`] tells it in lines, serde as
//! JSON, and [`State`] keeps what a person has chosen to see of it and draws that. Nothing here knows a terminal, a clock or a file.
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
