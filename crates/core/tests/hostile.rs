//! How much memory can a capture make one connection take? Its documented bounds, whatever is sent.
//!
//! Each shape is fed three times as long as it takes to fill every bound, and must hold no more at the end
//! than after its first third.

use std::alloc::System;
use std::sync::Mutex;

use cap::Cap;
use tcpwhy_core::report::Report;
use tcpwhy_core::{Analysis, Listing, Mark, Options, Role};
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, SackBlock, Segment, Seq, TcpOptions, Timestamps};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);
/// The allocator counts for all threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const CLIENT: Endpoint = Endpoint::v4([10, 0, 0, 1], 40_000);
const SERVER: Endpoint = Endpoint::v4([10, 0, 0, 2], 80);
/// Two directions of 2048 segments and 2048 acknowledgements of less than 100 bytes, and what does not count.
const CONNECTION_MAX: usize = 1 << 20;
/// The segments of an epoch, which are processed at its end, and state kept until their connections have
/// numbers.
const EPOCH_MAX: usize = (1 << 16) * (size_of::<Segment>() + 32);
const PACKETS: u64 = 400_000;

fn packet(n: u64, from: Endpoint, seq: u32, len: u32) -> Segment {
    Segment {
        packet: n,
        at: Instant::from_nanos(1_000_000_000 + n as i64 * 10_000),
        src: from,
        dst: if from == CLIENT { SERVER } else { CLIENT },
        seq: Seq(seq),
        ack: Seq(1),
        window: 1024,
        flags: Flags(Flags::ACK),
        payload_len: len,
        options: TcpOptions::default(),
        ip_id: None,
        ttl: 64,
        damaged: false,
    }
}

/// Feeds a shape and returns the report.
fn endure(name: &str, shape: impl Fn(u64) -> Segment) -> Report {
    let _alone = ONE_AT_A_TIME.lock();
    let before = ALLOCATOR.allocated();
    let mut analysis = Analysis::new(Options { listing: Listing::None, ..Options::default() });
    let mut early = 0;
    let mut most = 0;
    for n in 1..=PACKETS {
        analysis.on_segment(&shape(n));
        if n % 1_000 == 0 {
            let held = ALLOCATOR.allocated().saturating_sub(before);
            most = most.max(held);
            if n <= PACKETS / 3 {
                early = most;
            }
        }
    }
    assert!(most < CONNECTION_MAX + EPOCH_MAX, "{name}: {most} bytes held");
    assert!(most <= early + early / 4 + 4_096, "{name}: grows from {early} to {most} bytes");
    let report = analysis.finish();
    let sum: Duration = report.bill.iter().map(|line| line.ns).sum();
    assert_eq!(sum, report.elapsed, "{name}");
    assert!(report.bill.iter().all(|line| line.ns.is_positive()), "{name}");
    report
}

/// Numbers without a pattern, the same each time.
fn scatter(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn ten_thousand_gaps() {
    endure("a gap behind each segment", |n| packet(n, CLIENT, n as u32 * 3_000, 1_448));
}

#[test]
fn endless_disorder() {
    endure("backwards", |n| packet(n, CLIENT, (u64::from(u32::MAX) - n * 1_448) as u32, 1_448));
    endure("anywhere", |n| packet(n, CLIENT, scatter(n) as u32, 1_448));
    endure("in one window", |n| {
        packet(n, CLIENT, scatter(n) as u32 % 1_000_000, 1 + scatter(n) as u32 % 1_448)
    });
}

#[test]
fn a_million_sack_blocks() {
    endure("SACK", |n| {
        let mut ack = packet(n, if n.is_multiple_of(4) { SERVER } else { CLIENT }, n as u32, 100);
        if n.is_multiple_of(4) {
            ack = packet(n, SERVER, 1, 0);
        }
        for i in 0..4 {
            let start = Seq(scatter(4 * n + i) as u32);
            ack.options.push_sack(SackBlock { start, end: start + (scatter(n) as u32 % 5_000) });
        }
        ack
    });
}

#[test]
fn segments_of_one_byte() {
    endure("never acknowledged", |n| packet(n, CLIENT, n as u32, 1));
    endure("acknowledged by the thousand", |n| {
        let from = if n.is_multiple_of(1_000) { SERVER } else { CLIENT };
        Segment { ack: Seq(n as u32), ..packet(n, from, n as u32, u32::from(from == CLIENT)) }
    });
}

#[test]
fn the_same_bytes_again_and_again() {
    endure("retransmissions", |n| packet(n, CLIENT, (n % 2_000) as u32 * 1_448, 1_448));
    endure("keep-alives", |n| packet(n, CLIENT, 1, u32::from(n == 1)));
}

/// Looking up a retransmitted segment takes no longer however many segments are in flight.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn a_retransmission_costs_the_same_in_any_flight() {
    let took = |flight: u64| {
        let _alone = ONE_AT_A_TIME.lock();
        let run = || {
            let begin = std::time::Instant::now();
            let mut analysis = Analysis::new(Options::default());
            for n in 1..=60_000 {
                let which = if n <= flight { n } else { 1 + scatter(n) % flight };
                // So far apart that none is taken for a packet captured twice.
                let at = Instant::from_nanos(n as i64 * 5_000_000);
                analysis.on_segment(&Segment { at, ..packet(n, CLIENT, which as u32 * 1_448, 1_448) });
            }
            analysis.finish();
            begin.elapsed()
        };
        (0..7).map(|_| run()).min().unwrap_or_default()
    };
    let (short, long) = (took(20), took(2_000));
    assert!(long < short * 6, "{short:?} among 20 segments, {long:?} among 2,000");
}

