//! `--show-requests`: what was asked, in the words of the protocols?
//!
//! Bills need no payload, so the first pass keeps none. With this option the inputs are read once
//! more, and each listed exchange gets the request that passed in its packets.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use tcpwhy::input::WindowError;
use tcpwhy_core::report::{Kind, Note};
use tcpwhy_core::{Asked, Report, Requests, Side};
use tcpwhy_wire::Endpoint;

use crate::ends::Ends;
use crate::opened::Opened;
use crate::output::complain;

/// Requests kept of one direction of one connection at a time: a direction may have more than are
/// listed.
const KEPT_MAX: usize = 1 << 16;
/// The part of `--memory` that requests may take; exchanges beyond it are shown without.
const PART: usize = 8;
/// Heap memory of a short request.
const TEXT: usize = 32;

/// Fills in the request of each listed exchange.
pub(crate) fn name(opened: &mut Opened<'_>, report: &mut Report) -> Result<(), WindowError> {
    let Some(mut inputs) = opened.again() else {
        complain(
            "--show-requests reads the input twice, which a pipe does not allow: save the capture to a file",
        );
        return Ok(());
    };
    let (args, ends) = (opened.args, opened.ends());
    if let Some(window) = args.window() {
        inputs.limit(&window)?;
    }
    let mut billed = ends.map(Ends::choice);
    let mut requests = Requests::new(RandomState::new().hash_one(0));
    let mut asked: BTreeMap<[Endpoint; 2], VecDeque<Asked>> = BTreeMap::new();
    let wanted = wanted(report);
    let (mut room, mut left_out) = (args.memory / PART, (0, 0));
    inputs.for_each_of_inputs(
        &args.options(),
        |_| {},
        |input, segment, captured| {
            let passes =
                args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
                    && billed.as_mut().is_none_or(|billed| billed.has(input, segment));
            if !passes || !wanted.contains_key(&[segment.src, segment.dst]) {
                return;
            }
            for question in requests.on_segment(segment, captured) {
                let direction = [question.from, question.to];
                let takes = size_of::<Asked>() + question.text.capacity().max(TEXT);
                if wanted.get(&direction).is_none_or(|spans| !is_in(spans, question.packet)) {
                    continue;
                }
                let kept = asked.entry(direction).or_default();
                if takes <= room && kept.len() < KEPT_MAX {
                    kept.push_back(question);
                    room -= takes;
                } else {
                    let (count, first) = left_out;
                    left_out = (count + 1, if count == 0 { question.packet } else { first });
                }
            }
        },
    );
    give(report, &mut asked);
    if let (count @ 1.., first_packet) = left_out {
        report.notes.push(Note { kind: "words-over-limit", count, first_packet });
    }
    Ok(())
}

/// Says how many requests are shown without their words, where no overview says it.
pub(crate) fn complain_of_missing(report: &Report) {
    if let Some(note) = report.notes.iter().find(|note| note.kind == "words-over-limit") {
        complain(&format!(
            "{} requests are shown without their text because of --memory; narrow the input with --filter, --from or --to",
            note.count
        ));
    }
}

/// The packets of each direction's listed exchanges, as sorted spans that do not touch: requests in
/// other packets are not kept.
fn wanted(report: &Report) -> BTreeMap<[Endpoint; 2], Vec<[u64; 2]>> {
    let mut wanted: BTreeMap<_, Vec<[u64; 2]>> = BTreeMap::new();
    for connection in &report.connections {
        let (client, server) = (connection.client, connection.server);
        let both = [[client, server], [server, client]];
        for direction in both {
            wanted.entry(direction).or_default();
        }
        for exchange in connection.exchanges.iter().filter(|exchange| exchange.kind != Kind::Setup) {
            let direction = both[usize::from(exchange.initiator == Side::Server)];
            wanted.entry(direction).or_default().push(exchange.packets);
        }
    }
    for spans in wanted.values_mut() {
        spans.sort_unstable();
        spans.dedup_by(|next, known| {
            let touches = next[0] <= known[1];
            known[1] = if touches { known[1].max(next[1]) } else { known[1] };
            touches
        });
    }
    wanted
}

fn is_in(spans: &[[u64; 2]], packet: u64) -> bool {
    let behind = spans.partition_point(|span| span[0] <= packet);
    behind.checked_sub(1).is_some_and(|place| packet <= spans[place][1])
}

/// Gives each exchange the first request of its initiator that passed within its packets.
fn give(report: &mut Report, asked: &mut BTreeMap<[Endpoint; 2], VecDeque<Asked>>) {
    for connection in &mut report.connections {
        let (client, server) = (connection.client, connection.server);
        for exchange in connection.exchanges.iter_mut().filter(|exchange| exchange.kind != Kind::Setup) {
            let direction =
                if exchange.initiator == Side::Server { [server, client] } else { [client, server] };
            let Some(questions) = asked.get_mut(&direction) else { continue };
            let [first, last] = exchange.packets;
            while questions.front().is_some_and(|question| question.packet < first) {
                questions.pop_front();
            }
            if let Some(question) = questions.pop_front_if(|question| question.packet <= last) {
                exchange.request = Some(question.text.into_boxed_str());
            }
        }
    }
}
