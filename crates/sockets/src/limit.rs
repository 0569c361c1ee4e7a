//! What limits a socket now? One answer in words, with its evidence.
//!
//! The kernel keeps three clocks for each sender (tcp_chrono_start, net/ipv4/tcp_output.c): how long it had
//! data to send or in flight, for how much of that the peer's window stopped it, and for how much its own
//! send buffer did. They show the past; the rest is derived from the socket's current state.

use std::time::Duration;

use crate::options::Options;
use crate::socket::{Memory, Socket, State, Timer};
use crate::watch::Lately;

/// What limits a socket. Named like a cause if there is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Nothing to send, and nothing unread.
    Idle,
    /// The path does not answer: the retransmission timer has expired this often in a row.
    Unanswered {
        /// Number of expirations.
        timeouts: u8,
        /// Time since the last ACK.
        silent: Duration,
    },
    /// The peer's window is closed, and is probed.
    ZeroWindow {
        /// Probes in a row without an answer.
        probes: u8,
    },
    /// The application here does not read the data that have arrived.
    Reader {
        /// Unread bytes.
        unread: u32,
    },
    /// The peer's window, for this share of the time.
    PeerWindow {
        /// 0 to 1.
        share: f64,
        /// The window, bytes.
        window: Option<u32>,
    },
    /// The own send buffer, for this share of the time.
    SendBuffer {
        /// 0 to 1.
        share: f64,
        /// Its size limit, bytes.
        buffer: u32,
        /// Whether the application fixed it.
        locked: Option<bool>,
    },
    /// A small write is held until the peer acknowledges the previous one.
    Nagle {
        /// Bytes held.
        held: u32,
        /// Certainly held by Nagle: TCP_NODELAY is off. Otherwise it only looks so.
        certain: bool,
    },
    /// A partial segment is held by TCP_CORK.
    Cork {
        /// Bytes held.
        held: u32,
        /// TCP_CORK is set. Otherwise MSG_MORE has the same effect, or it only looks so.
        certain: bool,
    },
    /// Losses are being repaired.
    Repair {
        /// Segments retransmitted in the interval.
        retransmitted: u32,
        /// Segments with data, including those.
        of: u32,
    },
    /// The congestion window is used up.
    CongestionWindow {
        /// Its size in segments.
        segments: u32,
        /// It is below the threshold, and grows each round trip.
        slow_start: bool,
    },
    /// There is more to send, and the windows are open: pacing, or the path.
    Path {
        /// Bytes waiting.
        waiting: u32,
    },
    /// It waits for ACKs for this share of the time, and for its application otherwise.
    RoundTrips {
        /// 0 to 1.
        share: f64,
        /// The smoothed round trip.
        round_trip: Duration,
    },
    /// The application has not closed, although the peer has.
    NotClosed,
    /// More connections are waiting than the application accepts.
    Backlog {
        /// Connections waiting.
        waiting: u32,
        /// Maximum that may wait.
        most: u32,
    },
    /// Listens, with no connection waiting.
    Listens,
    /// The connection is being set up or closed.
    Passing,
}

/// A window that stops a sender for a smaller share of the time does not limit it.
const SHARE_MIN: f64 = 0.2;
/// A sender is busy from this share of the time on.
const BUSY_MIN: f64 = 0.02;

/// The limit of `socket`, given what happened `lately` and, if known, its options.
pub fn of(socket: &Socket, lately: &Lately, options: Option<&Options>) -> Limit {
    match socket.state {
        State::Listen if socket.receive_queue > 0 && socket.receive_queue >= socket.send_queue => {
            Limit::Backlog { waiting: socket.receive_queue, most: socket.send_queue }
        }
        State::Listen => Limit::Listens,
        State::Established => transfer(socket, lately, options),
        State::CloseWait => match transfer(socket, lately, options) {
            Limit::Idle => Limit::NotClosed,
            limit => limit,
        },
        State::FinWait1 | State::FinWait2 | State::LastAck | State::Closing => {
            match transfer(socket, lately, options) {
                Limit::Idle | Limit::RoundTrips { .. } => Limit::Passing,
                limit => limit,
            }
        }
        State::SynSent => unanswered(socket).unwrap_or(Limit::Passing),
        _ => Limit::Passing,
    }
}