/// A message of ten bytes that begins here.
fn mark(seq: u32, role: Role, id: Option<u64>) -> Mark {
    Mark {
        seq: Seq(seq),
        end: Some(Seq(seq + 10)),
        role,
        id,
        first: true,
        last: true,
        by_peer: false,
        session: false,
        released: false,
        credit: None,
    }
}

/// Looking up a request takes no longer with a thousand requests waiting for their replies.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn a_question_costs_the_same_in_any_pipeline() {
    // This many requests, then a reply to one of them.
    let took = |questions: u64, acks: bool| {
        let _alone = ONE_AT_A_TIME.lock();
        let run = || {
            let begin = std::time::Instant::now();
            let mut analysis = Analysis::new(Options::default());
            let (mut asked, mut answered) = (1, 1);
            for n in 1..=60_000 {
                let is_answer = n % (questions + 1) == 0;
                let ack = Seq(if acks && !is_answer { answered } else { 1 });
                let (from, role, seq) = if is_answer {
                    (SERVER, Role::Answers, &mut answered)
                } else {
                    (CLIENT, Role::Asks, &mut asked)
                };
                analysis.on_marked(&Segment { ack, ..packet(n, from, *seq, 10) }, &[mark(*seq, role, None)]);
                *seq += 10;
            }
            analysis.finish();
            begin.elapsed()
        };
        (0..7).map(|_| run()).min().unwrap_or_default()
    };
    let (short, long, unread) = (took(2, true), took(90, true), took(2, false));
    assert!(long < short * 6, "{short:?} with one that waits, {long:?} with a thousand");
    assert!(unread < short * 6, "{short:?} with one that waits, {unread:?} with answers that nobody has");
}

/// Nor with a thousand numbered ones, whichever numbers come and whichever are answered.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn a_number_costs_the_same_among_many() {
    // This many requests with falling numbers, then as many replies, the latest first; or replies to no
    // request.
    let took = |questions: u64, are_known: bool| {
        let _alone = ONE_AT_A_TIME.lock();
        let run = || {
            let begin = std::time::Instant::now();
            let mut analysis = Analysis::new(Options::default());
            let (mut asked, mut answered) = (1, 1);
            for n in 1..=60_000 {
                let (round, turn) = (n / (2 * questions), n % (2 * questions));
                let (acked, unknown) = ([answered, asked], if are_known { 0 } else { 10_000_000 });
                let (from, role, seq, ack, id) = if turn < questions {
                    (CLIENT, Role::Asks, &mut asked, acked[0], turn)
                } else {
                    (SERVER, Role::Answers, &mut answered, acked[1], 2 * questions - 1 - turn + unknown)
                };
                let id = u64::from(u32::MAX) - round * questions - id;
                let ack = Seq(ack);
                analysis
                    .on_marked(&Segment { ack, ..packet(n, from, *seq, 10) }, &[mark(*seq, role, Some(id))]);
                *seq += 10;
            }
            analysis.finish();
            begin.elapsed()
        };
        (0..7).map(|_| run()).min().unwrap_or_default()
    };
    let (few, many, unknown) = (took(4, true), took(1_000, true), took(1_000, false));
    assert!(many < few * 3, "{few:?} among 4, {many:?} among 1,000");
    assert!(unknown < few * 3, "{few:?} among 4, {unknown:?} that answer none of 1,000");
}

