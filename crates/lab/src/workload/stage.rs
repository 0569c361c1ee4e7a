//! Where does an agent run? On a host of the laboratory, or in this process's own network.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread::{self, JoinHandle};

use crate::Host;

/// A place with its own network.
pub trait Stage {
    /// Runs `work` on a new thread there.
    ///
    /// # Errors
    /// The thread could not be started or moved there.
    fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>>;

    /// The address to listen on and to connect to.
    fn address(&self) -> IpAddr;

    /// A file below `/proc/thread-self`, as seen there.
    ///
    /// # Errors
    /// It cannot be read.
    fn proc_file(&self, file: &str) -> io::Result<String>;
}

impl Stage for Host {
    fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        Self::enter(self, work)
    }

    fn address(&self) -> IpAddr {
        self.ipv4().into()
    }

    fn proc_file(&self, file: &str) -> io::Result<String> {
        Self::proc_file(self, file)
    }
}

/// The calling thread's own network namespace, over loopback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Here;

impl Stage for Here {
    fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        // A new thread inherits the network namespace of its creator.
        thread::Builder::new().spawn(work)
    }

    fn address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    fn proc_file(&self, file: &str) -> io::Result<String> {
        std::fs::read_to_string(format!("/proc/thread-self/{file}"))
    }
}
