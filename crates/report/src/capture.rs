//! What was read, and what of it could not be?

use std::collections::BTreeMap;

use tcpwhy_wire::Instant;

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
