//! Which data packets of a connection crossed the path, and when did each part of the path work on them?

use std::collections::BTreeMap;

use tcpwhy_lab::truth::TruePath;

/// What the path did to a data packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// When it reached the link, and when its last bit left it; the same if there is no link.
    pub(super) starts: i64,
    pub(super) ends: i64,
    /// Offset of its bytes in their direction, from 0, and their number.
    pub(super) offset: i64,
    pub(super) payload: i64,
    /// When the receiving kernel had it; `None` if it was lost.
    pub(super) delivered: Option<i64>,
    /// Nanoseconds of constant delay, and of everything else except the link.
    pub(super) delayed: i64,
    pub(super) queued: i64,
}

impl Row {
    pub(super) const fn end(&self) -> i64 {
        self.offset + self.payload
    }
}

/// One direction of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// In the order in which they reached the link.
    pub(super) data: Vec<Row>,
    /// When each SYN entered, and when it was delivered.
    pub(super) syns: Vec<(i64, Option<i64>)>,
    /// Sum of constant delays, one way.
    pub(super) delay: i64,
}

impl Rows {
    /// For the connection on this client port that lasted from `from` to `until`; `None` if no SYN
    /// was seen.
    pub(super) fn of(path: &TruePath, direction: &str, port: u16, from: i64, until: i64) -> Option<Self> {
        let forward = direction == "forward";
        let elements = if forward { &path.forward } else { &path.backward };
        let spans: Vec<Option<i64>> = elements
            .iter()
            .map(|element| tcpwhy_twin::path::parse_duration(element.strip_prefix("delay ")?).ok())
            .map(|span| span.map(tcpwhy_wire::Duration::as_nanos))
            .collect();
        let link = elements.iter().position(|element| element.starts_with("rate "));
        let column = |name: &str| path.columns.iter().position(|column| column == name);
        let [direction_at, entered, delivered, src_port, seq, flags, payload, dropped] =
            ["direction", "entered_ns", "delivered_ns", "src_port", "seq", "flags", "payload", "dropped_by"]
                .map(column);
        let (direction_at, entered, delivered, dropped) = (direction_at?, entered?, delivered?, dropped?);
        let (src_port, seq, flags, payload) = (src_port?, seq?, flags?, payload?);
        let waits: Vec<usize> =
            (0..elements.len()).map(|n| column(&format!("wait_{n}_ns"))).collect::<Option<_>>()?;
        let (mut rows, mut first) = (Self { delay: spans.iter().flatten().sum(), ..Self::default() }, None);
        for row in path.packets.iter().filter(|row| row[direction_at].as_str() == Some(direction)) {
            let number = |at: usize| row[at].as_i64();
            let entered = number(entered)?;
            let ours = !forward || number(src_port) == Some(i64::from(port));
            if !ours || entered < from || entered > until {
                continue;
            }
            let delivered = number(delivered).filter(|_| row[dropped].is_null());
            let seq = number(seq)? as u32;
            if row[flags].as_str().is_some_and(|flags| flags.contains('S')) {
                first = Some(seq.wrapping_add(1));
                rows.syns.push((entered, delivered));
            }
            let payload = number(payload)?;
            let (Some(first), true) = (first, payload > 0) else { continue };
            let wait = |n: usize| number(waits[n]).unwrap_or(0);
            let before: i64 = link.map_or(0, |link| (0..link).map(wait).sum());
            let others = |constant: bool| {
                let such = |n: &usize| Some(*n) != link && spans[*n].is_some() == constant;
                (0..elements.len()).filter(such).map(wait).sum()
            };
            rows.data.push(Row {
                starts: entered + before,
                ends: entered + before + link.map_or(0, wait),
                offset: i64::from(seq.wrapping_sub(first) as i32),
                payload,
                delivered,
                delayed: others(true),
                queued: others(false),
            });
        }
        rows.data.sort_by_key(|row| row.starts);
        first.map(|_| rows)
    }

    /// The packet with which the receiver had all bytes before `until`.
    pub(super) fn completes(&self, until: i64) -> Option<Row> {
        let mut arrived: Vec<(i64, Row)> =
            self.data.iter().filter_map(|row| Some((row.delivered?, *row))).collect();
        arrived.sort_by_key(|(at, _)| *at);
        let mut have = 0;
        let mut beyond: BTreeMap<i64, i64> = BTreeMap::new();
        for (_, row) in arrived {
            if row.offset <= have {
                have = have.max(row.end());
                while let Some((&offset, &end)) = beyond.first_key_value()
                    && offset <= have
                {
                    have = have.max(end);
                    beyond.remove(&offset);
                }
            } else {
                let end = beyond.entry(row.offset).or_default();
                *end = row.end().max(*end);
            }
            if have >= until {
                return Some(row);
            }
        }
        None
    }
}