#[test]
fn windows_that_lie() {
    endure("windows", |n| {
        let syn = match n {
            1 => Flags::SYN,
            2 => Flags::SYN | Flags::ACK,
            _ => Flags::ACK,
        };
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let mut segment = packet(n, from, n as u32 * 700, if n > 2 { scatter(n) as u32 % 1_448 } else { 0 });
        segment.flags = Flags(syn);
        segment.window = scatter(n) as u16;
        segment.ack = Seq(scatter(n + 7) as u32);
        if n <= 2 {
            segment.options.window_scale = Some(255);
            segment.options.mss = Some(0);
        }
        segment
    });
}

/// Four SACK blocks whose total exceeds 32 bits, after an acknowledgement of data in flight.
#[test]
fn sack_blocks_whose_sum_is_more_than_a_number_holds() {
    endure("sums of SACK", |n| {
        let from = if n.is_multiple_of(3) { SERVER } else { CLIENT };
        let mut segment = packet(n, from, 1 + n as u32 / 3 * 100, if from == CLIENT { 100 } else { 0 });
        segment.ack = Seq(1 + n as u32 / 9 * 100);
        for i in 0..4 {
            let start = segment.ack + i;
            segment.options.push_sack(SackBlock { start, end: start + (i32::MAX as u32 - i) });
        }
        segment
    });
}

/// Handshakes whose MSS has no room for a segment's options, or for a byte, and segments longer than any
/// window.
#[test]
fn segments_that_are_larger_than_their_mss_and_any_window() {
    for mss in [0, 1, 11, 12, 13, 40] {
        endure(&format!("MSS {mss}"), |n| {
            let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
            let mut segment = packet(n, from, 1 + n as u32 / 2 * 7, 0);
            segment.flags =
                Flags([Flags::ACK, Flags::SYN, Flags::SYN | Flags::ACK][if n < 3 { n as usize } else { 0 }]);
            segment.options.timestamps = Some(Timestamps { val: n as u32, ecr: n as u32 / 2 });
            if n <= 2 {
                segment.options.mss = Some(mss);
                segment.options.window_scale = Some(14);
            } else {
                segment.payload_len = [1, 7, 65_495, 1_448, 8 * 65_536 - 60][scatter(n) as usize % 5];
                segment.window = [0, 1, u16::MAX][scatter(n + 1) as usize % 3];
                segment.ack = Seq(1 + n as u32 / 4 * 7);
            }
            segment
        });
    }
}

/// Segments that begin half the sequence space after the window they are allowed.
#[test]
fn segments_as_far_behind_a_window_as_there_is() {
    endure("behind a window", |n| {
        let client = Endpoint { port: 1_024 + (n / 4 % 100) as u16, ..CLIENT };
        let begin = (n / 400) as u32 * 7;
        let far = Seq(begin) + (i32::MAX as u32 - 100);
        let (seq, flags) = match n % 4 {
            0 => (Seq(begin), Flags::SYN),
            1 => return Segment { dst: client, ack: Seq(begin), window: 0, ..packet(n, SERVER, 1, 0) },
            2 => (far, Flags::ACK),
            _ => (far + 50, Flags::ACK),
        };
        let len = [0, 0, 50, 1_448][n as usize % 4];
        Segment { src: client, seq, flags: Flags(flags), ..packet(n, CLIENT, 0, len) }
    });
}

#[test]
fn times_at_the_edges() {
    const EDGES: [i64; 6] = [i64::MIN, i64::MAX, 0, i64::MIN + 1, i64::MAX - 1, -1];
    endure("clock", |n| {
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let mut segment = packet(n, from, n as u32 * 100, 100);
        segment.at = Instant::from_nanos(EDGES[(scatter(n) % 6) as usize]);
        segment.ack = Seq((n as u32).saturating_sub(1) * 100);
        segment.options.timestamps = Some(Timestamps { val: scatter(n) as u32, ecr: scatter(n + 1) as u32 });
        segment
    });
    endure("clock running from the first to the last moment", |n| {
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let step = i64::MAX / PACKETS as i64 * 2;
        let at = Instant::from_nanos(i64::MIN.saturating_add(step.saturating_mul(n as i64)));
        Segment { at, ack: Seq((n as u32 - 1) * 100), ..packet(n, from, n as u32 * 100, 100) }
    });
}

