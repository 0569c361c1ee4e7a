//! How is a script executed? With plain sockets and blocking calls, as in applications, and a note of the
//! time before and after each call.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration as StdDuration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;
use tcpwhy_host::TcpInfo;
use tcpwhy_wire::{Duration, Instant};

use super::log::{AgentLog, ConnectionLog, Event, Op, Sample, now};
use super::script::{Amount, QuickAck, Script, Setting, Step, WriteCall};
use super::watch::Watch;
use crate::sys;

/// The role of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// Executes one side's script.
pub(super) struct Agent {
    role: Role,
    server: SocketAddr,
    /// Time limit of a single call.
    limit: StdDuration,
    /// How often the kernel's view is sampled meanwhile.
    watch_every: Option<StdDuration>,
    watch: Option<Watch>,
    listener: Option<OwnedFd>,
    /// Options for sockets that do not exist yet.
    options: Vec<Setting>,
    socket: Option<OwnedFd>,
    quick_ack_always: bool,
    sent: u64,
    received: u64,
    /// The last call that moved bytes.
    last: Option<Op>,
    peer_closed: bool,
    /// The bytes to send.
    payload: Vec<u8>,
    /// The same as a file, for sendfile.
    file: Option<OwnedFd>,
    room: Vec<u8>,
    log: AgentLog,
}

/// Why a script ends before its last step. Every reason but `PeerClosed` ends all of it.
enum Stop {
    /// The peer has closed while a read waited: ends the innermost `repeat` without a count.
    PeerClosed,
    /// No more clients will connect.
    NoMoreConnections,
    /// A call failed: it is in the log.
    Failed(String),
}

type Flow = ControlFlow<Stop>;

impl Agent {
    pub(super) fn new(
        role: Role,
        server: SocketAddr,
        limit: StdDuration,
        watch_every: Option<StdDuration>,
    ) -> Self {
        Self {
            role,
            server,
            limit,
            watch_every,
            watch: None,
            listener: None,
            options: Vec::new(),
            socket: None,
            quick_ack_always: false,
            sent: 0,
            received: 0,
            last: None,
            peer_closed: false,
            payload: Vec::new(),
            file: None,
            room: Vec::new(),
            log: AgentLog::default(),
        }
    }

    /// Opens the server's listening socket with the options before the script's first `accept`. A duplicate
    /// of it lets the caller end the wait for connections that never come.
    pub(super) fn listen(&mut self, script: &Script) -> io::Result<OwnedFd> {
        let socket = self.open()?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        for step in script.0.iter().take_while(|step| matches!(step, Step::Set(_))) {
            if let Step::Set(setting) = step {
                apply(socket.as_fd(), setting)?;
            }
        }
        rustix::net::bind(&socket, &self.server)?;
        rustix::net::listen(&socket, 128)?;
        let copy = socket.try_clone()?;
        self.listener = Some(socket);
        Ok(copy)
    }

    /// The server's address.
    pub(super) fn listens_on(&self) -> io::Result<SocketAddr> {
        let listener = self.listener.as_ref().ok_or_else(|| io::Error::other("not listening"))?;
        address(rustix::net::getsockname(listener)?)
    }

    /// Executes the script; open connections are closed at its end.
    pub(super) fn run(mut self, script: &Script) -> AgentLog {
        if let ControlFlow::Break(Stop::Failed(what)) = self.steps(&script.0) {
            self.log.failure = Some(what);
        }
        self.close(Op::Close);
        self.log
    }