fn transfer(socket: &Socket, lately: &Lately, options: Option<&Options>) -> Limit {
    let stopped = |part: Duration| Some(lately.share(part)).filter(|share| *share >= SHARE_MIN);
    // The current state first, then what took most of the time.
    None.or_else(|| unanswered(socket))
        .or_else(|| zero_window(socket))
        .or_else(|| unread(socket, lately))
        .or_else(|| {
            let (window, buffer) = (stopped(lately.peer_window), stopped(lately.send_buffer));
            match (window, buffer) {
                (Some(share), other) if other.is_none_or(|other| share >= other) => {
                    Some(Limit::PeerWindow { share, window: socket.info.snd_wnd })
                }
                (_, Some(share)) => Some(Limit::SendBuffer {
                    share,
                    buffer: socket.memory.send_max,
                    locked: options.and_then(|options| options.send_buffer_locked),
                }),
                _ => None,
            }
        })
        .or_else(|| held(socket, options))
        .or_else(|| repair(socket, lately))
        .or_else(|| window_used_up(socket))
        .or_else(|| waiting(socket))
        .unwrap_or_else(|| {
            let share = lately.share(lately.busy);
            match lately.span {
                Some(_) if share >= BUSY_MIN => {
                    let round_trip = Duration::from_micros(socket.info.rtt.unwrap_or(0).into());
                    Limit::RoundTrips { share, round_trip }
                }
                _ => Limit::Idle,
            }
        })
}

fn unanswered(socket: &Socket) -> Option<Limit> {
    let timeouts = socket.info.retransmits.unwrap_or(0);
    let silent = Duration::from_millis(socket.info.last_ack_recv.unwrap_or(0).into());
    (timeouts > 0 && matches!(socket.timer, Some(Timer::Retransmit(_)) | None))
        .then_some(Limit::Unanswered { timeouts, silent })
}

fn zero_window(socket: &Socket) -> Option<Limit> {
    let info = &socket.info;
    let probed = info.probes.unwrap_or(0) > 0 || matches!(socket.timer, Some(Timer::Probe(_)));
    (probed && info.snd_wnd == Some(0)).then_some(Limit::ZeroWindow { probes: info.probes.unwrap_or(0) })
}

/// Bytes were unread at both looks, and either there are so many that the window suffers, or none was read.
fn unread(socket: &Socket, lately: &Lately) -> Option<Limit> {
    let before = lately.receive_queue_before?;
    let unread = socket.receive_queue;
    let stuck = u64::from(unread) >= u64::from(before) + lately.bytes_received;
    let full = socket.memory.receive_allocated >= socket.memory.receive_max / 2;
    (before > 0 && unread > 0 && (stuck || full)).then_some(Limit::Reader { unread })
}

/// Less than a segment waits although nothing visible prevents sending it.
fn held(socket: &Socket, options: Option<&Options>) -> Option<Limit> {
    let info = &socket.info;
    let (held, mss) = (info.notsent_bytes?, info.snd_mss?);
    if held == 0 || held >= mss {
        return None;
    }
    let corked = options.and_then(|options| options.cork);
    let nodelay = options.and_then(|options| options.nodelay);
    match info.unacked? {
        // A corked socket holds data that a later write may fill up, whatever is in flight.
        _ if corked == Some(true) => Some(Limit::Cork { held, certain: true }),
        // Nothing is in flight, and the window is not smaller than this.
        0 if info.snd_wnd.is_none_or(|window| window >= held) => Some(Limit::Cork { held, certain: false }),
        0 => None,
        unacked if unacked < info.snd_cwnd? && nodelay != Some(true) => {
            Some(Limit::Nagle { held, certain: nodelay == Some(false) })
        }
        _ => None,
    }
}

fn repair(socket: &Socket, lately: &Lately) -> Option<Limit> {
    let (retransmitted, of) = (lately.retransmitted, lately.data_segments_out);
    lately.span?;
    // TCP_CA_Recovery and TCP_CA_Loss.
    let under_way = matches!(socket.info.ca_state, Some(3 | 4));
    let many = retransmitted > 0 && f64::from(retransmitted) >= 0.02 * f64::from(of);
    (retransmitted > 0 && (under_way || many)).then_some(Limit::Repair { retransmitted, of })
}

fn window_used_up(socket: &Socket) -> Option<Limit> {
    let info = &socket.info;
    let (unacked, segments) = (info.unacked?, info.snd_cwnd?);
    let in_flight = unacked.saturating_sub(info.sacked.unwrap_or(0)).saturating_sub(info.lost.unwrap_or(0));
    (info.notsent_bytes? > 0 && in_flight + info.retrans.unwrap_or(0) >= segments).then(|| {
        Limit::CongestionWindow {
            segments,
            slow_start: info.snd_ssthresh.is_some_and(|ssthresh| segments < ssthresh),
        }
    })
}

