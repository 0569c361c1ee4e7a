//! How does this machine's own kernel behave on a given path?
//!
//! Two hosts (network namespaces) and a path between them (a TUN device in each, and a thread that
//! carries packets from one to the other through the elements of [`tcpwhy_twin::path`]). Everything
//! on the hosts is real: the kernel's TCP, sockets, programs. Everything is held by processes and
//! open files, nothing by name, so nothing is left over however the laboratory ends.
#![cfg(target_os = "linux")]

mod awake;
mod clock;
pub mod demo;
mod error;
mod folder;
mod gro;
mod gso;
mod host;
mod link;
mod names;
mod netlink;
mod pair;
mod private;
pub mod scenario;
mod sys;
#[cfg(test)]
mod test_support;
pub mod truth;
mod tun;
pub mod workload;

pub use clock::Clock;
pub use error::Error;
pub use folder::{Folder, open_file, read_file};
pub use host::{Host, HostSpec};
pub use link::{Direction, LinkOptions, PathLog, PathRecord};
pub use pair::{Pair, PairOptions};
pub use private::Private;
pub use sys::{enter_user_namespace, take_precedence};
pub use tcpwhy_twin::path::{self, ElementSpec, PathSpec};
