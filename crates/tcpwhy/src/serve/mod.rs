//! `--serve`: how does a page get data by range, if the capture is too large for one file?
//!
//! One thread talks to all clients, in HTTP/1.1 with one request per connection, and never blocks
//! on one; a few threads find the answers. A client must know the token; how much is read, how long
//! it may take and how many requests wait are limited. The socket is opened before rights are given
//! up; no other can be opened afterwards.

mod clients;
mod data;
mod request;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tcpwhy::input::stop;

use crate::output::complain;
use clients::{Clients, Order, Ready};
pub(crate) use data::Library;

/// Threads that find answers.
pub(crate) const THREADS: usize = 4;
/// Requests that may wait for one of them; others are refused.
const WAITING: usize = 32;

/// The argument of `--serve`: an address and a port, or either; loopback unless an address is
/// given.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    None.or_else(|| text.parse::<SocketAddr>().ok())
        .or_else(|| text.parse::<u16>().ok().map(|port| SocketAddr::new(loopback, port)))
        .or_else(|| bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0)))
        .ok_or_else(|| "expected an address and a port, such as 127.0.0.1:0 or [::1]:8000".to_owned())
}

/// A listening socket, and the token that a client needs.
pub(crate) struct Door {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl Door {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let mut secret = [0_u8; 16];
        getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
        let token = format!("{:032x}", u128::from_be_bytes(secret));
        Ok(Self { address: listener.local_addr()?, listener, token })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Says where the page is, and answers until the user stops it (Ctrl-C).
    pub(crate) fn serve(&self, library: &Library<'_>) -> anyhow::Result<()> {
        if !self.address.ip().is_loopback() {
            complain(
                "warning: the page can be reached from other machines, and by anyone who sees its address (plain HTTP)",
            );
        }
        complain(&format!("http://{}/{}/ shows the page; Ctrl-C ends it", self.address, self.token));
        let (orders, ordered) = sync_channel(WAITING);
        let (done, ready) = channel();
        let ordered = Mutex::new(ordered);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (ordered, done) = (&ordered, done.clone());
                scope.spawn(move || find(ordered, library, &done));
            }
            let orders = orders; // the threads end when it is dropped
            let mut clients = Clients::default();
            while !stop::is_asked() {
                clients.wait(&self.listener)?;
                let now = now();
                clients.welcome(&self.listener, now);
                clients.hear(&self.token, &orders, now);
                for found in ready.try_iter() {
                    clients.give(found, now);
                }
                clients.serve(now);
            }
            Ok(())
        })
    }
}

/// Finds answers until no more requests can come, or the end has come.
fn find(ordered: &Mutex<Receiver<Order>>, library: &Library<'_>, done: &Sender<Ready>) {
    let next = || ordered.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    while let Some(Order { number, asked }) = next().filter(|_| !stop::is_asked()) {
        if done.send((number, library.answer(asked))).is_err() {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "who asks, and who listens, has only so long")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_loopback_unless_they_say_otherwise() {
        let wanted = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(wanted("127.0.0.1:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(wanted("8080").as_deref(), Ok("127.0.0.1:8080"));
        assert_eq!(wanted("[::1]").as_deref(), Ok("[::1]:0"));
        assert_eq!(wanted("10.0.0.5:80").as_deref(), Ok("10.0.0.5:80"));
        for wrong in ["", "localhost:80", "evil.example", "127.0.0.1:99999", "70000", ":80"] {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }
}