fn waiting(socket: &Socket) -> Option<Limit> {
    let waiting = socket.info.notsent_bytes?;
    (waiting >= socket.info.snd_mss? && socket.info.unacked? > 0).then_some(Limit::Path { waiting })
}

impl Limit {
    /// The corresponding cause of bills, for `tcpwhy explain`.
    pub const fn cause(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unanswered { .. } => "rto",
            Self::ZeroWindow { .. } | Self::Reader { .. } => "receiver-think",
            Self::PeerWindow { .. } => "receive-window",
            Self::SendBuffer { .. } => "send-buffer",
            Self::Nagle { .. } => "nagle",
            Self::Cork { .. } => "cork",
            Self::Repair { .. } => "loss",
            Self::CongestionWindow { slow_start: true, .. } => "slow-start",
            Self::CongestionWindow { slow_start: false, .. } => "congestion-window",
            Self::RoundTrips { .. } => "round-trip",
            _ => return None,
        })
    }

    /// A name for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::ZeroWindow { .. } => "zero-window",
            Self::Reader { .. } => "reader",
            Self::Path { .. } => "path",
            Self::NotClosed => "not-closed",
            Self::Backlog { .. } => "backlog",
            Self::Listens => "listens",
            Self::Passing => "passing",
            Self::Unanswered { .. } => "unanswered",
            _ => match self.cause() {
                Some(cause) => cause,
                None => "unknown",
            },
        }
    }

    /// What an operator should look at first: higher is worse, 0 is no problem.
    pub fn weight(&self) -> u32 {
        let by_share = |base: u32, share: f64| base + (share * 1_000.0) as u32;
        match self {
            Self::Unanswered { timeouts, .. } => 8_000 + u32::from(*timeouts),
            Self::ZeroWindow { .. } => 7_500,
            Self::Backlog { .. } => 7_400,
            Self::Nagle { .. } | Self::Cork { .. } => 7_000,
            Self::PeerWindow { share, .. } | Self::SendBuffer { share, .. } => by_share(5_000, *share),
            Self::Reader { .. } => 4_800,
            Self::Repair { .. } => 4_500,
            Self::CongestionWindow { .. } => 4_000,
            Self::Path { .. } => 3_000,
            Self::NotClosed => 2_500,
            Self::RoundTrips { share, .. } => by_share(1_000, *share),
            Self::Passing => 10,
            Self::Listens | Self::Idle => 0,
        }
    }

    /// The answer in words.
    pub fn words(&self) -> String {
        match self {
            Self::Idle => "nothing to send".to_owned(),
            Self::Unanswered { timeouts, silent } => {
                let times = if *timeouts == 1 { "once".to_owned() } else { format!("{timeouts} times") };
                format!(
                    "the path or the peer: retransmitted {times} by the timer, no packet received for {}",
                    time(*silent)
                )
            }
            Self::ZeroWindow { .. } => {
                "the peer's application does not read: its window is closed".to_owned()
            }
            Self::Reader { unread } => {
                format!("the application here does not read: {} unread", bytes(*unread))
            }
            Self::PeerWindow { share, window } => {
                let size = window.map_or_else(String::new, |window| format!(" of {}", bytes(window)));
                format!("the peer's window{size}, {}", percent(*share))
            }
            Self::SendBuffer { share, buffer, locked } => {
                let fixed = if *locked == Some(true) { ", fixed by SO_SNDBUF" } else { "" };
                format!("the send buffer of {}{fixed}, {}", bytes(*buffer), percent(*share))
            }
            Self::Nagle { held, certain } => {
                let how = if *certain { "" } else { "probably " };
                format!("{how}Nagle: {} wait for the peer's acknowledgement", bytes(*held))
            }
            Self::Cork { held, certain: true } => format!("TCP_CORK: {} are held", bytes(*held)),
            Self::Cork { held, certain: false } => format!("TCP_CORK or MSG_MORE: {} are held", bytes(*held)),
            Self::Repair { retransmitted, of } => {
                format!("losses: {retransmitted} of {of} segments retransmitted")
            }
            Self::CongestionWindow { segments, slow_start } => {
                let how = if *slow_start { ", in slow start" } else { "" };
                format!("the congestion window of {segments} segments{how}")
            }
            Self::Path { waiting } => format!("the path or pacing: {} wait", bytes(*waiting)),
            Self::RoundTrips { share, round_trip } => format!(
                "round trips of {}, {}; the application otherwise",
                time(*round_trip),
                percent(*share)
            ),
            Self::NotClosed => "the application: the peer has closed, this end has not".to_owned(),
            Self::Backlog { waiting, most } => {
                format!("the application does not accept: {waiting} wait, room for {most}")
            }
            Self::Listens => "nothing waits".to_owned(),
            Self::Passing => "opening or closing".to_owned(),
        }
    }
}