    fn steps(&mut self, steps: &[Step]) -> Flow {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Flow {
        match step {
            Step::Connect => self.connect(),
            Step::Accept => self.accept(),
            Step::Set(setting) => self.set(setting),
            Step::Write { bytes, piece, pause, how } => self.write(*bytes, *piece, *pause, *how),
            Step::Writev(parts) => self.writev(parts),
            Step::Read { amount, piece, pause } => self.read(*amount, *piece, *pause),
            Step::Think(span) => {
                self.sleep_until(now() + *span, Op::Think);
                Flow::Continue(())
            }
            Step::Repeat { times, every, steps } => self.repeat(*times, *every, steps),
            Step::Shutdown => {
                self.before_write();
                self.call(Op::Shutdown, |socket| Ok(rustix::net::shutdown(socket, Shutdown::Write)?))
            }
            Step::Close => {
                self.close(Op::Close);
                Flow::Continue(())
            }
            Step::Reset => {
                if let Some(socket) = &self.socket {
                    // With a linger time of zero, close sends RST (tcp_close).
                    let _ = sockopt::set_socket_linger(socket, Some(StdDuration::ZERO));
                }
                self.close(Op::Reset);
                Flow::Continue(())
            }
        }
    }

    fn repeat(&mut self, times: Option<u64>, every: Option<Duration>, steps: &[Step]) -> Flow {
        let begun = now();
        let mut n = 0;
        while times.is_none_or(|times| n < times) {
            if let Some(every) = every {
                let due = begun + every.times(n as i64);
                if due > now() {
                    self.sleep_until(due, Op::Wait);
                }
            }
            match self.steps(steps) {
                ControlFlow::Break(Stop::PeerClosed) if times.is_none() => break,
                other => other?,
            }
            n += 1;
        }
        Flow::Continue(())
    }

    fn connect(&mut self) -> Flow {
        self.close(Op::Close);
        let opened = self.open().and_then(|socket| {
            self.options.iter().try_for_each(|setting| apply(socket.as_fd(), setting).map(drop))?;
            Ok(socket)
        });
        let socket = match opened {
            Ok(socket) => socket,
            Err(error) => return self.fail("socket", &error),
        };
        let unknown = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let start = now();
        let result = rustix::net::connect(&socket, &self.server);
        let end = now();
        let local = rustix::net::getsockname(&socket).ok().and_then(|name| address(name).ok());
        self.begin(local.unwrap_or(unknown), self.server);
        let note = result.err().map(|errno| io::Error::from(errno).to_string());
        self.note(Event { note: note.clone(), ..event(Op::Connect, start, end) });
        match note {
            Some(error) => self.fail("connect", &error),
            None => self.established(socket),
        }
    }

    fn accept(&mut self) -> Flow {
        self.close(Op::Close);
        let Some(listener) = &self.listener else {
            return self.fail("accept", &"only the server's script can accept");
        };
        let start = now();
        let accepted = loop {
            match rustix::net::acceptfrom_with(listener, SocketFlags::CLOEXEC) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        let end = now();
        let (socket, peer) = match accepted {
            Ok((socket, peer)) => (socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok())),
            // shutdown() on the listening socket, or its receive timeout.
            Err(Errno::INVAL | Errno::AGAIN) => return Flow::Break(Stop::NoMoreConnections),
            Err(errno) => return self.fail("accept", &errno),
        };
        let local = rustix::net::getsockname(&socket).ok().and_then(|name| address(name).ok());
        let Some((local, peer)) = local.zip(peer) else {
            return self.fail("accept", &"the connection has no IP address");
        };
        self.begin(local, peer);
        self.note(event(Op::Accept, start, end));
        self.established(socket)
    }

    /// Starts the log of a new connection.
    fn begin(&mut self, local: SocketAddr, peer: SocketAddr) {
        let connection = ConnectionLog { local, peer, events: Vec::new(), samples: Vec::new() };
        self.log.connections.push(connection);
    }

    fn established(&mut self, socket: OwnedFd) -> Flow {
        let limited = [Timeout::Recv, Timeout::Send]
            .into_iter()
            .try_for_each(|timeout| sockopt::set_socket_timeout(&socket, timeout, Some(self.limit)));
        (self.sent, self.received, self.last, self.peer_closed) = (0, 0, None, false);
        self.watch = self.watch_every.and_then(|every| Watch::begin(&socket, every));
        self.socket = Some(socket);
        if let Err(errno) = limited {
            return self.fail("setsockopt(SO_RCVTIMEO)", &errno);
        }
        // Options of the listening socket are inherited (inet_csk_clone_lock), except this one.
        if self.options.contains(&Setting::QuickAck(QuickAck::Always)) {
            self.quick_ack_always = true;
        }
        self.sample();
        Flow::Continue(())
    }

    fn set(&mut self, setting: &Setting) -> Flow {
        self.options.retain(|other| std::mem::discriminant(other) != std::mem::discriminant(setting));
        if let Setting::QuickAck(mode) = setting {
            self.quick_ack_always = *mode == QuickAck::Always;
        }
        let Some(socket) = &self.socket else {
            self.options.push(setting.clone());
            return Flow::Continue(());
        };
        let start = now();
        let result = apply(socket.as_fd(), setting);
        let end = now();
        match result {
            Ok(made) => {
                let note = Some(format!("{setting:?}"));
                self.note(Event { bytes: made, note, ..event(Op::Set, start, end) });
                Flow::Continue(())
            }
            Err(error) => self.fail(&format!("{setting:?}"), &error),
        }
    }

    fn write(&mut self, bytes: u64, piece: u64, pause: Option<Duration>, how: WriteCall) -> Flow {
        let op = match how {
            WriteCall::Plain => Op::Write,
            WriteCall::More => Op::WriteMore,
            WriteCall::SendFile => Op::Sendfile,
        };
        if let Err(error) = self.prepare(piece.min(bytes), how) {
            return self.fail("prepare the payload", &error);
        }
        self.before_write();
        let mut left = bytes;
        while left > 0 {
            let size = left.min(piece) as usize;
            let mut done = 0;
            while done < size {
                let start = now();
                let result = match (&self.socket, &self.file) {
                    (None, _) => return self.fail("write", &"no connection"),
                    (Some(socket), Some(file)) if how == WriteCall::SendFile => {
                        let mut offset = done as u64;
                        rustix::fs::sendfile(socket, file, Some(&mut offset), size - done)
                    }
                    (Some(socket), _) => {
                        let more = if how == WriteCall::More { SendFlags::MORE } else { SendFlags::empty() };
                        rustix::net::send(socket, &self.payload[done..size], more | SendFlags::NOSIGNAL)
                    }
                };
                done += self.moved(op, start, result)?;
            }
            left -= size as u64;
            if let (Some(pause), true) = (pause, left > 0) {
                self.sleep_until(now() + pause, Op::Think);
            }
        }
        Flow::Continue(())
    }

    fn writev(&mut self, parts: &[u64]) -> Flow {
        let longest = parts.iter().copied().max().unwrap_or_default();
        if let Err(error) = self.prepare(longest, WriteCall::Plain) {
            return self.fail("prepare the payload", &error);
        }
        self.before_write();
        let Some(socket) = &self.socket else { return self.fail("writev", &"no connection") };
        let slices: Vec<_> =
            parts.iter().map(|part| io::IoSlice::new(&self.payload[..*part as usize])).collect();
        let start = now();
        let result = rustix::io::writev(socket, &slices);
        let done = self.moved(Op::Writev, start, result)? as u64;
        let all: u64 = parts.iter().sum();
        if done < all { self.fail("writev", &format!("{done} of {all} bytes")) } else { Flow::Continue(()) }
    }

    fn read(&mut self, amount: Amount, piece: u64, pause: Option<Duration>) -> Flow {
        let mut left = match amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Some | Amount::All => u64::MAX,
        };
        self.room.resize(self.room.len().max(piece as usize), 0);
        while left > 0 {
            let size = left.min(piece) as usize;
            let start = now();
            let Some(socket) = &self.socket else { return self.fail("read", &"no connection") };
            let result = rustix::net::recv(socket, &mut self.room[..size], RecvFlags::empty());
            let first_after_writes = self.last != Some(Op::Read);
            let n = self.moved(Op::Read, start, result.map(|(n, _)| n))? as u64;
            if first_after_writes && self.role == Role::Server {
                // The cost of the previous exchange is known by now.
                self.sample();
            }
            if n == 0 {
                self.peer_closed = true;
                return match amount {
                    Amount::All => Flow::Continue(()),
                    Amount::Bytes(_) | Amount::Some => Flow::Break(Stop::PeerClosed),
                };
            }
            if self.quick_ack_always
                && let Some(socket) = &self.socket
            {
                let _ = sockopt::set_tcp_quickack(socket, true);
            }
            left -= n;
            if amount == Amount::Some {
                break;
            }
            if let (Some(pause), true) = (pause, left > 0) {
                self.sleep_until(now() + pause, Op::Think);
            }
        }
        Flow::Continue(())
    }

