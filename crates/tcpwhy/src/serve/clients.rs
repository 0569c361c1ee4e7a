//! Which clients are connected, and in which state is each: sending its request, waiting for its
//! answer, or receiving it?
//!
//! One thread reads from all of them, and sends each what its socket takes without blocking: a slow
//! client delays no other.

use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::data::Answer;
use super::request::{self, Asked, HEAD_MAX, Refusal};

/// Connections at a time. Beyond that, the one that has been sending its request for longest is
/// closed.
const CLIENTS_MAX: usize = 64;
/// Answers sent at a time: each may be as large as a list. Beyond that, the client that has
/// received nothing for longest is closed.
const TAKING_MAX: usize = 8;
/// Time limits for sending a request and for receiving an answer.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
const TAKEN_WITHIN: Duration = Duration::from_mins(1);
/// Bytes that a client gets in its turn.
const TURN: usize = 256 * 1024;
/// How soon the end, and an answer that is ready, are noticed.
const NOTICED_NS: i64 = 200_000_000;
const READY_NS: i64 = 5_000_000;

const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n";

/// A request, and the client that sent it.
pub(super) struct Order {
    pub number: u64,
    pub asked: Asked,
}

/// An answer, and the client that it is for.
pub(super) type Ready = (u64, Result<Answer, Refusal>);

struct Client {
    stream: TcpStream,
    number: u64,
    /// When it connected, and when it last sent or received something.
    came: Instant,
    moved: Instant,
    wants_head: bool,
    at: At,
}

enum At {
    Asking(Vec<u8>),
    Waiting,
    Taking { head: Vec<u8>, body: Arc<[u8]>, done: usize },
    Gone,
}

/// All connected clients, in the order in which they came.
#[derive(Default)]
pub(super) struct Clients {
    all: Vec<Client>,
    last: u64,
}

