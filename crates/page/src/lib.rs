//! How does a report become one page that opens offline?
//!
//! `data` is the contract with the page (`tcpwhy.page/3`, docs/schema): the report's own document
//! without its lists, and these as columns, thinned if they are long. `packets` is a connection for
//! its time-sequence graph, `choice` says which connections get one, and `file` puts the data into
//! the page that `page/` builds. Pure.
#![forbid(unsafe_code)]

mod chance;
pub mod choice;
mod columns;
pub mod compared;
mod connections;
pub mod data;
mod deflated;
mod exchanges;
pub mod file;
pub mod packets;

pub use choice::{Choice, chosen};
pub use compared::Compared;
pub use data::{Context, Each, Page, SCHEMA, known_as, origin};
pub use deflated::{Deflated, Deflater, Gzip};
pub use packets::Sacks;
