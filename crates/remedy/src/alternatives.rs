//! What else could these packets be, and how could the readings be told apart?
//!
//! A line that is `possible`, or whose form names another reading, comes with its other readings:
//! each can be ruled out with one command or one more capture. A certain line has none.

use tcpwhy_core::Form;
use tcpwhy_core::report::{Confidence, Detail};
use tcpwhy_core::{Cause, Side};

/// Another reading of the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// What the time would have been spent on.
    pub reading: Reading,
    /// What to look at, and what it shows under this reading.
    pub tell: &'static str,
}

/// Another possible meaning of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Another cause, and who could change it.
    Cause(Cause, Side),
    /// Nobody waited: a separate message, or an unrequested push.
    NobodyWaits,
}

impl Reading {
    /// The name in JSON: that of the cause, or `nobody-waits`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cause(cause, _) => cause.name(),
            Self::NobodyWaits => "nobody-waits",
        }
    }

    /// The side responsible; `None` if nobody is.
    pub const fn side(self) -> Option<Side> {
        match self {
            Self::Cause(_, side) => Some(side),
            Self::NobodyWaits => None,
        }
    }
}

/// The other readings of a line or a finding, most likely first.
pub fn alternatives(cause: Cause, side: Side, confidence: Confidence, detail: &Detail) -> Vec<Alternative> {
    let mut all: Vec<Alternative> = by_form(detail.form).iter().map(|other| other.of(side)).collect();
    // All copies are in the capture: what may have been sent before it would explain nothing.
    if confidence == Confidence::Possible && detail.form == Some(Form::Ignored) {
        all.push(Other(cause, Of::Server, BESIDE_ANSWERER).of(side));
    } else if confidence == Confidence::Possible {
        for other in by_cause(cause).iter().map(|other| other.of(side)) {
            if !all.iter().any(|told| told.reading == other.reading) {
                all.push(other);
            }
        }
    }
    all
}

/// The side of a reading, relative to the side that the line names.
#[derive(Clone, Copy)]
enum Of {
    Same,
    Peer,
    Path,
    Server,
    /// One of the ends: the line does not say which one sent.
    Either,
    Nobody,
}

/// A row of the tables: the reading, and how to recognize it.
struct Other(Cause, Of, &'static str);

impl Other {
    fn of(&self, side: Side) -> Alternative {
        let reading = match self.1 {
            Of::Same => Reading::Cause(self.0, side),
            Of::Peer => Reading::Cause(self.0, side.peer()),
            Of::Path => Reading::Cause(self.0, Side::Path),
            Of::Server => Reading::Cause(self.0, Side::Server),
            Of::Either => Reading::Cause(self.0, Side::Unknown),
            Of::Nobody => Reading::NobodyWaits,
        };
        Alternative { reading, tell: self.2 }
    }
}

const NOBODY: Other = Other(
    Cause::Unexplained,
    Of::Nobody,
    "the application's log shows whether it was waiting for this message",
);
const STRACE_CORK: &str =
    "strace -e trace=setsockopt,sendto,sendmsg on the sender shows TCP_CORK or MSG_MORE";
const STRACE_WRITE: &str =
    "strace -tt -e trace=write,sendto,sendmsg on the sender shows when the application wrote";
const FOLLOWS: &str =
    "a capture at the sender shows whether the segment immediately follows an acknowledgement";
const LIMITED: &str = "ss -tin on the sender shows which of busy, rwnd_limited and sndbuf_limited grows";
const READER: &str = "ss -tn on the receiver shows a non-zero Recv-Q while the application does not read";
const BESIDE_ANSWERER: &str =
    "a capture at the answering end shows when the request arrived and when the answer left";
const FIRST_COPY: &str = "a capture at the sender shows whether there was an earlier transmission";
const BOTH_ENDS: &str = "captures from both ends, read together, show the transit time";
const BACKLOG: &str = "nstat on the server shows whether TcpExtListenDrops grows";

/// The other readings of a form.
fn by_form(form: Option<Form>) -> &'static [Other] {
    match form {
        Some(Form::OrCork) => &[Other(Cause::Cork, Of::Same, STRACE_CORK)],
        Some(Form::OrLost) => &[Other(Cause::Rto, Of::Path, FIRST_COPY)],
        Some(Form::WholeReply) => &[Other(Cause::ServerThink, Of::Same, STRACE_CORK)],
        Some(Form::Syn) => &[Other(Cause::ServerThink, Of::Server, BACKLOG)],
        Some(Form::AcceptQueue) => &[Other(Cause::Rto, Of::Path, BACKLOG)],
        Some(Form::Ignored | Form::OrNews | Form::OrPushes | Form::OrMessages) => &[NOBODY],
        _ => &[],
    }
}

