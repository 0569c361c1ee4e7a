//! What does a connection's time-sequence graph need of its packets?
//!
//! Each packet with its offset in the stream, its ACK, the window, what released it and what the
//! time before it was billed to. In a long connection, runs of consecutive packets become one row,
//! from the first one's time to the last one's.

use std::collections::BTreeMap;

use serde::Serialize;
use tcpwhy_core::Side;
use tcpwhy_core::report::{Connection, Rung, Trigger};
use tcpwhy_wire::{Duration, Instant, Segment};

use crate::columns::Column;

/// Rows of one connection, approximately.
const ROWS_MAX: usize = 60_000;
/// A wait shorter than this fraction of a merged row's time span is not drawn.
const LITTLE: i64 = 4;
/// Maximum number of rounds of one connection.
const ROUNDS_MAX: usize = 4_000;

/// SACK blocks of a connection's packets: by packet, the edges of each block relative to the
/// packet's own ACK number.
pub type Sacks = BTreeMap<u64, Vec<[i32; 2]>>;

/// Remembers the SACK blocks of a segment, which ladders lack.
pub fn note_sacks(sacks: &mut Sacks, segment: &Segment) {
    let blocks = segment.options.sack();
    if segment.flags.ack() && !blocks.is_empty() {
        let edges = blocks.iter().map(|block| [block.start - segment.ack, block.end - segment.ack]);
        sacks.insert(segment.packet, edges.collect());
    }
}

/// The packets of one connection: the client's and the server's, each in the order of packet
/// numbers.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Packets {
    /// The connection's number.
    id: u64,
    /// The longest time that a merged row may span; 0 if each packet has its own row.
    merged_ns: i64,
    /// Packets left out for want of room.
    omitted: u64,
    /// Added to an offset of client and server, this gives Wireshark's relative sequence number; a
    /// SYN's is one less.
    seq_base: [i64; 2],
    /// Bytes of client and server before the first ones that were seen: offsets count from there.
    #[serde(skip)]
    unseen: [i64; 2],
    sent: [Sent; 2],
    rounds: Rounds,
}

/// One end's packets: separately they grow more steadily than mixed with the other's.
#[derive(Debug, Default, Serialize)]
struct Sent {
    packet: Column,
    at_ns: Column,
    /// The lengths of waits, see `lines`. Usually all of the time since the previous row was
    /// billed, and the last wait would repeat what is left of it: so the last one is stored as the
    /// difference.
    ns: Column,
    /// Until the last packet of the row.
    lasts_ns: Column,
    count: Column,
    offset: Column,
    len: Column,
    /// -1 without ACK.
    ack: Column,
    window: Column,
    /// The window field if its scale is unknown, otherwise -1.
    raw: Column,
    flags: Column,
    /// -1 if it belongs to none.
    exchange: Column,
    /// write, packet, timer, burst, control
    trigger: Column,
    /// How many packets before it its releasing packet came; 0 if there is none.
    released_ago: Column,
    /// What the time before it was billed to: the number of causes, and the time of each.
    lines: Column,
    cause: Column,
    sacks: SackRows,
    ways: Ways,
    /// Values that usually equal the previous row's, and for how many further rows they do.
    #[serde(skip)]
    steady: Option<[i64; 7]>,
    /// When the last packet of the previous row passed.
    #[serde(skip)]
    ended: Option<Instant>,
    #[serde(skip)]
    again: usize,
}

/// SACK blocks, as offsets.
#[derive(Debug, Default, Serialize)]
struct SackRows {
    row: Column,
    start: Column,
    end: Column,
}

/// One-way delays, if two captures have the packets.
#[derive(Debug, Default, Serialize)]
struct Ways {
    row: Column,
    ns: Column,
}

/// Round trips of transfers.
#[derive(Debug, Default, Serialize)]
struct Rounds {
    exchange: Column,
    start_ns: Column,
    took_ns: Column,
    flight_bytes: Column,
    window_bytes: Column,
    /// -1 if nothing was billed.
    cause: Column,
    ns: Column,
}

/// Packets in one row of the page.
struct Row<'a> {
    first: &'a Rung,
    last: &'a Rung,
    count: u64,
    /// Payload, without a gap.
    len: u64,
}

impl<'a> Row<'a> {
    /// A row of one packet.
    fn of(rung: &'a Rung) -> Self {
        Self { first: rung, last: rung, count: 1, len: u64::from(rung.len) }
    }
}