    /// Notes a call that moves bytes and ends now.
    fn moved(&mut self, op: Op, start: Instant, result: Result<usize, Errno>) -> ControlFlow<Stop, usize> {
        let end = now();
        let n = match result {
            Ok(n) => n,
            Err(Errno::INTR) => return ControlFlow::Continue(0),
            Err(errno) => {
                let note = Some(io::Error::from(errno).to_string());
                self.note(Event { note, ..event(op, start, end) });
                return match self.fail(&format!("{op:?}"), &io::Error::from(errno)) {
                    ControlFlow::Break(stop) => ControlFlow::Break(stop),
                    ControlFlow::Continue(()) => ControlFlow::Continue(0),
                };
            }
        };
        let total = if op.writes() { &mut self.sent } else { &mut self.received };
        let offset = *total;
        *total += n as u64;
        self.last = Some(op);
        self.note(Event { bytes: Some(n as u64), offset: Some(offset), ..event(op, start, end) });
        ControlFlow::Continue(n)
    }

    /// The kernel's view before an exchange begins.
    fn before_write(&mut self) {
        if self.role == Role::Client && self.last.is_none_or(|op| !op.writes()) {
            self.sample();
        }
    }

    fn call(&mut self, op: Op, call: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> Flow {
        let Some(socket) = &self.socket else { return self.fail(&format!("{op:?}"), &"no connection") };
        let start = now();
        let result = call(socket.as_fd());
        let end = now();
        self.note(event(op, start, end));
        match result {
            Ok(()) => Flow::Continue(()),
            Err(error) => self.fail(&format!("{op:?}"), &error),
        }
    }

    /// Closes an open connection.
    fn close(&mut self, op: Op) {
        if self.socket.is_none() {
            return;
        }
        if let (Some(watch), Some(connection)) = (self.watch.take(), self.log.connections.last_mut()) {
            connection.samples.extend(watch.end());
            connection.samples.sort_by_key(|sample| sample.at_ns);
        }
        self.sample();
        let start = now();
        self.socket = None;
        self.note(event(op, start, now()));
    }

    fn sample(&mut self) {
        let Some(socket) = &self.socket else { return };
        let at_ns = now().as_nanos();
        if let (Ok(tcp_info), Some(connection)) = (TcpInfo::of(socket), self.log.connections.last_mut()) {
            connection.samples.push(Sample { at_ns, tcp_info });
        }
    }

    fn sleep_until(&mut self, due: Instant, op: Op) {
        let start = now();
        let time =
            Timespec { tv_sec: due.as_nanos() / 1_000_000_000, tv_nsec: due.as_nanos() % 1_000_000_000 };
        while clock_nanosleep_absolute(ClockId::Realtime, &time) == Err(Errno::INTR) {}
        self.note(event(op, start, now()));
    }

    /// Events between connections belong to none.
    fn note(&mut self, event: Event) {
        if let Some(connection) = self.log.connections.last_mut() {
            connection.events.push(event);
        }
    }

    fn fail(&self, what: &str, error: &dyn std::fmt::Display) -> Flow {
        let role = match self.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        Flow::Break(Stop::Failed(format!("the {role}'s {what}: {error}")))
    }

    fn open(&self) -> io::Result<OwnedFd> {
        let family = if self.server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Limits connect and accept.
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(self.limit))?;
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(self.limit))?;
        Ok(socket)
    }

    /// Prepares `bytes`, in memory or as a file, so that generating them is not part of the write's time.
    fn prepare(&mut self, bytes: u64, how: WriteCall) -> io::Result<()> {
        let have = self.payload.len();
        let longer = (bytes as usize) > have;
        if longer {
            // Any content that compresses badly would do; no byte equals its neighbour.
            self.payload.extend((have..bytes as usize).map(|n| (n.wrapping_mul(167) >> 3) as u8));
        }
        if how == WriteCall::SendFile && (longer || self.file.is_none()) {
            let file = rustix::fs::memfd_create("payload", MemfdFlags::CLOEXEC)?;
            let mut written = 0;
            while written < self.payload.len() {
                written += rustix::io::write(&file, &self.payload[written..])?;
            }
            self.file = Some(file);
        }
        Ok(())
    }
}

