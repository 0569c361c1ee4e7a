//! What was the wait for when a connection ended without an answer, or whose end marks the end of
//! the answer?
//!
//! Proof: the receiver acknowledged a request, as its protocol delimits it, sent no byte of an
//! answer, and either end closed; or an answer of unstated length was acknowledged in full and its
//! sender closed; or nothing of a request was acknowledged, its timer retransmitted it, and the
//! server closed.
//! Refuted by: an acknowledgement of data that is missing from the capture; a client that only
//! shuts down its sending side, right after its request.
//! Source: RFC 9112, 6.3 (an answer without a length ends with its connection) and 9.5 (a waiting
//! client closes when it has waited long enough).
//! Seen from: both ends. That somebody waited all that time is at most likely; only possible if the
//! client may have been waiting for news, or if its own time-out ended the wait and no answer ever
//! came.

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

/// Servers close idle connections after whole seconds, no fewer than these (KeepAliveTimeout of httpd: 5).
const IDLE_MIN: Duration = Duration::from_secs(IDLE_MIN_SECONDS);
const IDLE_MIN_SECONDS: i64 = 5;
/// How late the timer may be, without the round trip. Source: none written down.
const IDLE_PLAY: Duration = Duration::from_millis(20);
/// A client that closes sooner after its request may still be waiting for the answer.
const GAVE_UP_MIN: Duration = RTO_MIN;
/// ... or this, if it refuses the answer when it comes: a client that merely ends its requests closes at
/// once. Source: none written down.
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
    // If the client's time-out ended the wait, its length is the client's choice, and nothing shows
    // that the server had anything to say: a probe may be sent to any listener.
    let first = asker.zip(answerer).is_none_or(|(asker, answerer)| asker < answerer);
    let in_vain = !spoke && first && gave_up == Some(wait);
    let mut split = Split::of(wait);
    let (path, _) = round_trip::of_path(pair, server, side(server));
    split.take(path.evidence(asked, 0));
    // The way beyond a host that acknowledges in between counts as for an answered request.
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

/// The same for an answer that was sent and lost: the path's retransmission timers took all but the
/// round trip.
pub(crate) fn lost(pair: &Pair<'_>, server: usize, asked: u64, wait: Duration) -> Split {
    let mut split = Split::of(wait);
    let (path, _) = round_trip::of_path(pair, server, side(server));
    split.take(path.evidence(asked, 0));
    let detail = Detail { form: Some(Form::Unrepaired), ..Detail::default() };
    let timer = Charge::new(Cause::Rto, side(server), Duration::ZERO, Confidence::Likely);
    split.rest(timer.evidence(asked, 0).detail(detail))
}

/// The wait of a request that never arrived, from its last retransmission (packet `last`) until the
/// server closed.
pub(crate) fn never_arrived(asker: usize, wait: Duration, last: u64) -> Charge {
    Charge::new(Cause::Rto, side(asker), wait, Confidence::Likely).evidence(last, 0)
}

/// The wait between the last byte of an answer and the close by `server` that marks its end. A close after
/// whole seconds may as well be that of an idle connection: the answer's end was told in a way that is not
/// read.
pub(crate) fn with_connection(server: usize, wait: Duration, packets: [u64; 2], rtt: Duration) -> Charge {
    let [last, closing] = packets;
    let second = IDLE_MIN.divided_by(IDLE_MIN_SECONDS);
    let off = wait - second.times((wait + second.divided_by(2)).as_nanos() / second.as_nanos());
    let idle = wait >= IDLE_MIN && off.max(-off) <= rtt + IDLE_PLAY;
    let confidence = if idle { Confidence::Possible } else { Confidence::Likely };
    Charge::new(Cause::SenderThink, side(server), wait, confidence).evidence(last, closing)
}
