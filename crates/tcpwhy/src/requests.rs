//! `--show-requests`: what was asked, in the words of the protocols?
//!
//! Bills need no words, so that the first pass keeps none. Whoever wants to see them has the inputs read once more, and each listed
//! exchange gets the question that passed in its packets.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use tcpwhy::input::WindowError;
use tcpwhy_core::report::Kind;
use tcpwhy_core::{Asked, Report, Requests, Side};
use tcpwhy_wire::Endpoint;

use crate::ends::Ends;
use crate::opened::Opened;
use crate::output::complain;

/// Questions kept of one direction of one connection at once: more were asked than are listed.
const KEPT_MAX: usize = 1 << 16;

/// Fills in what each listed exchange asked for.
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
    let mut asked: BTreeMap<[Endpoint; 2], VecDeque<Asked>> = report
        .connections
        .iter()
        .flat_map(|connection| {
            [[connection.client, connection.server], [connection.server, connection.client]]
        })
        .map(|direction| (direction, VecDeque::new()))
        .collect();
    inputs.for_each_of_inputs(
        &args.options(),
        |_| {},
        |input, segment, captured| {
            let passes =
                args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
                    && billed.as_mut().is_none_or(|billed| billed.has(input, segment));
            if !passes || !asked.contains_key(&[segment.src, segment.dst]) {
                return;
            }
            for question in requests.on_segment(segment, captured) {
                let kept = asked.get_mut(&[question.from, question.to]);
                kept.filter(|kept| kept.len() < KEPT_MAX)
                    .into_iter()
                    .for_each(|kept| kept.push_back(question.clone()));
            }
        },
    );
    give(report, &mut asked);
    Ok(())
}

/// Each exchange takes the first question of its asker that passed within its packets.
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