impl Clients {
    /// Waits until a client connects, sends, or can receive, or until it is time to check.
    pub(super) fn wait(&self, listener: &TcpListener) -> std::io::Result<()> {
        let mut ready = vec![PollFd::new(listener, PollFlags::IN)];
        for client in &self.all {
            match client.at {
                At::Asking(_) => ready.push(PollFd::new(&client.stream, PollFlags::IN)),
                At::Taking { .. } => ready.push(PollFd::new(&client.stream, PollFlags::OUT)),
                At::Waiting | At::Gone => {}
            }
        }
        let some_wait = self.all.iter().any(|client| matches!(client.at, At::Waiting));
        let most = Timespec { tv_sec: 0, tv_nsec: if some_wait { READY_NS } else { NOTICED_NS } };
        match poll(&mut ready, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts new clients.
    pub(super) fn welcome(&mut self, listener: &TcpListener, now: Instant) {
        for _ in 0..CLIENTS_MAX {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // For example out of descriptors: that is temporary.
                Err(_) => return std::thread::sleep(Duration::from_nanos(READY_NS.unsigned_abs())),
            };
            if self.all.len() >= CLIENTS_MAX {
                let Some(oldest) = self.all.iter().position(|client| matches!(client.at, At::Asking(_)))
                else {
                    continue;
                };
                self.all.remove(oldest);
            }
            self.last += 1;
            let (number, at) = (self.last, At::Asking(Vec::with_capacity(1024)));
            self.all.push(Client { stream, number, came: now, moved: now, wants_head: false, at });
        }
    }

    /// Reads requests, and passes them on to the threads that answer.
    pub(super) fn hear(&mut self, token: &str, orders: &SyncSender<Order>, now: Instant) {
        for client in &mut self.all {
            match client.ask(token, now) {
                None => {}
                Some(Err(refusal)) => client.give(Err(refusal)),
                Some(Ok((asked, wants_head))) => {
                    (client.wants_head, client.at) = (wants_head, At::Waiting);
                    if orders.try_send(Order { number: client.number, asked }).is_err() {
                        client.give(Err(Refusal::Busy));
                    }
                }
            }
        }
    }

    /// Gives a client the answer that is ready for it.
    pub(super) fn give(&mut self, (number, answer): Ready, now: Instant) {
        let taking = |client: &&mut Client| matches!(client.at, At::Taking { .. });
        if self.all.iter_mut().filter(taking).count() >= TAKING_MAX
            && let Some(slowest) = self.all.iter_mut().filter(taking).min_by_key(|client| client.moved)
        {
            slowest.at = At::Gone;
        }
        if let Some(client) = self.all.iter_mut().find(|client| client.number == number) {
            client.moved = now;
            client.give(answer);
        }
    }

    /// Sends each as much as it takes, and closes those that have everything, are gone, or are too
    /// slow.
    pub(super) fn serve(&mut self, now: Instant) {
        for client in &mut self.all {
            client.take(now);
        }
        self.all.retain(|client| !matches!(client.at, At::Gone));
    }
}

impl Client {
    /// Its request, once it is complete.
    fn ask(&mut self, token: &str, now: Instant) -> Option<Result<(Asked, bool), Refusal>> {
        let At::Asking(head) = &mut self.at else { return None };
        let mut piece = [0_u8; HEAD_MAX];
        let room = HEAD_MAX - head.len();
        match recv(&self.stream, &mut piece[..room], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Some(Err(Refusal::Malformed)),
            Ok((count, _)) => {
                self.moved = now;
                head.extend_from_slice(&piece[..count]);
                return request::read(head, token);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.at = At::Gone,
        }
        (now - self.came >= ASKED_WITHIN).then_some(Err(Refusal::Slow))
    }

    fn give(&mut self, answer: Result<Answer, Refusal>) {
        let (status, kind, encoding, body) = match answer {
            Ok(Answer::Page(page)) => ("200 OK", "text/html; charset=utf-8", "", page),
            Ok(Answer::Data(data)) => ("200 OK", "application/json", "Content-Encoding: gzip\r\n", data),
            Err(refusal) => {
                let said = format!("{}\n", refusal.status()).into_bytes().into();
                (refusal.status(), "text/plain; charset=utf-8", "", said)
            }
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{encoding}{HEADERS}\r\n"
        );
        let body = if self.wants_head { Arc::default() } else { body };
        self.at = At::Taking { head: head.into_bytes(), body, done: 0 };
    }

    /// Sends what the socket takes at once.
    fn take(&mut self, now: Instant) {
        let At::Taking { head, body, done } = &mut self.at else { return };
        let mut turn = TURN;
        loop {
            let rest = if *done < head.len() { &head[*done..] } else { &body[*done - head.len()..] };
            if rest.is_empty() {
                let _ = self.stream.shutdown(Shutdown::Write); // an error does not matter: the client is not listening any more
                self.at = At::Gone;
                return;
            }
            match send(&self.stream, &rest[..rest.len().min(turn)], SendFlags::DONTWAIT | NO_SIGNAL) {
                Ok(count) => {
                    (*done, turn, self.moved) = (*done + count, turn - count, now);
                    if turn == 0 {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if now - self.came < TAKEN_WITHIN => return,
                Err(_) => {
                    self.at = At::Gone;
                    return;
                }
            }
        }
    }
}

/// A closed connection is an error, not a signal.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: SendFlags = SendFlags::empty();

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn door() -> std::io::Result<TcpListener> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn come(clients: &mut Clients, listener: &TcpListener, now: Instant) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(listener.local_addr()?)?;
        clients.wait(listener)?;
        clients.welcome(listener, now);
        Ok(stream)
    }

    #[expect(clippy::disallowed_methods, reason = "who is slow is so by the clock")]
    fn now() -> Instant {
        Instant::now()
    }

    /// Answers larger than the sockets' buffers, of which nothing is read.
    #[test]
    fn who_reads_nothing_holds_nobody_and_is_closed() -> std::io::Result<()> {
        let (listener, mut clients, now) = (door()?, Clients::default(), now());
        let large: Arc<[u8]> = vec![b'x'; 16 << 20].into();
        let mut idle = Vec::new();
        for n in 0..TAKING_MAX + 2 {
            idle.push(come(&mut clients, &listener, now)?);
            let at = now + Duration::from_millis(n as u64);
            clients.give((clients.last, Ok(Answer::Data(Arc::clone(&large)))), at);
            for _ in 0..100 {
                clients.serve(at);
            }
            assert_eq!(
                clients.all.len(),
                (n + 1).min(TAKING_MAX),
                "the one that took nothing for longest goes"
            );
        }
        let mut reads = come(&mut clients, &listener, now)?;
        clients
            .give((clients.last, Ok(Answer::Data(b"some".as_slice().into()))), now + Duration::from_secs(1));
        clients.serve(now + Duration::from_secs(1));
        let mut answer = Vec::new();
        reads.read_to_end(&mut answer)?;
        assert!(answer.ends_with(b"\r\n\r\nsome"));
        clients.serve(now + TAKEN_WITHIN + Duration::from_secs(2));
        assert_eq!(clients.all.len(), 0);
        Ok(())
    }

    #[test]
    fn beyond_so_many_whoever_has_asked_for_longest_is_closed() -> std::io::Result<()> {
        let (listener, mut clients, now) = (door()?, Clients::default(), now());
        let mut silent = Vec::new();
        for _ in 0..=CLIENTS_MAX {
            silent.push(come(&mut clients, &listener, now)?);
        }
        assert_eq!((clients.all.len(), clients.all[0].number), (CLIENTS_MAX, 2));
        assert_eq!(silent[0].read(&mut [0])?, 0);
        let (orders, _ordered) = std::sync::mpsc::sync_channel(1);
        clients.hear("word", &orders, now + ASKED_WITHIN);
        clients.serve(now + ASKED_WITHIN);
        let mut answer = String::new();
        silent[1].read_to_string(&mut answer)?;
        assert!(answer.starts_with("HTTP/1.1 408 ") && clients.all.is_empty(), "{answer}");
        Ok(())
    }
}
