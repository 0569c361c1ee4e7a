//! Does every capture end in a report that adds up, in text that a terminal can show, and in JSON that parses?

use tcpwhy_core::{Analysis, Listing, Options};
use tcpwhy_report::{CaptureInfo, Style, json, text};
use tcpwhy_wire::capture::{Event, Reader};
use tcpwhy_wire::{decode, payload};

use super::SHARDS;
use super::invariants::{EVERYTHING, check};
use super::spread::spread_captured;

/// A capture of more packets would only be slower.
const PACKETS_MAX: u64 = 4_000;

pub(super) fn capture(data: &[u8]) {
    let mut everything = Analysis::new(EVERYTHING);
    let mut plain = Analysis::new(Options { plain: true, checked: false, ..EVERYTHING });
    let mut first = Analysis::new(Options { listing: Listing::Connection(1), ..Options::default() });
    let mut info = CaptureInfo { path: "-\u{1b}[31m".to_owned(), ..CaptureInfo::default() };
    let mut segments = Vec::new();
    let (mut reader, mut rest) = (Reader::new(), data);
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => {
                info.packets += 1;
                match decode(&packet) {
                    Ok(segment) => {
                        let captured = payload(&packet);
                        assert!(captured.len() <= segment.payload_len as usize, "{segment:?}");
                        everything.on_captured(&segment, captured);
                        plain.on_captured(&segment, captured);
                        first.on_captured(&segment, captured);
                        segments.push((segment, captured.to_vec()));
                    }
                    Err(skip) => *info.skipped.entry(skip.name().to_owned()).or_default() += 1,
                }
                if info.packets == PACKETS_MAX {
                    break;
                }
            }
            Event::Damaged(_) => info.truncated = true,
            Event::Skipped | Event::NeedMore(_) => {}
            Event::End => break,
        }
    }
    let (report, first) = (everything.finish(), first.finish());
    check(&report);
    assert!(report == plain.finish(), "the model that takes no shortcut has another report");
    for shards in SHARDS {
        let captured = segments.iter().map(|(segment, captured)| (segment, Some(captured.as_slice())));
        let spread = spread_captured(captured, Options { checked: false, ..EVERYTHING }, shards);
        assert!(report == spread, "{shards} shards have another report");
    }
    assert_eq!((report.elapsed, &report.bill), (first.elapsed, &first.bill), "the listing changes the sums");
    let files = [info];
    let json = json::to_string(&report, &files, "0").unwrap_or_else(|error| panic!("JSON: {error}"));
    serde_json::from_str::<serde_json::Value>(&json).unwrap_or_else(|error| panic!("{error}\n{json}"));
    for ascii in [false, true] {
        let style = Style { ascii, ..Style::default() };
        let mut shown = text::overview(&report, &files, "tcpwhy read -", style);
        shown += &text::connection(&report, &files, 1, Some(3), style).unwrap_or_default();
        shown += &text::ladder(&first, &files, 1, None, style).unwrap_or_default();
        let odd = shown.chars().find(|&c| c != '\n' && c.is_control());
        assert!(odd.is_none(), "{odd:?} in\n{shown}");
        assert!(!ascii || shown.is_ascii(), "{shown}");
    }
}
