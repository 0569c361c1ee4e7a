//! What was waited for when a connection ended that had not been answered, or whose answer ends with it?
//!
//! Proof: a question, by its protocol, that its receiver has acknowledged, no byte of an answer, and either end closes; or an answer whose
//! head does not say how long it is, all of it acknowledged, and its sender closes; or a question of which nothing was acknowledged, sent
//! again by its timer, and its server closes.
//! Refuted by: an acknowledgement of what the capture does not have; a client that only says that it will ask no more, right behind its
//! question.
//! Source: RFC 9112, 6.3 (an answer without a length ends with its connection) and 9.5 (who waits closes when it has waited for long enough).
//! Seen from: both ends. That somebody waited all that time is no more than likely, and possible where it may have been for news, or where its
//! asker's own time-out ended it and nothing ever came.

use tcpwhy_wire::Duration;

use super::pair::Pair;
use super::round_trip;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::ends::side;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{NEWS_MIN, RTO_MIN};
use crate::words::report::{Confidence, Detail};

/// Who closes sooner behind its question may still wait for the answer.
const GAVE_UP_MIN: Duration = RTO_MIN;
/// ... or, where it refuses that when it comes, so soon: who only says that it will ask no more says it at once. Source: none written down.
const REFUSES_MIN: Duration = Duration::from_millis(50);

/// The wait for `server` behind the question's last packet, when either end closed, `asker` and it, so long after that; and whether
/// it spoke all the same, and so `late` that its asker had closed.
pub(crate) fn unanswered(
    pair: &Pair<'_>,
    server: usize,
    asked: u64,
    [asker, answerer]: [Option<Duration>; 2],
    [spoke, late]: [bool; 2],
) -> Option<Split> {
    // No answer comes sooner than a round trip.
    let path = pair.tap_rtt[server] + pair.tap_rtt[1 - server];
    let least = if late { REFUSES_MIN.max(path.times(2)) } else { GAVE_UP_MIN };
    // What its asker closes it knows at once: the way back comes on top of what passes here.
    let gave_up = asker.filter(|wait| *wait >= least).map(|wait| wait - pair.tap_rtt[1 - server]);
    let closed = answerer.filter(|wait| *wait >= GAVE_UP_MIN);
    let wait = gave_up.into_iter().chain(closed).min()?;
    // How long that is its asker's own time-out says then, and that its server had anything to say, nothing: a probe speaks to whoever listens.
    let first = asker.zip(answerer).is_none_or(|(asker, answerer)| asker < answerer);
    let in_vain = !spoke && first && gave_up == Some(wait);
    let mut split = Split::of(wait);
    let (path, _) = round_trip::of_path(pair, server, side(server));
    split.take(path.evidence(asked, 0));
    // What is behind whoever acknowledges is as far away as for a question that is answered.
    if let Some(way) = pair.way_beyond(server, split.left()) {
        split.take(way.evidence(asked, 0));
    }
    let (sure, form) = if wait >= NEWS_MIN {
        (Confidence::Possible, Form::OrNews)
    } else {
        (if in_vain { Confidence::Possible } else { Confidence::Likely }, Form::Unanswered)
    };
    let silent = Charge::new(Cause::ServerThink, side(server), Duration::ZERO, sure);
    let detail = Detail { form: Some(form), ..Detail::default() };
    Some(split.rest(silent.evidence(asked, 0).detail(detail)))
}

/// The same of an answer that had left and was lost, of which the path's timers took all but the way.
pub(crate) fn lost(pair: &Pair<'_>, server: usize, asked: u64, wait: Duration) -> Split {
    let mut split = Split::of(wait);
    let (path, _) = round_trip::of_path(pair, server, side(server));
    split.take(path.evidence(asked, 0));
    let detail = Detail { form: Some(Form::Unrepaired), ..Detail::default() };
    let timer = Charge::new(Cause::Rto, side(server), Duration::ZERO, Confidence::Likely);
    split.rest(timer.evidence(asked, 0).detail(detail))
}

/// The wait of a question that never arrived, from its last copy on, the packet `last`, until its server closed.
pub(crate) fn never_arrived(asker: usize, wait: Duration, last: u64) -> Charge {
    Charge::new(Cause::Rto, side(asker), wait, Confidence::Likely).evidence(last, 0)
}

/// The wait between the last byte of an answer and the closing that tells its end, which `server` sent.
pub(crate) fn with_connection(server: usize, wait: Duration, packets: [u64; 2]) -> Charge {
    let [last, closing] = packets;
    Charge::new(Cause::SenderThink, side(server), wait, Confidence::Likely).evidence(last, closing)
}