impl Packets {
    /// For the connection with number `id` in the report. Compactly stored packets are unpacked in
    /// `room`.
    pub(crate) fn of(
        connection: &Connection,
        id: u64,
        (sacks, ways): (&Sacks, &BTreeMap<u64, i64>),
        origin: Instant,
        room: &mut Vec<Rung>,
    ) -> Self {
        let ladder = match &connection.steps {
            None => &connection.ladder,
            Some(steps) => {
                steps.unpack(room);
                &*room
            }
        };
        let mut table = Self { id, omitted: connection.ladder_omitted, ..Self::default() };
        let (mut merged, mut rows, mut count) = (Duration::ZERO, Vec::new(), ladder.len());
        while count > ROWS_MAX && merged < Duration::from_secs(3_600) {
            merged = if merged == Duration::ZERO { Duration::from_micros(10) } else { merged.times(4) };
            rows = self::rows(ladder, sacks, merged);
            count = rows.len();
        }
        table.merged_ns = merged.as_nanos();
        for side in [Side::Client, Side::Server] {
            let own = ladder.iter().find(|rung| rung.from == side && !rung.flags.syn());
            table.seq_base[side as usize] =
                own.map_or(1, |rung| i64::from(rung.seq) - i64::from(rung.offset as u32));
        }
        table.begin_with_the_unseen(ladder);
        if merged == Duration::ZERO {
            for rung in ladder {
                table.push(&Row::of(rung), (sacks, ways), origin);
            }
        }
        for row in &rows {
            table.push(row, (sacks, ways), origin);
        }
        table.sent.iter_mut().for_each(Sent::end);
        table.rounds = Rounds::of(connection, ladder, origin);
        table
    }

    /// If the beginning of a connection is missing, retransmissions and ACKs may concern earlier
    /// bytes; offsets start at the first byte seen. A reset may acknowledge anything.
    fn begin_with_the_unseen(&mut self, ladder: &[Rung]) {
        let base = self.seq_base;
        let before = |side: usize, seq: u32, offset: u64| {
            let seen = offset as i64 + base[side];
            -i64::from(seq.wrapping_sub(seen as u32) as i32)
        };
        for rung in ladder.iter().filter(|rung| !rung.flags.rst()) {
            let side = usize::from(rung.from == Side::Server);
            let first = rung.seq.wrapping_add(u32::from(rung.flags.syn()));
            self.unseen[side] = self.unseen[side].max(before(side, first, rung.offset));
            if let (Some(ack), Some(offset)) = (rung.ack(), rung.ack_offset()) {
                self.unseen[1 - side] = self.unseen[1 - side].max(before(1 - side, ack, offset));
            }
        }
        for (base, unseen) in self.seq_base.iter_mut().zip(self.unseen) {
            *base -= unseen;
        }
    }

    /// The offset of the byte with this sequence number.
    fn offset_of(&self, side: usize, seq: u32, offset: u64) -> i64 {
        let seen = offset as i64 + self.unseen[side];
        seen + i64::from(seq.wrapping_sub((seen + self.seq_base[side]) as u32) as i32)
    }

    fn push(&mut self, row: &Row<'_>, (sacks, ways): (&Sacks, &BTreeMap<u64, i64>), origin: Instant) {
        let rung = row.first;
        let side = usize::from(rung.from == Side::Server);
        // A reset's numbers may be wrong.
        let offset = |side, seq, offset: u64, is_reset| {
            if is_reset { offset as i64 + self.unseen[side] } else { self.offset_of(side, seq, offset) }
        };
        let first = rung.seq.wrapping_add(u32::from(rung.flags.syn()));
        let begin = offset(side, first, rung.offset, rung.flags.rst());
        let acked =
            |rung: &Rung| Some(offset(1 - side, rung.ack()?, rung.ack_offset()?, rung.flags.rst()).max(0));
        let blocks = sacks.get(&rung.packet);
        let (ack, first_ack) = (acked(row.last), blocks.and_then(|_| acked(rung)));
        let sent = &mut self.sent[side];
        let at = sent.packet.len() as i64;
        sent.push(row, [begin, ack.unwrap_or(-1)], origin);
        if let Some(ns) = ways.get(&rung.packet) {
            sent.ways.row.push(at);
            sent.ways.ns.push(*ns);
        }
        for (block, ack) in blocks.into_iter().flatten().filter_map(|block| Some((block, first_ack?))) {
            sent.sacks.row.push(at);
            sent.sacks.start.push(ack + i64::from(block[0]));
            sent.sacks.end.push(ack + i64::from(block[1]));
        }
    }
}

