//! `--serve`: how does a page get data by range, where the capture is too large for one file?
//!
//! A few threads answer requests of HTTP/1.1, one on each connection. Who asks must know the token; how much is read, how long
//! it may take and how many wait are bounded. The socket is opened before rights are given up, and afterwards none can be.

mod data;
mod request;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tcpwhy::input::stop;

use crate::output::complain;
pub(crate) use data::Library;
use request::{HEAD_MAX, Refusal};

/// Threads that answer.
pub(crate) const THREADS: usize = 4;
/// Connections that wait for one of them; others are closed.
const WAITING: usize = 32;
/// A request is there by then, and an answer is taken.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
const TAKEN_WITHIN: Duration = Duration::from_mins(1);
/// Bytes written at once.
const PIECE: usize = 64 * 1024;
/// How soon the end is noticed.
const NOTICED: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n";

/// What `--serve` names: an address and a port, or either; loopback unless an address is given.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    None.or_else(|| text.parse::<SocketAddr>().ok())
        .or_else(|| text.parse::<u16>().ok().map(|port| SocketAddr::new(loopback, port)))
        .or_else(|| bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0)))
        .ok_or_else(|| "an address and a port are needed, as in 127.0.0.1:0 or [::1]:8000".to_owned())
}

/// A socket that listens, and the word that opens it.
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

    /// Says where the page is, and answers until somebody asks for the end (Ctrl-C).
    pub(crate) fn serve(&self, library: &Library<'_>) -> anyhow::Result<()> {
        if !self.address.ip().is_loopback() {
            complain(
                "others than this machine can reach the page; whoever sees its address on the way reads it",
            );
        }
        complain(&format!("http://{}/{}/ shows the page; Ctrl-C ends it", self.address, self.token));
        let (come, waiting) = sync_channel::<TcpStream>(WAITING);
        let waiting = Mutex::new(waiting);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some(stream) = next(&waiting) {
                        // Whoever does not listen any more is nobody's loss.
                        let _ = answer(stream, &self.token, library);
                    }
                });
            }
            while !stop::is_asked() {
                let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
                match poll(&mut ready, Some(&NOTICED)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                    Ok(_) => {}
                    Err(error) => return Err(error.into()),
                }
                match self.listener.accept() {
                    // Beyond those that may wait it is closed.
                    Ok((stream, _)) => drop(come.try_send(stream)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    // As without descriptors: it passes.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
            drop(come);
            Ok(())
        })
    }
}

fn next(waiting: &Mutex<Receiver<TcpStream>>) -> Option<TcpStream> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn answer(mut stream: TcpStream, token: &str, library: &Library<'_>) -> std::io::Result<()> {
    let asked = ask(&mut stream, token)?;
    let is_head = matches!(asked, Ok((_, true)));
    let (status, kind, encoding, body) = match asked.and_then(|(asked, _)| library.answer(asked)) {
        Ok(data::Answer::Page(page)) => ("200 OK", "text/html; charset=utf-8", "", page),
        Ok(data::Answer::Data(data)) => ("200 OK", "application/json", "Content-Encoding: gzip\r\n", data),
        Err(refusal) => {
            let said = format!("{}\n", refusal.status()).into_bytes().into();
            (refusal.status(), "text/plain; charset=utf-8", "", said)
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{encoding}{HEADERS}\r\n"
    );
    let body: &[u8] = if is_head { &[] } else { &body };
    let until = now() + TAKEN_WITHIN;
    for piece in std::iter::once(head.as_bytes()).chain(body.chunks(PIECE)) {
        stream.set_write_timeout(Some(left(until)?))?;
        stream.write_all(piece)?;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

type Asking = Result<(request::Asked, bool), Refusal>;

/// Reads what is asked for.
fn ask(stream: &mut TcpStream, token: &str) -> std::io::Result<Asking> {
    let until = now() + ASKED_WITHIN;
    let mut head = Vec::with_capacity(1024);
    let mut piece = [0; 1024];
    loop {
        let Ok(left) = left(until) else { return Ok(Err(Refusal::Slow)) };
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(Err(Refusal::Malformed)),
            Ok(count) => head.extend_from_slice(&piece[..count.min(HEAD_MAX - head.len())]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(Err(Refusal::Slow));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(asked) = request::read(&head, token) {
            return Ok(asked);
        }
    }
}

fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
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
