//! Reports built by hand: what an analysis of a known conversation has to report.

use tcpwhy_core::report::{
    Confidence, Connection, Detail, Exchange, Finding, Kind, Line, Note, Omitted, Pairing, Report, Rung,
    Servers, TotalLine, Trigger, Vantage,
};
use tcpwhy_core::{Cause, Side};
use tcpwhy_report::CaptureInfo;
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant};

pub(crate) const CLIENT: Endpoint = Endpoint::v4([10, 0, 0, 1], 40_000);
pub(crate) const SERVER: Endpoint = Endpoint::v4([10, 0, 0, 2], 8080);

fn us(us: i64) -> Duration {
    Duration::from_micros(us)
}

fn at(us: i64) -> Instant {
    Instant::from_nanos(1_700_000_000_000_000_000) + Duration::from_micros(us)
}

fn line(cause: Cause, sender: Side, span: Duration, evidence: &[u64], detail: Detail) -> Line {
    Line {
        cause,
        side: cause.side(sender),
        ns: span,
        confidence: Confidence::Certain,
        evidence: evidence.to_vec(),
        detail,
    }
}

fn total(cause: Cause, sender: Side, span: Duration, hits: u64) -> TotalLine {
    TotalLine { cause, side: cause.side(sender), ns: span, possible: Duration::ZERO, hits }
}

/// Forty exchanges of write(20), write(100), read(64) over a path of 0.1 ms: all but the first two wait 43.8 ms.
pub(crate) fn stall() -> Report {
    let held = Detail { held_bytes: Some(100), ack_delay: Some(us(43_700)), ..Detail::default() };
    let mut exchanges = vec![Exchange {
        n: 0,
        kind: Kind::Setup,
        initiator: Side::Client,
        by: None,
        start: at(0),
        elapsed: us(100),
        awaited: us(0),
        client_idle: Duration::ZERO,
        request_bytes: 0,
        reply_bytes: 0,
        packets: [1, 3],
        request: None,
        bill: vec![line(Cause::Handshake, Side::Client, us(100), &[1, 2], Detail::default())],
    }];
    let mut start = 1_000;
    for n in 1..=40_i64 {
        let mut bill = Vec::new();
        if n > 2 {
            let first = 4 * n as u64;
            bill.push(line(Cause::NagleDelayedAck, Side::Client, us(43_800), &[first, first + 1], held));
        }
        bill.push(line(Cause::RoundTrip, Side::Client, us(100), &[], Detail::default()));
        bill.push(line(Cause::ServerThink, Side::Server, us(20), &[], Detail::default()));
        let elapsed = bill.iter().map(|line| line.ns).sum();
        exchanges.push(Exchange {
            n: n as u64,
            kind: Kind::Exchange,
            initiator: Side::Client,
            by: Some(Pairing::OnlyOpen),
            start: at(start),
            elapsed,
            awaited: us(0),
            client_idle: us(5),
            request_bytes: 120,
            reply_bytes: 64,
            packets: [4 * n as u64, 4 * n as u64 + 3],
            request: None,
            bill,
        });
        start += elapsed.as_nanos() / 1_000 + 5;
    }
    let bill = vec![
        total(Cause::NagleDelayedAck, Side::Client, us(38 * 43_800), 38),
        total(Cause::RoundTrip, Side::Client, us(40 * 100), 40),
        total(Cause::ServerThink, Side::Server, us(40 * 20), 40),
        total(Cause::Handshake, Side::Client, us(100), 1),
    ];
    let rung = |packet, micros, from, offset, len, ack, flags, trigger, billed: &[(Cause, Duration)]| {
        let mut rung = Rung::new(packet, at(micros), from, Flags(flags));
        (rung.offset, rung.len, rung.seq) = (offset, len, offset as u32 + 1);
        (rung.window_field, rung.window_scale, rung.window) = (502, Some(7), 64_256);
        let since = billed.first().map(|_| if packet == 14 { 12 } else { packet - 1 });
        let rung = rung.acknowledging(ack, ack as u32 + 1).of_exchange(Some(3)).left_by(trigger);
        rung.having_waited(billed.iter().copied().collect(), since)
    };
    let third = exchanges[3].start;
    let base = (third - at(0)).as_nanos() / 1_000;
    let (push, ack) = (Flags::PSH | Flags::ACK, Flags::ACK);
    let ladder = vec![
        rung(12, base, Side::Client, 240, 20, 128, push, Trigger::Write, &[]),
        rung(13, base + 43_750, Side::Server, 128, 0, 260, ack, Trigger::Control, &[]),
        rung(
            14,
            base + 43_800,
            Side::Client,
            260,
            100,
            128,
            push,
            Trigger::Packet(13),
            &[(Cause::NagleDelayedAck, us(43_800))],
        ),
        rung(
            15,
            base + 43_920,
            Side::Server,
            128,
            64,
            360,
            push,
            Trigger::Packet(14),
            &[(Cause::RoundTrip, us(100)), (Cause::ServerThink, us(20))],
        ),
    ];
    Report {
        segments: 163,
        elapsed: bill.iter().map(|line| line.ns).sum(),
        by_clock: bill.iter().map(|line| line.ns).sum(),
        setups: 1,
        exchanges: 40,
        one_way: 0,
        subscriptions: 0,
        findings: vec![
            Finding {
                p99: us(44_100),
                max: us(44_100),
                without: Some(us(120)),
                evidence: vec![12, 13, 14],
                worst: (1, 3),
                detail: held,
                ..finding(Cause::NagleDelayedAck, Side::Client, us(43_800), 38, 40)
            },
            finding(Cause::RoundTrip, Side::Client, us(100), 40, 40),
            finding(Cause::ServerThink, Side::Server, us(20), 40, 40),
            finding(Cause::Handshake, Side::Client, us(100), 1, 1),
        ],
        bill: bill.clone(),
        connections: vec![Connection {
            id: 1,
            client: CLIENT,
            server: SERVER,
            assumed: false,
            vantage: Vantage::Client,
            rtt_min: Some(us(100)),
            mss: [Some(1460), Some(1460)],
            packets: 163,
            bytes: [4_800, 2_560],
            packet_range: [1, 163],
            span: [at(0), at(1_700_000)],
            by_clock: bill.iter().map(|line| line.ns).sum(),
            billed: 41,
            bill,
            exchanges,
            ladder,
            steps: None,
            ladder_omitted: 7,
            opening: tcpwhy_core::Opening { has_syn: true, ..Default::default() },
        }],
        omitted: Omitted::default(),
        thinned: 0,
        clients: std::collections::BTreeMap::new(),
        notes: vec![],
        times_doubted: false,
    }
}