impl Sent {
    /// A row with this offset and ACK.
    fn push(&mut self, row: &Row<'_>, [begin, ack]: [i64; 2], origin: Instant) {
        let (rung, last) = (row.first, row.last);
        self.packet.push_count(rung.packet);
        self.at_ns.push((rung.at - origin).as_nanos());
        self.offset.push(begin);
        self.ack.push(ack);
        let steady = [
            (last.at - rung.at).as_nanos(),
            row.count as i64,
            row.len as i64,
            i64::from(last.window),
            if last.window_scale.is_none() { i64::from(last.window_field) } else { -1 },
            i64::from(rung.flags.0),
            rung.exchange().map_or(-1, |n| n as i64),
        ];
        if self.steady == Some(steady) {
            self.again += 1;
        } else {
            self.end();
            self.steady = Some(steady);
            self.steady_columns().into_iter().zip(steady).for_each(|(column, value)| column.push(value));
        }
        let (kind, ago) = match rung.trigger() {
            Trigger::Write => (0, 0),
            Trigger::Packet(packet) => (1, rung.packet.saturating_sub(packet)),
            Trigger::Timer => (2, 0),
            Trigger::Burst => (3, 0),
            Trigger::Control => (4, 0),
        };
        self.trigger.push(kind);
        self.released_ago.push_count(ago);
        let mut left = self.ended.map_or(Duration::ZERO, |ended| rung.at - ended);
        self.ended = Some(last.at);
        let mut lines = 0;
        let mut billed = rung.billed.lines().peekable();
        while let Some((cause, span)) = billed.next() {
            lines += 1;
            self.cause.push(cause as i64);
            let told = if billed.peek().is_none() { span - left } else { span };
            self.ns.push(told.as_nanos());
            left -= span;
        }
        self.lines.push(lines);
    }

    /// The columns that usually repeat the previous row.
    fn steady_columns(&mut self) -> [&mut Column; 7] {
        [
            &mut self.lasts_ns,
            &mut self.count,
            &mut self.len,
            &mut self.window,
            &mut self.raw,
            &mut self.flags,
            &mut self.exchange,
        ]
    }

    /// There are no more rows, or the next one is different.
    fn end(&mut self) {
        let again = std::mem::take(&mut self.again);
        self.steady_columns().into_iter().for_each(|column| column.repeat(again));
    }
}

impl Rounds {
    fn of(connection: &Connection, ladder: &[Rung], origin: Instant) -> Self {
        let mut table = Self::default();
        for exchange in &connection.exchanges {
            let rounds = connection.rounds_in(ladder, exchange);
            if rounds.len() < 2 {
                continue;
            }
            for round in rounds {
                if table.exchange.len() == ROUNDS_MAX {
                    return table;
                }
                table.exchange.push_count(exchange.n);
                table.start_ns.push((round.start - origin).as_nanos());
                table.took_ns.push(round.took.as_nanos());
                table.flight_bytes.push_count(round.flight);
                table.window_bytes.push_count(round.window);
                table.cause.push(round.billed.map_or(-1, |(cause, _)| cause as i64));
                table.ns.push(round.billed.map_or(0, |(_, ns)| ns.as_nanos()));
            }
        }
        table
    }
}

/// Merges packets into rows: a direction's packets share a row while they follow each other with
/// nothing to report but short waits, and within a limited time.
fn rows<'a>(ladder: &'a [Rung], sacks: &Sacks, within: Duration) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut open: [Option<usize>; 2] = [None, None];
    for rung in ladder {
        let side = usize::from(rung.from == Side::Server);
        let row = open[side].map(|at| &mut rows[at]).filter(|row| {
            let goes_on = rung.offset == row.first.offset + row.len;
            let is_alike = rung.exchange() == row.first.exchange()
                && (rung.len > 0) == (row.first.len > 0)
                && !(rung.flags.syn() || rung.flags.fin() || rung.flags.rst() || row.first.flags.syn());
            let acks_on = rung.len > 0 || rung.ack_offset() > row.last.ack_offset();
            within.is_positive()
                && rung.at - row.first.at <= within
                && goes_on
                && is_alike
                && acks_on
                // If the link paces a transfer, each packet has waited a little.
                && rung.billed.lines().all(|(_, span)| span.times(LITTLE) <= within)
                && !sacks.contains_key(&rung.packet)
                && !sacks.contains_key(&row.last.packet)
        });
        if let Some(row) = row {
            (row.last, row.count, row.len) = (rung, row.count + 1, row.len + u64::from(rung.len));
        } else {
            open[side] = Some(rows.len());
            rows.push(Row::of(rung));
        }
    }
    rows
}
