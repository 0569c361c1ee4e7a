//! What was read, and what of it could not be?

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
    /// Of those, segments that reached the analysis.
    pub segments: u64,
    /// Time of the first packet.
    pub first: Option<Instant>,
    /// Time of the last packet.
    pub last: Option<Instant>,
    /// The file ends in the middle of a record.
    pub truncated: bool,
    /// What was read but not analysed: reason and how often.
    pub skipped: BTreeMap<String, u64>,
    /// Packets that the capture itself says it lost.
    pub drops: u64,
    /// The part of it that was wanted, where that was not all: from when on, and before when.
    pub window: Option<(Instant, Instant)>,
    /// Stored bytes outside of the window that were not read.
    pub unread_bytes: u64,
    /// Reading stopped behind the window.
    pub stopped: bool,
    /// Packets are numbered from the window's first one on.
    pub is_renumbered: bool,
    /// Somebody asked to stop before its end.
    pub interrupted: bool,
    /// Addresses and names were replaced.
    pub is_anonymized: bool,
    /// Why nothing of it could be read.
    pub failure: Option<String>,
    /// Some of its connections are billed from another input, which saw them at another place of their path.
    pub other_end: Option<OtherEnd>,
    /// Of several inputs: from which number among all their packets on, those that follow are this file's, and which frame the first
    /// one is there.
    pub turns: Vec<(u64, u64)>,
}

/// The file that has this packet, and its frame there; `None` where that is not known.
pub fn frame(files: &[CaptureInfo], packet: u64) -> Option<(&CaptureInfo, u64)> {
    place(files, packet).map(|(file, frame)| (&files[file], frame))
}

/// The same with the place of the file among the others.
fn place(files: &[CaptureInfo], packet: u64) -> Option<(usize, u64)> {
    let last = |file: &CaptureInfo| {
        let behind = file.turns.partition_point(|(first, _)| *first <= packet);
        file.turns[..behind].last().copied()
    };
    let found = files.iter().enumerate().filter_map(|(i, file)| Some((i, last(file)?)));
    let (file, (first, frame)) = found.max_by_key(|(_, (first, _))| *first)?;
    Some((file, frame + (packet - first)))
}

/// How packets are named on a screen: by their frame in the file, and by the file where there are several.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    files: &'a [CaptureInfo],
    /// The files that have some of the packets.
    used: BTreeSet<usize>,
}

impl<'a> Frames<'a> {
    /// For these packets of these files.
    pub(crate) fn of(files: &'a [CaptureInfo], packets: impl IntoIterator<Item = u64>) -> Self {
        let places = packets.into_iter().filter_map(|packet| place(files, packet));
        Self { files, used: places.map(|(file, _)| file).collect() }
    }

    /// `15`; of several files `2:15`, the second one's.
    pub(crate) fn name(&self, packet: u64) -> String {
        match place(self.files, packet) {
            Some((file, frame)) if self.used.len() > 1 => format!("{}:{frame}", file + 1),
            Some((_, frame)) => frame.to_string(),
            None => packet.to_string(),
        }
    }

    /// Which files these are, where several were read.
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

/// Connections that two inputs saw, and what they say of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherEnd {
    /// Place of the input that they are billed from.
    pub of: usize,
    /// How many.
    pub connections: u64,
    /// By how much the clock of this one is ahead of the other's, and the round trip between both, half of which that may be off.
    pub clock: Option<[Duration; 2]>,
    /// By how many parts in 10^9 its clock runs faster than the other's; `None` where both directions do not agree on it.
    pub drift_ppb: Option<i64>,
    /// What happened between both places to the client's packets, and to the server's.
    pub ways: Option<[OneWay; 2]>,
    /// Their bill from both, by how far it is apart.
    pub bill: Vec<OtherLine>,
}

/// Packets in one direction between two places that both saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// How many were compared.
    pub packets: u64,
    /// How many more the place that they pass first has and the other has not; `None` where packets were put together or cut.
    pub missing: Option<u64>,
    /// By how much they were later than the fastest of their direction: the median.
    pub median: Duration,
    /// All but one in a hundred were not later than this.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
}

/// What a cause takes as seen from two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLine {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// From where it is billed.
    pub here: Duration,
    /// From the other place.
    pub there: Duration,
}

impl OtherEnd {
    /// The line of a cause at a side; a new one where there is none yet.
    pub fn line(&mut self, cause: Cause, side: Side) -> &mut OtherLine {
        let at = self.bill.iter().position(|line| (line.cause, line.side) == (cause, side));
        let at = at.unwrap_or_else(|| {
            self.bill.push(OtherLine { cause, side, here: Duration::ZERO, there: Duration::ZERO });
            self.bill.len() - 1
        });
        &mut self.bill[at]
    }

    /// All of it, from where it is billed and from the other place.
    pub fn elapsed(&self) -> [Duration; 2] {
        [self.bill.iter().map(|line| line.here).sum(), self.bill.iter().map(|line| line.there).sum()]
    }
}

/// Several inputs as one: totals, the earliest and the latest time.
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