/// A finding with the same cost on every hit.
pub(crate) fn finding(cause: Cause, sender: Side, each: Duration, hits: u64, of: u64) -> Finding {
    Finding {
        cause,
        side: cause.side(sender),
        servers: Servers::One(SERVER),
        hits,
        of,
        ns: each.times(hits as i64),
        p50: each,
        p99: each,
        max: each,
        slow: None,
        without: None,
        confidence: Confidence::Certain,
        evidence: vec![4, 7],
        worst: (1, 1),
        detail: Detail::default(),
    }
}

/// A report with these findings and nothing else.
pub(crate) fn of(findings: Vec<Finding>) -> Report {
    let mut findings = findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.ns));
    let bill: Vec<TotalLine> = findings
        .iter()
        .map(|finding| TotalLine {
            cause: finding.cause,
            side: finding.side,
            ns: finding.ns,
            possible: if finding.confidence == Confidence::Possible { finding.ns } else { Duration::ZERO },
            hits: finding.hits,
        })
        .collect();
    Report {
        segments: 100,
        elapsed: bill.iter().map(|line| line.ns).sum(),
        exchanges: findings.iter().map(|finding| finding.of).max().unwrap_or(0),
        bill,
        findings,
        ..Report::default()
    }
}

pub(crate) fn capture(path: &str) -> CaptureInfo {
    CaptureInfo {
        path: path.into(),
        format: "pcapng".into(),
        packets: 165,
        segments: 163,
        first: Some(at(0)),
        last: Some(at(1_700_000)),
        ..CaptureInfo::default()
    }
}

/// One of everything that limits the results.
pub(crate) fn with_limits(mut report: Report) -> Report {
    report.notes = vec![
        Note { kind: "capture-drops", count: 3, first_packet: 17 },
        Note { kind: "one-direction", count: 1, first_packet: 90 },
    ];
    report.omitted = Omitted { connections: 2, exchanges: 5_000 };
    report
}