/// Other causes that look like this one if the packets leave it open.
fn by_cause(cause: Cause) -> &'static [Other] {
    match cause {
        Cause::ServerThink => &[Other(Cause::RoundTrip, Of::Path, BESIDE_ANSWERER), NOBODY],
        Cause::SenderThink => &[
            Other(Cause::NagleDelayedAck, Of::Same, FOLLOWS),
            Other(Cause::SendBuffer, Of::Same, LIMITED),
            NOBODY,
        ],
        Cause::ReceiverThink => &[Other(Cause::ReceiveWindow, Of::Same, READER)],
        Cause::ReceiveWindow => &[
            Other(Cause::ReceiverThink, Of::Same, READER),
            Other(Cause::CongestionWindow, Of::Peer, LIMITED),
        ],
        Cause::Nagle | Cause::NagleDelayedAck => &[Other(Cause::SenderThink, Of::Same, STRACE_WRITE)],
        Cause::Cork => &[Other(Cause::SenderThink, Of::Same, STRACE_CORK)],
        Cause::DelayedAckCwnd => &[Other(Cause::SenderThink, Of::Peer, STRACE_WRITE)],
        Cause::SlowStart | Cause::SlowStartAfterIdle | Cause::CongestionWindow => {
            &[Other(Cause::SendBuffer, Of::Same, LIMITED), Other(Cause::Pacing, Of::Same, LIMITED)]
        }
        Cause::SendBuffer | Cause::Pacing => &[
            Other(Cause::CongestionWindow, Of::Same, LIMITED),
            Other(Cause::SenderThink, Of::Same, STRACE_WRITE),
        ],
        Cause::Loss | Cause::Rto => &[Other(Cause::SenderThink, Of::Either, FIRST_COPY)],
        Cause::SynRetransmit => &[Other(Cause::ServerThink, Of::Server, BACKLOG)],
        Cause::RoundTrip => &[Other(Cause::ServerThink, Of::Server, BESIDE_ANSWERER), NOBODY],
        Cause::Handshake | Cause::TlsHandshake => &[Other(Cause::ServerThink, Of::Server, BESIDE_ANSWERER)],
        Cause::Queueing => &[Other(Cause::ServerThink, Of::Server, BOTH_ENDS)],
        Cause::Bandwidth => &[Other(Cause::Pacing, Of::Either, LIMITED)],
        Cause::ApplicationWindow => &[Other(Cause::ServerThink, Of::Peer, BESIDE_ANSWERER)],
        Cause::Unexplained => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certain_has_one_reading() {
        for cause in Cause::ALL {
            let none = alternatives(cause, Side::Server, Confidence::Certain, &Detail::default());
            assert_eq!(none, [], "{cause}");
        }
    }

    #[test]
    fn what_is_possible_has_another_reading_that_is_not_itself() {
        for cause in Cause::ALL.into_iter().filter(|cause| *cause != Cause::Unexplained) {
            let others = alternatives(cause, Side::Server, Confidence::Possible, &Detail::default());
            assert!(!others.is_empty(), "{cause}");
            for other in others {
                assert_ne!(other.reading.name(), cause.name());
                assert!(!other.tell.is_empty());
            }
        }
    }

    #[test]
    fn a_form_that_names_another_reading_comes_first_and_once() {
        let detail = Detail { form: Some(Form::OrCork), ..Detail::default() };
        let readings = |confidence| -> Vec<&str> {
            alternatives(Cause::ServerThink, Side::Server, confidence, &detail)
                .iter()
                .map(|other| other.reading.name())
                .collect()
        };
        assert_eq!(readings(Confidence::Likely), ["cork"]);
        assert_eq!(readings(Confidence::Possible), ["cork", "round-trip", "nobody-waits"]);
    }
}