/// Sets an option; for a buffer, returns the kernel's actual size.
fn apply(socket: BorrowedFd<'_>, setting: &Setting) -> io::Result<Option<u64>> {
    match setting {
        Setting::NoDelay(on) => sockopt::set_tcp_nodelay(socket, *on)?,
        Setting::Cork(on) => sockopt::set_tcp_cork(socket, *on)?,
        Setting::QuickAck(mode) => sockopt::set_tcp_quickack(socket, *mode != QuickAck::Off)?,
        Setting::Congestion(name) => sockopt::set_tcp_congestion(socket, name)?,
        Setting::PacingRate(rate) => sys::set_max_pacing_rate(socket, *rate)?,
        Setting::ReceiveBuffer(bytes) => {
            sockopt::set_socket_recv_buffer_size(socket, *bytes as usize)?;
            return Ok(Some(sockopt::socket_recv_buffer_size(socket)? as u64));
        }
        Setting::SendBuffer(bytes) => {
            sockopt::set_socket_send_buffer_size(socket, *bytes as usize)?;
            return Ok(Some(sockopt::socket_send_buffer_size(socket)? as u64));
        }
    }
    Ok(None)
}

fn address(name: rustix::net::SocketAddrAny) -> io::Result<SocketAddr> {
    SocketAddr::try_from(name).map_err(|_| io::Error::other("not an IP address"))
}

fn event(op: Op, start: Instant, end: Instant) -> Event {
    Event { op, start_ns: start.as_nanos(), end_ns: end.as_nanos(), bytes: None, offset: None, note: None }
}
