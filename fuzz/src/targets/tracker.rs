//! Do the bills of a few connections add up, whatever their ends do? Operations, not bytes: most
//! make sense, so that they get past the first packet.

use arbitrary::{Arbitrary, Unstructured};
use tcpwhy_core::Options;
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, SackBlock, Segment, Seq, TcpOptions, Timestamps};

use super::SHARDS;
use super::invariants::{EVERYTHING, analyse, check};
use super::spread::spread;

/// More would only be slower.
const OPERATIONS_MAX: usize = 400;

/// One packet.
#[derive(Arbitrary, Debug)]
struct Operation {
    connection: u8,
    from_client: bool,
    time: Time,
    what: What,
    window: u16,
    push: bool,
    unseen: bool,
    stamps: Option<(u16, u16)>,
    sack: Sack,
    /// Of any size, on a SYN.
    mss: Option<u16>,
}

#[derive(Arbitrary, Debug)]
enum Sack {
    None,
    Near(u16, u16),
    Anything([(u32, u32); 4]),
}

#[derive(Arbitrary, Debug)]
enum Time {
    Micros(u16),
    Millis(u16),
    Same,
    Back(u32),
    BackSeconds(u16),
    Edge(i64),
}

#[derive(Arbitrary, Debug)]
enum What {
    Syn { scale: u8, mss: u16 },
    Data { len: u16 },
    Full { count: u8 },
    Again { back: u16, len: u16 },
    Beyond { gap: u16, len: u16 },
    Ack { less: u16 },
    Fin,
    Reset,
    Anything { seq: u32, ack: u32, len: u32, flags: u8 },
}

/// What one end has sent.
#[derive(Clone, Copy, Default)]
struct End {
    next: u32,
    ip_id: u16,
}

pub(super) fn operations(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(seqs) = <[u32; 2]>::arbitrary(&mut input) else { return };
    let mut ends = [seqs.map(|next| End { next, ip_id: 1 }); 4];
    let mut now = Instant::from_nanos(1_700_000_000_000_000_000);
    let mut segments = Vec::new();
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        let Ok(operation) = Operation::arbitrary(&mut input) else { break };
        now = operation.time.after(now);
        let connection = usize::from(operation.connection) % ends.len();
        operation.packets(connection, &mut ends[connection], now, &mut segments);
    }
    let report = analyse(&segments);
    check(&report);
    assert_eq!(report.segments, segments.len() as u64);
    let plain = spread(&segments, Options { plain: true, checked: false, ..EVERYTHING }, 1);
    assert!(report == plain, "the model that takes no shortcut has another report");
    for shards in SHARDS {
        let spread = spread(&segments, Options { checked: false, ..EVERYTHING }, shards);
        assert!(report == spread, "{shards} shards have another report");
    }
}

impl Time {
    fn after(&self, now: Instant) -> Instant {
        match *self {
            Self::Micros(us) => now + Duration::from_micros(us.into()),
            Self::Millis(ms) => now + Duration::from_millis(ms.into()),
            Self::Same => now,
            Self::Back(ns) => now - Duration::from_nanos(ns.into()),
            Self::BackSeconds(s) => now - Duration::from_secs(s.into()),
            Self::Edge(ns) => Instant::from_nanos(ns),
        }
    }
}

impl Operation {
    fn packets(&self, connection: usize, ends: &mut [End; 2], at: Instant, segments: &mut Vec<Segment>) {
        let own = usize::from(!self.from_client);
        // Two between the same hosts, one from another client, one from a host to itself.
        let client = [1, 1, 3, 2][connection % 4];
        let hosts =
            [Endpoint::v4([10, 0, 0, client], 40_000 + connection as u16), Endpoint::v4([10, 0, 0, 2], 80)];
        let mut options = TcpOptions::default();
        if let Some((val, ecr)) = self.stamps {
            options.timestamps = Some(Timestamps { val: val.into(), ecr: ecr.into() });
        }
        let mut sack = |back: u32, len: u32| {
            let start = Seq(ends[1 - own].next.wrapping_sub(back));
            options.push_sack(SackBlock { start, end: start + len });
        };
        match self.sack {
            Sack::None => {}
            Sack::Near(back, len) => sack(back.into(), len.into()),
            Sack::Anything(blocks) => blocks.into_iter().for_each(|(back, len)| sack(back, len)),
        }
        let push = if self.push { Flags::PSH } else { 0 };
        let mut segment = Segment {
            packet: 0,
            at,
            src: hosts[own],
            dst: hosts[1 - own],
            seq: Seq(ends[own].next),
            ack: Seq(ends[1 - own].next),
            window: self.window,
            flags: Flags(Flags::ACK | push),
            payload_len: 0,
            options,
            ip_id: Some(ends[own].ip_id),
            ttl: 64,
            // Now and then one that is not accepted.
            damaged: self.window % 13 == 7,
        };
        let mut count = 1;
        match self.what {
            What::Syn { scale, mss } => {
                segment.flags = Flags(Flags::SYN | if self.push { Flags::ACK } else { 0 });
                segment.options.window_scale = (scale < 20).then_some(scale);
                segment.options.mss = self.mss.or((mss > 0).then_some(mss));
            }
            What::Data { len } => segment.payload_len = len.into(),
            What::Full { count: full } => (segment.payload_len, count) = (1448, full % 32),
            What::Again { back, len } => {
                segment.seq = Seq(segment.seq.0.wrapping_sub(back.into()));
                segment.payload_len = len.into();
            }
            What::Beyond { gap, len } => {
                segment.seq += gap.into();
                segment.payload_len = len.into();
            }
            What::Ack { less } => segment.ack = Seq(segment.ack.0.wrapping_sub(less.into())),
            What::Fin => segment.flags = Flags(Flags::FIN | Flags::ACK),
            What::Reset => segment.flags = Flags(Flags::RST),
            What::Anything { seq, ack, len, flags } => {
                (segment.seq, segment.ack, segment.payload_len) = (Seq(seq), Seq(ack), len >> 12);
                segment.flags = Flags(flags);
            }
        }
        for _ in 0..count {
            ends[own].ip_id = ends[own].ip_id.wrapping_add(1);
            segment.ip_id = Some(ends[own].ip_id);
            if !self.unseen {
                segment.packet = segments.len() as u64 + 1;
                segments.push(segment);
            }
            segment.seq = segment.seq_end();
            let end = segment.seq;
            ends[own].next = Seq(ends[own].next).latest(end).0;
        }
    }
}
