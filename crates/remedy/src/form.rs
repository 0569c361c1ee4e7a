//! What does a form of a cause say to people? Its name is for programs.

use tcpwhy_core::Form;

/// What a form adds to the name of its cause; nothing where the sentence or the numbers say it.
pub fn form_in_words(form: Form) -> Option<&'static str> {
    Some(match form {
        Form::OrCork => "a cork's timer would look the same",
        Form::OrNews => "a question that is answered when there is news would look the same",
        Form::OrPushes => "messages that nobody asked for, each of its own, would look the same",
        Form::OrMessages => "what follows may be a message of its own that nobody waits for",
        Form::WholeReply => "the whole reply was held",
        Form::UntilAcknowledged => "held until all before it was acknowledged",
        Form::Uneven => "rounds of unequal size",
        Form::Timeout => "as after a timeout",
        Form::Request => "in the request",
        Form::Reply => "in the reply",
        Form::TailProbe => "repaired by a tail loss probe",
        Form::NewDataProbe => "a tail loss probe took new data; nothing was sent twice",
        Form::SmallWrites => "many small writes fill the buffer",
        Form::Recovery => "during recovery from a loss",
        Form::Paced => "the segments are paced",
        Form::SlowReader => "the program reads slowly",
        Form::SmallWindow => "the window is below two segments",
        Form::NotCaptured => "the segment is not in the capture",
        Form::Drained => "the flight drained before more was sent",
        Form::Avoidance => "in congestion avoidance",
        Form::AfterLoss => "after a loss",
        Form::UnseenFirstCopy => "the first copy was lost before the capture saw it",
        Form::Standing => "the queue stood before",
        Form::Rfc896 => "Nagle's rule as in RFC 896",
        Form::Reordered => "others overtook it",
        Form::Unanswered => "no answer ever came",
        Form::Proxy => "a proxy, or a NAT that ends TCP, acknowledges for the server",
        Form::BlackHole => "no full segment has passed, smaller ones do",
        Form::Unrepaired => "the bytes never came",
        Form::AcceptQueue => "the server's host drops what opens a connection",
        Form::Locked => "the window never grows",
        Form::Unscaled => "without window scaling",
        Form::Capped => "the window is at its limit",
        Form::Growing => "the window is still growing",
        Form::BehindTail
        | Form::BesideAnswer
        | Form::Fast
        | Form::Queue
        | Form::Syn
        | Form::SynAck
        | Form::Unacknowledged
        | Form::ZeroWindow => return None,
    })
}
