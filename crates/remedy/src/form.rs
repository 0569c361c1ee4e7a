//! How is a form of a cause described to people? Its name is for programs.

use tcpwhy_core::Form;

/// What a form adds to the name of its cause; `None` if the sentence or the numbers already say it.
pub fn form_in_words(form: Form) -> Option<&'static str> {
    Some(match form {
        Form::OrCork => "a cork's timer would look the same",
        Form::OrLost => "a lost first copy would look the same",
        Form::OrNews => "a long poll would look the same",
        Form::OrPushes => "separate unsolicited messages would look the same",
        Form::OrMessages => "what follows may be a separate message that nobody waits for",
        Form::OwnMessage => "what is held may be a separate message",
        Form::WholeReply => "the whole reply was held",
        Form::UntilAcknowledged => "held until everything before it was acknowledged",
        Form::Uneven => "rounds of unequal size",
        Form::Request => "in the request",
        Form::Reply => "in the reply",
        Form::TailProbe => "repaired by a tail loss probe",
        Form::NewDataProbe => "a tail loss probe carried new data; nothing was retransmitted",
        Form::SmallWrites => "many small writes fill the buffer",
        Form::Recovery => "during recovery from a loss",
        Form::Paced => "the segments are paced",
        Form::SlowReader => "the application reads slowly",
        Form::SmallWindow => "the window is below two segments",
        Form::NotCaptured => "the segment is not in the capture",
        Form::Drained => "everything in flight was acknowledged before more was sent",
        Form::Avoidance => "in congestion avoidance",
        Form::AfterLoss => "after a loss",
        Form::UnseenFirstCopy => "the first transmission was lost before the capture point",
        Form::Standing => "standing queue",
        Form::Rfc896 => "Nagle's algorithm as in RFC 896",
        Form::Reordered => "overtaken by later segments",
        Form::Unanswered => "never answered",
        Form::Ignored => "no copy was acknowledged",
        Form::Proxy => "a proxy or TCP-terminating NAT acknowledges for the server",
        Form::BlackHole => "no full-sized segment arrived, smaller ones did",
        Form::Unrepaired => "never retransmitted successfully",
        Form::AcceptQueue => "the server's host drops packets that open a connection",
        Form::Locked => "the window never grows",
        Form::Unscaled => "no window scaling",
        Form::Capped => "the window is at its limit",
        Form::Growing => "the window is still growing",
        Form::BehindTail
        | Form::BesideAnswer
        | Form::Fast
        | Form::Queue
        | Form::Syn
        | Form::SynAck
        | Form::Timeout
        | Form::Unacknowledged
        | Form::ZeroWindow => return None,
    })
}
