//! What was read, and what could not be read?

use std::collections::{BTreeMap, BTreeSet};

use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::{Duration, Instant};

use crate::escape::visible;

/// One input of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a remark of its own")]
pub struct CaptureInfo {
    /// As the user named it; `-` for standard input.
    pub path: String,
    /// `pcap`, `pcapng`, with `+gzip`, `+zstd`, `+xz` or `+lz4` where it was compressed.
    pub format: String,
    /// Packets read.
    pub packets: u64,
    /// Segments among them that reached the analysis.
    pub segments: u64,
    /// Time of the first packet.
    pub first: Option<Instant>,
    /// Time of the last packet.
    pub last: Option<Instant>,
    /// The file ends in the middle of a record.
    pub truncated: bool,
    /// Packets read but not analysed: reason and number.
    pub skipped: BTreeMap<String, u64>,
    /// Packets that the capture itself says it lost.
    pub drops: u64,
    /// The requested window, if it was not the whole file: start, and end (exclusive).
    pub window: Option<(Instant, Instant)>,
    /// Stored bytes outside of the window that were not read.
    pub unread_bytes: u64,
    /// Reading stopped after the window.
    pub stopped: bool,
    /// Packets are numbered from the first one of the window.
    pub is_renumbered: bool,
    /// The user interrupted reading before the end.
    pub interrupted: bool,
    /// Addresses and names were replaced.
    pub is_anonymized: bool,
    /// Why nothing could be read.
    pub failure: Option<String>,
    /// Some of its connections are billed from another input, captured at another point of their
    /// path.
    pub other_end: Option<OtherEnd>,
    /// With several inputs: pairs of a number among all packets, from which the following packets
    /// are this file's, and the frame number of the first of them in the file.
    pub turns: Vec<(u64, u64)>,
}

/// The file that contains this packet, and its frame number there; `None` if unknown.
pub fn frame(files: &[CaptureInfo], packet: u64) -> Option<(&CaptureInfo, u64)> {
    place(files, packet).map(|(file, frame)| (&files[file], frame))
}

/// The same with the file's index.
fn place(files: &[CaptureInfo], packet: u64) -> Option<(usize, u64)> {
    let last = |file: &CaptureInfo| {
        let behind = file.turns.partition_point(|(first, _)| *first <= packet);
        file.turns[..behind].last().copied()
    };
    let found = files.iter().enumerate().filter_map(|(i, file)| Some((i, last(file)?)));
    let (file, (first, frame)) = found.max_by_key(|(_, (first, _))| *first)?;
    Some((file, frame + (packet - first)))
}

/// How packets are named on a screen: by frame number, and by file if there are several.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    files: &'a [CaptureInfo],
    /// The files that contain some of the packets.
    used: BTreeSet<usize>,
}

impl<'a> Frames<'a> {
    /// For these packets of these files.
    pub(crate) fn of(files: &'a [CaptureInfo], packets: impl IntoIterator<Item = u64>) -> Self {
        let places = packets.into_iter().filter_map(|packet| place(files, packet));
        Self { files, used: places.map(|(file, _)| file).collect() }
    }

    /// `15`; with several files `2:15`, frame 15 of the second one.
    pub(crate) fn name(&self, packet: u64) -> String {
        match place(self.files, packet) {
            Some((file, frame)) if self.used.len() > 1 => format!("{}:{frame}", file + 1),
            Some((_, frame)) => frame.to_string(),
            None => packet.to_string(),
        }
    }

    /// Which files these are, if several were read.
    pub(crate) fn legend(&self) -> Option<String> {
        let path = |file: &usize| self.files.get(*file).map(|file| visible(&file.path));
        match self.used.iter().collect::<Vec<_>>().as_slice() {
            [] => None,
            [_] if self.files.len() == 1 => None,
            [one] => path(one).map(|path| format!("Frames of {path}.")),
            several => {
                let named: Vec<String> =
                    several.iter().filter_map(|i| Some(format!("{}: {}", *i + 1, path(i)?))).collect();
                Some(format!("Frames by file: {}.", named.join(", ")))
            }
        }
    }
}