/// Nothing is kept of unlisted exchanges, of messages without a reply, or of stragglers.
#[test]
fn exchanges_without_end() {
    let report = endure("exchanges", |n| {
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let own = (n as u32).div_ceil(2) * 100;
        Segment { ack: Seq(n as u32 / 2 * 100 + 100), ..packet(n, from, own, 100) }
    });
    assert_eq!(report.exchanges, PACKETS / 2);
    endure("a stream with pauses", |n| {
        let at = Instant::from_nanos(n as i64 * 30_000_000);
        let data = packet(n, CLIENT, n as u32 * 100, 100);
        Segment { at, flags: Flags(Flags::ACK | Flags::PSH), ..data }
    });
}

#[test]
fn stragglers_behind_an_end_while_the_clock_stands() {
    endure("stragglers", |n| {
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let flags = Flags(if n <= 4 { Flags::FIN | Flags::ACK } else { Flags::ACK });
        let at = Instant::from_nanos(0);
        Segment {
            at,
            flags,
            ack: Seq(101),
            window: n as u16,
            ..packet(n, from, if n <= 2 { 100 } else { 101 }, 0)
        }
    });
}

/// State of finished connections while the clock stands still: no more than the memory limit has room for.
#[test]
fn finished_connections_while_the_clock_stands() {
    let _alone = ONE_AT_A_TIME.lock();
    let before = ALLOCATOR.allocated();
    let mut analysis = Analysis::new(Options { memory: 64_000_000, ..Options::default() });
    let mut most = 0;
    for n in 0..2 * PACKETS {
        let src = Endpoint::v4((n as u32 / 2).to_be_bytes(), 40_000);
        let flags = Flags(if n.is_multiple_of(2) { Flags::SYN } else { Flags::RST });
        let at = Instant::from_nanos(0);
        analysis.on_segment(&Segment { src, flags, at, ..packet(n + 1, CLIENT, 1, 0) });
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(most < 40 << 20, "{most} bytes held");
    let report = analysis.finish();
    assert!(report.notes.iter().any(|note| note.kind == "finished-over-limit"), "{:?}", report.notes);
}

/// The packets and exchanges of a listed connection: the first ones, as far as there is room; the rest is
/// counted.
#[test]
fn a_ladder_without_end() {
    const MEMORY: usize = 64_000_000;
    let _alone = ONE_AT_A_TIME.lock();
    let before = ALLOCATOR.allocated();
    let options = Options { listing: Listing::Connection(1), memory: MEMORY, ..Options::default() };
    let mut analysis = Analysis::new(options);
    for n in 1..=PACKETS {
        let from = if n.is_multiple_of(2) { SERVER } else { CLIENT };
        let own = (n as u32).div_ceil(2) * 100;
        analysis.on_segment(&Segment { ack: Seq(n as u32 / 2 * 100 + 100), ..packet(n, from, own, 100) });
    }
    let report = analysis.finish();
    let held = ALLOCATOR.allocated().saturating_sub(before);
    assert!(held < MEMORY, "{held} bytes held");
    let listed = &report.connections[0];
    assert!(listed.ladder_omitted > 0 && listed.ladder.last().is_some_and(|last| last.packet > 10_000));
    assert_eq!(listed.ladder.len() as u64 + listed.ladder_omitted, PACKETS);
    assert_eq!(listed.exchanges.len() as u64 + report.omitted.exchanges, report.exchanges);
}

/// A port reused again and again: each connection ends the one before it.
#[test]
fn one_port_used_again_and_again() {
    let report = endure("incarnations", |n| Segment {
        flags: Flags(Flags::SYN),
        ..packet(n, CLIENT, scatter(n) as u32, 0)
    });
    assert_eq!(report.segments, PACKETS);
}

/// Segments in flight count: this many connections leave no room for flights of two thousand segments on
/// each.
#[test]
fn a_flood_of_flights() {
    const LIMIT: usize = 1_000;
    const CONNECTIONS: u64 = 500;
    let _alone = ONE_AT_A_TIME.lock();
    let before = ALLOCATOR.allocated();
    let mut analysis = Analysis::new(Options { max_connections: LIMIT, ..Options::default() });
    let mut most = 0;
    for n in 1..=2 * PACKETS {
        let client = Endpoint { port: 1_024 + (n % CONNECTIONS) as u16, ..CLIENT };
        let data = packet(n, CLIENT, (n / CONNECTIONS) as u32 * 3_000, 1_448);
        analysis.on_segment(&Segment { src: client, ..data });
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(most < 2 * LIMIT * 4_096 + (16 << 20), "{most} bytes held");
    let report = analysis.finish();
    assert!(report.notes.iter().any(|note| note.kind == "connections-over-limit"), "{:?}", report.notes);
}

/// SYNs, each from a new address: the table keeps to its limit, and reports what it discarded.
#[test]
fn a_flood_of_connections() {
    const LIMIT: usize = 1_000;
    let _alone = ONE_AT_A_TIME.lock();
    let before = ALLOCATOR.allocated();
    let mut analysis = Analysis::new(Options { max_connections: LIMIT, ..Options::default() });
    let mut most = 0;
    for n in 1..=PACKETS {
        let src = Endpoint::v4((n as u32).to_be_bytes(), 40_000);
        analysis.on_segment(&Segment { src, flags: Flags(Flags::SYN), ..packet(n, CLIENT, 1, 0) });
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    // An untouched connection is a few kilobytes; pairs of hosts are kept besides.
    assert!(most < 2 * LIMIT * 4_096 + (32 << 20), "{most} bytes held");
    let report = analysis.finish();
    assert_eq!(report.segments, PACKETS);
    assert!(!report.notes.is_empty(), "what was given up is said");
}

/// A thousand connections whose replies take three hours each, repeatedly: after 860 rounds the total
/// overflows.
#[test]
fn sums_that_end_say_so() {
    const CROWD: u64 = 1_000;
    let _alone = ONE_AT_A_TIME.lock();
    for (rounds, ends) in [(10, false), (860, true)] {
        let mut analysis = Analysis::new(Options { listing: Listing::None, ..Options::default() });
        for n in 0..2 * rounds * CROWD {
            let (half, round, who) = (n / CROWD, (n / CROWD / 2) as u32, n % CROWD);
            let asks = half.is_multiple_of(2);
            let client = Endpoint { port: 40_000 + who as u16, ..CLIENT };
            let (src, dst) = if asks { (client, SERVER) } else { (SERVER, client) };
            let hours = i64::from(round) * 10_799 + if asks { 0 } else { 10_798 };
            let at = Instant::from_nanos(1_000_000_000 + who as i64 * 1_000) + Duration::from_secs(hours);
            let sent = |count: u32| Seq(1 + 100 * count);
            let (seq, ack) = (sent(round), sent(if asks { round } else { round + 1 }));
            let flags = Flags(Flags::ACK | Flags::PSH);
            analysis.on_segment(&Segment { src, dst, at, seq, ack, flags, ..packet(n + 1, CLIENT, 0, 100) });
        }
        let report = analysis.finish();
        assert_eq!(report.elapsed == Duration::MAX, ends, "{}", report.elapsed);
        assert_eq!(report.notes.iter().any(|note| note.kind == "sums-over-limit"), ends);
        assert_eq!(report.bill.iter().map(|line| line.ns).sum::<Duration>(), report.elapsed);
    }
}

/// Nor does an acknowledgement that ends one of a thousand requests.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn an_acknowledgement_costs_the_same_among_many_questions() {
    // This many waiting requests; then repeatedly another one, its reply, and the reply's acknowledgement.
    let took = |questions: u64, rounds: u64| {
        let begin = std::time::Instant::now();
        let mut analysis = Analysis::new(Options::default());
        let (mut asked, mut told, mut n) = (1, 1, 0);
        let mut pass = |from, seq: u32, ack, role: Option<Role>, id: u32| {
            n += 1;
            let mark = role.map(|role| mark(seq, role, Some(u64::from(id))));
            let len = if mark.is_some() { 10 } else { 0 };
            analysis.on_marked(&Segment { ack: Seq(ack), ..packet(n, from, seq, len) }, mark.as_slice());
        };
        for round in 0..questions + rounds {
            pass(CLIENT, asked, told, Some(Role::Asks), asked);
            asked += 10;
            if round >= questions {
                pass(SERVER, told, asked, Some(Role::Answers), asked - 10);
                told += 10;
                pass(CLIENT, asked, told, None, 0);
            }
        }
        analysis.finish();
        begin.elapsed()
    };
    let _alone = ONE_AT_A_TIME.lock();
    let [few, many] = [4, 1_000].map(|questions| {
        let [short, long] = [1_000, 16_000].map(|rounds| (0..7).map(|_| took(questions, rounds)).min());
        long.unwrap_or_default().saturating_sub(short.unwrap_or_default())
    });
    assert!(many < few * 2, "{few:?} among 4, {many:?} among 1,000");
}