/// The evidence for the answer, and other useful facts: name and value.
pub fn evidence(socket: &Socket, lately: &Lately) -> Vec<(&'static str, String)> {
    let info = &socket.info;
    let micros = |us: Option<u32>| us.map(|us| time(Duration::from_micros(us.into())));
    let mut all = Vec::new();
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
    if socket.state == State::Listen {
        add("waiting", Some(format!("{} of {}", socket.receive_queue, socket.send_queue)));
        add("dropped", Some(socket.memory.drops.to_string()));
        return all;
    }
    let of = lately.span.map_or_else(|| "of its life".to_owned(), |span| format!("in {}", time(span)));
    add(
        "sending",
        Some(format!(
            "busy {}, stopped by the peer's window {}, by the send buffer {} {of}",
            time(lately.busy),
            time(lately.peer_window),
            time(lately.send_buffer)
        )),
    );
    add("acknowledged", Some(format!("{} {of}", big(lately.bytes_acked))));
    add("received", Some(format!("{} {of}", big(lately.bytes_received))));
    add("retransmitted", Some(format!("{} of {} segments {of}", lately.retransmitted, lately.segments_out)));
    add(
        "round trip",
        micros(info.rtt).zip(micros(info.min_rtt)).map(|(now, min)| format!("{now}, at least {min}")),
    );
    add(
        "delivery",
        info.delivery_rate.map(|rate| {
            let by = if info.delivery_flags.is_some_and(|flags| flags & 1 != 0) {
                ", limited by the application"
            } else {
                ""
            };
            format!("{}/s{by}", big(rate))
        }),
    );
    add(
        "in flight",
        info.unacked.zip(info.snd_cwnd).map(|(unacked, window)| {
            let threshold = info.snd_ssthresh.filter(|ssthresh| *ssthresh < i32::MAX as u32);
            let grows = threshold.map_or_else(String::new, |ssthresh| format!(", threshold {ssthresh}"));
            format!(
                "{unacked} of the {window} segments that the congestion window allows{grows} ({})",
                socket.congestion.name()
            )
        }),
    );
    add("not sent", info.notsent_bytes.map(|held| format!("{held} B")));
    add("unread", Some(format!("{} B", socket.receive_queue)));
    add(
        "windows",
        info.snd_wnd.zip(info.rcv_wnd).map(|(peer, own)| format!("the peer's {peer} B, ours {own} B")),
    );
    let Memory { receive_allocated, receive_max, send_queued, send_max, backlog, drops } = socket.memory;
    add(
        "memory",
        Some(format!(
            "receiving {receive_allocated} of {receive_max} B, sending {send_queued} of {send_max} B, backlog {backlog} B, {drops} dropped"
        )),
    );
    add(
        "timer",
        socket.timer.map(|timer| match timer {
            Timer::Retransmit(at) => format!("retransmits in {}", time(at)),
            Timer::KeepAlive(at) => format!("keep-alive in {}", time(at)),
            Timer::TimeWait => "time-wait".to_owned(),
            Timer::Probe(at) => format!("probes the window in {}", time(at)),
        }),
    );
    add(
        "acks",
        info.ato
            .filter(|ato| *ato > 0)
            .map(|ato| format!("delayed by up to {}", time(Duration::from_micros(ato.into())))),
    );
    all
}

fn percent(share: f64) -> String {
    format!("{:.0} % of the time", share * 100.0)
}

fn bytes(bytes: u32) -> String {
    big(bytes.into())
}

fn big(bytes: u64) -> String {
    let scaled = |unit: f64| bytes as f64 / unit;
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{:.1} kB", scaled(1e3)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1e6)),
        _ => format!("{:.1} GB", scaled(1e9)),
    }
}

fn time(span: Duration) -> String {
    let us = span.as_micros();
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}