/// Connections that two inputs saw, and how the two compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherEnd {
    /// Index of the input that they are billed from.
    pub of: usize,
    /// Number of connections.
    pub connections: u64,
    /// How far this input's clock is ahead of the other's, and the round trip between both, half of
    /// which the offset may be wrong by.
    pub clock: Option<[Duration; 2]>,
    /// By how many parts in 10^9 its clock runs faster than the other's; `None` if the two
    /// directions do not agree on it.
    pub drift_ppb: Option<i64>,
    /// What happened to the client's packets between both points, and to the server's.
    pub ways: Option<[OneWay; 2]>,
    /// Their bill from both points, by difference.
    pub bill: Vec<OtherLine>,
}

/// Packets in one direction between two capture points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Number of packets compared.
    pub packets: u64,
    /// Number of packets seen at their first point but not at the second; `None` if packets were
    /// merged or cut.
    pub missing: Option<u64>,
    /// By how much they were later than the fastest of their direction: the median.
    pub median: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
}

/// The time of a cause as seen from two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLine {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// From the point that is billed.
    pub here: Duration,
    /// From the other point.
    pub there: Duration,
}

impl OtherEnd {
    /// The line of a cause and side, added if it does not exist.
    pub fn line(&mut self, cause: Cause, side: Side) -> &mut OtherLine {
        let at = self.bill.iter().position(|line| (line.cause, line.side) == (cause, side));
        let at = at.unwrap_or_else(|| {
            self.bill.push(OtherLine { cause, side, here: Duration::ZERO, there: Duration::ZERO });
            self.bill.len() - 1
        });
        &mut self.bill[at]
    }

    /// The whole bill, from the billed point and from the other one.
    pub fn elapsed(&self) -> [Duration; 2] {
        [self.bill.iter().map(|line| line.here).sum(), self.bill.iter().map(|line| line.there).sum()]
    }
}

/// Several inputs as one: totals, earliest and latest time.
pub fn total(files: &[CaptureInfo]) -> CaptureInfo {
    let mut total = CaptureInfo::default();
    for (i, file) in files.iter().enumerate() {
        if i == 0 {
            total.path.clone_from(&file.path);
            total.format.clone_from(&file.format);
        } else {
            total.path.push_str(", ");
            total.path.push_str(&file.path);
            if total.format != file.format {
                "mixed".clone_into(&mut total.format);
            }
        }
        total.packets += file.packets;
        total.segments += file.segments;
        total.first = earliest(total.first, file.first);
        total.last = total.last.max(file.last);
        total.truncated |= file.truncated;
        total.drops += file.drops;
        total.window = total.window.or(file.window);
        total.unread_bytes += file.unread_bytes;
        total.stopped |= file.stopped;
        total.interrupted |= file.interrupted;
        total.is_renumbered |= file.is_renumbered;
        total.is_anonymized |= file.is_anonymized;
        for (reason, count) in &file.skipped {
            *total.skipped.entry(reason.clone()).or_default() += count;
        }
    }
    total
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_add_up() {
        let file = |path: &str, first, last| CaptureInfo {
            path: path.into(),
            format: "pcap".into(),
            packets: 10,
            segments: 9,
            first: Some(Instant::from_nanos(first)),
            last: Some(Instant::from_nanos(last)),
            truncated: path == "b",
            drops: 1,
            skipped: BTreeMap::from([("arp".to_owned(), 1)]),
            ..CaptureInfo::default()
        };
        let sum = total(&[file("a", 50, 90), file("b", 10, 60), CaptureInfo::default()]);
        assert_eq!((sum.packets, sum.segments, sum.truncated, sum.drops), (20, 18, true, 2));
        assert_eq!((sum.first, sum.last), (Some(Instant::from_nanos(10)), Some(Instant::from_nanos(90))));
        assert_eq!(sum.skipped["arp"], 2);
        assert_eq!(sum.path, "a, b, ");
    }
}
