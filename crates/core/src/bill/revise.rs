//! What can change a charge after it was made, and why?
//!
//! A charge is made when its interval ends. Whatever later packets show about it is a [`Revision`];
//! nothing else takes back a charge, moves it to another cause, or changes its confidence. No
//! revision changes how long an exchange took, except [`Revision::News`] and
//! [`Revision::RepairUnneeded`], which say that nobody had waited.
//!
//! What is doubtful from the beginning is doubted before it is charged (`Split::doubt`); what turns
//! out to have come earlier is a charge of its own (`rules/late_start.rs`).

mod clock_set;
mod guess;
mod nagle;
mod shorter_way;
#[cfg(test)]
mod tests;

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::{Account, Written};
use crate::bill::charge::Charge;
use crate::bill::line::{AccountLine, LineView};
use crate::bill::pause::{self, Pause};
use crate::bill::spare::Spare;
use crate::bill::suspects::Suspect;
use crate::bill::tail::Tail;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::HELD_BACK_MIN;
use crate::words::report::{Confidence, Detail};

pub(crate) use guess::Guess;

/// What changes, and what shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Revision<'a> {
    /// A retransmission was needed: its charges count, after what blocked its sender before.
    RepairNeeded,
    /// The original had arrived (a D-SACK, RFC 2883; an echoed time stamp, RFC 3522; a peer that
    /// went on): nothing waited for the retransmission.
    RepairUnneeded,
    /// A retransmission counts, but its original had arrived, and the acknowledgement was delayed
    /// on the path.
    CopySpare(Spare),
    /// The answer was delayed on the path for at least this long: whose the rest of the wait was is
    /// unknown.
    AnswerStood { server: Side, ns: Duration, packets: [u64; 2] },
    /// The sender's apparent pause was a stall of the path.
    PauseStood { sender: Side, pause: Pause, packet: u64 },
    /// What had left before the answer came with it: how long either had stood on the path nobody knows.
    CameTogether { server: Side },
    /// A timer had been running since `from`, all the while that its sender waited for these.
    TimerRan { waits: &'a [Suspect], from: Instant, sender: Side },
    /// The path to the peer proves to be shorter: acknowledgements that seemed prompt had been
    /// delayed.
    AcknowledgementsHeldBack { sender: Side },
    /// The sender leaves small segments behind small ones: Nagle need not have held any.
    NoDelay { sender: Side },
    /// The tail that Nagle held left whole with `packet`: bytes that Nagle holds later were written
    /// later, and the hold before them delayed nothing.
    TailLeftWhole { packet: u64, sender: Side },
    /// A full segment left right after a tail that Nagle had held: its writer had been asleep all
    /// the time, waiting for send buffer space.
    WriterSlept { tail: Tail, packet: u64, sender: Side },
    /// The application wrote `packet` at its own pace: whatever held earlier bytes meanwhile
    /// delayed nothing.
    OwnPace { packet: u64, sender: Side },
    /// The application wrote again after the first hold of its message: whether the hold had delayed that
    /// write, nothing shows.
    HeldOnce { sender: Side },
    /// The application may have paused behind what was late on the path by this much, and for longer: then that delayed nothing.
    PausedBehind { sender: Side, ns: Duration },
    /// What was waited for overtook the packets that seemed to be lost before it: that it was a repair is possible.
    Overtook { sender: Side, ns: Duration },
    /// A beat has shown: up to so much of what the application may have taken before was the pace as well.
    BeatShown { pacing: &'a Charge, unsure: Duration, sender: Side },
    /// The link's rate is known now: this much of the charges to this cause was wrong.
    /// `bill/early.rs` says whose it was.
    RateShown { cause: Cause, ns: Duration, sender: Side },
    /// Flights vary as no window's flights do: the send buffer may have held what was charged to a
    /// slow start.
    NoWindow { cause: Cause, ns: Duration, packets: [u64; 3], sender: Side },
    /// What the send buffer may have held, it has likely held.
    BufferShown { sender: Side },
    /// What was retransmitted had arrived: a host dropped it, in this form.
    Dropped { by: Side, form: Form },
    /// Nothing of what was retransmitted was ever acknowledged: its receiver may respond no longer. Nor was anything else that its sender has
    /// said since the handshake, if it is the `first`: that one may drop it.
    Ignored { first: bool },
    /// What seemed lost before an answer came with it: the charge for that was likely the server's
    /// own time.
    NoneLost { server: Side, packets: [u64; 2] },
    /// What was retransmitted may have arrived: that the path lost it is at most likely.
    MayBeDropped,
    /// What looked like one message may be many, of this form.
    MayBeMany { sender: Side, form: Form },
    /// A message continues in so many pieces, for so long, that it may be a stream: its sender's
    /// pauses are at most likely a wait.
    MayBeStream { sender: Side },
    /// Time billed to the server was a cork's (`rules/cork.rs`), with this confidence.
    Corked { server: Side, detail: Detail, confidence: Confidence },
    /// Time billed to the server may have been a cork's, or the wait for news.
    MayBeOther { server: Side, form: Form },
    /// It was the time until there was news: nobody waited for an answer.
    News { server: Side },
    /// The messages may be the session's or the protocol's own: nobody need have waited for the server.
    MayBeOwn { server: Side },
    /// The messages set up TLS: their round trips are part of that handshake.
    SetUpTls { asker: Side },
    /// The round trip of the path has proved to be no more than this: whether a queue or the server took the
    /// rest of what had been billed as one, nothing shows.
    WayShorter { least: Duration, asker: Side },
    /// The capture's clock was set forward by this much meanwhile: nobody took that time.
    ClockSet { ns: Duration, asker: Side, packets: [u64; 2] },
    /// It rests on a guess.
    Guessed(Guess),
}

/// Where the charges of a path are, from those that may still not count to those that do.
pub(crate) struct Accounts<'a> {
    /// For retransmissions that may have repaired nothing.
    pub pending: Option<&'a mut Account>,
    /// What blocked the sender since the application last wrote at its own pace.
    pub blocked: Option<&'a mut Account>,
    pub settled: &'a mut Account,
}

impl Accounts<'_> {
    /// Charges kept until a retransmission proved to be needed now count.
    fn absorb(self) {
        [self.blocked, self.pending].into_iter().flatten().for_each(|account| self.settled.absorb(account));
    }

    /// Takes back up to `ns` of a cause, from the settled account last. Returns how much.
    fn take_back(&mut self, cause: Cause, sender: Side, ns: Duration) -> Duration {
        let mut left = ns;
        let open = [self.pending.as_deref_mut(), self.blocked.as_deref_mut()];
        for account in open.into_iter().flatten().chain([&mut *self.settled]) {
            left -= account.take_back(cause, sender, left);
        }
        ns - left
    }

    /// Moves the charge for an unnecessary retransmission to the path, which was slow to bring the
    /// first acknowledgement; only possibly for a probe, which leaves sooner than hosts delay
    /// acknowledgements. The same for what was blamed on a full accept queue, listen(2), as the
    /// data had arrived. How long later packets were delayed is unknown.
    fn on_spare(self, spare: Spare) -> Duration {
        let Spare { sender, ns, probe, packets, beside, unsure } = spare;
        let sure = if unsure { Confidence::Possible } else { Confidence::Likely };
        let mut left = [(Cause::Rto, ns, sure), (Cause::Loss, probe, Confidence::Possible)];
        for account in self.pending.into_iter().chain([self.settled]) {
            let mut stood = false;
            for (cause, left, sure) in &mut left {
                let late = account.take_back(*cause, sender, *left);
                let late = late + account.take_back_at(*cause, sender.peer(), *left - late);
                if late.is_positive() {
                    let charge = Charge::new(Cause::Queueing, sender, late, *sure);
                    account.charge(&Charge { evidence: packets, ..charge });
                }
                stood |= late.is_positive();
                *left -= late;
            }
            if beside {
                account.doubt_line(Cause::Rto, sender);
            }
            if stood {
                account.doubt_own_time(sender.peer());
            }
        }
        ns + probe - left[0].1 - left[1].1
    }

    /// Moves the charge for a loss before the answer to the server.
    fn on_none_lost(mut self, server: Side, [begins, ends]: [u64; 2]) -> Duration {
        let ns = self.take_back(Cause::Rto, server, Duration::MAX);
        let own = Charge::new(Cause::ServerThink, server, ns, Confidence::Likely);
        self.settled.charge(&own.evidence(begins, ends));
        ns
    }

    /// The path may have stalled for an apparent pause; for how long, nothing shows.
    fn on_pause_stood(mut self, sender: Side, pause: Pause, packet: u64) -> Duration {
        let charged = pause::CAUSES.into_iter().zip(pause.charged);
        let stood = charged.map(|(cause, ns)| self.take_back(cause, sender, ns)).sum();
        self.settled.charge(&may_have_stood(stood, sender).evidence(pause.packet, packet));
        stood
    }

    /// What was late before a pause may have delayed nothing.
    fn on_pause_behind(self, sender: Side, ns: Duration) {
        let mut left = ns;
        for account in [self.blocked, Some(self.settled)].into_iter().flatten() {
            left -= account.doubt_part(Cause::Queueing, sender, left);
        }
    }

    /// What seemed to be lost has come.
    fn on_overtaken(self, sender: Side, ns: Duration) {
        for account in [self.pending, self.blocked, Some(self.settled)].into_iter().flatten() {
            for cause in [Cause::Loss, Cause::Rto] {
                account.doubt_part(cause, sender, ns);
            }
        }
    }

    /// What blocked the sender is its own pace.
    fn on_own_pace(&mut self, packet: u64, sender: Side) {
        let Some(blocked) = self.blocked.as_deref_mut() else { return };
        self.settled.charge(&own_pace(blocked.total(), packet, sender));
        blocked.clear();
    }

    /// What a send buffer may have held it has likely held.
    fn on_buffer(self, sender: Side) {
        let both = [self.blocked, Some(self.settled)].into_iter().flatten();
        both.for_each(|account| account.confirm(Cause::SendBuffer, sender));
    }

    /// Moves to a timer what was waited for while it ran.
    fn on_timer(mut self, waits: &[Suspect], from: Instant, sender: Side) -> Duration {
        let of = |wait: &Suspect| self.take_back(wait.cause, wait.sender, wait.ns.min(wait.ended - from));
        let waited = waits.iter().map(of).sum();
        let detail = Detail { form: Some(Form::Timeout), ..Detail::default() };
        self.settled.charge(&Charge::new(Cause::Rto, sender, waited, Confidence::Likely).detail(detail));
        waited
    }
}

impl Account {
    /// Revises the settled account.
    pub(crate) fn revise(&mut self, revision: Revision<'_>) -> Duration {
        revision.apply(Accounts { pending: None, blocked: None, settled: self })
    }
}

impl Revision<'_> {
    /// Changes these accounts. Returns how much was taken back or moved, for revisions that may
    /// move only a part.
    pub(crate) fn apply(self, mut on: Accounts<'_>) -> Duration {
        match self {
            Self::RepairNeeded => on.absorb(),
            Self::RepairUnneeded => on.pending.into_iter().for_each(Account::clear),
            Self::CopySpare(spare) => return on.on_spare(spare),
            Self::AnswerStood { server, ns, packets } => return on.settled.let_stand(server, ns, packets),
            Self::PauseStood { sender, pause, packet } => return on.on_pause_stood(sender, pause, packet),
            Self::CameTogether { server } => on.settled.doubt_own_time(server),
            Self::TimerRan { waits, from, sender } => return on.on_timer(waits, from, sender),
            Self::AcknowledgementsHeldBack { sender } => on.on_held_back(sender),
            Self::NoDelay { sender } => on.on_no_delay(sender),
            Self::TailLeftWhole { packet, sender } => return on.on_tail_left(packet, sender),
            Self::WriterSlept { tail, packet, sender } => {
                let slept = on.take_back(tail.cause, sender, tail.ns);
                let by = send_buffer(slept, sender, [tail.packet, packet, 0], Form::BehindTail);
                on.blocked.into_iter().for_each(|blocked| blocked.charge(&by));
                return slept;
            }
            Self::OwnPace { packet, sender } => on.on_own_pace(packet, sender),
            Self::HeldOnce { sender } => {
                let hold = |blocked: &mut Account| blocked.doubt_line(Cause::NagleDelayedAck, sender);
                return on.blocked.map_or(Duration::ZERO, hold);
            }
            Self::PausedBehind { sender, ns } => on.on_pause_behind(sender, ns),
            Self::Overtook { sender, ns } => on.on_overtaken(sender, ns),
            Self::BeatShown { pacing, unsure, sender } => {
                return on.settled.keep_beat(pacing, unsure, sender);
            }
            Self::RateShown { cause, ns, sender } => return on.take_back(cause, sender, ns),
            Self::NoWindow { cause, ns, packets, sender } => {
                let ns = on.take_back(cause, sender, ns);
                on.settled.charge(&send_buffer(ns, sender, packets, Form::Uneven));
                return ns;
            }
            Self::BufferShown { sender } => on.on_buffer(sender),
            Self::Dropped { by, form } => on.settled.blame_repairs(by, form),
            Self::Ignored { first } => on.settled.tell_ignored(first),
            Self::NoneLost { server, packets } => return on.on_none_lost(server, packets),
            Self::MayBeDropped => on.settled.temper_repairs(),
            Self::MayBeMany { sender, form } => on.settled.doubt(Cause::SenderThink, sender, Some(form)),
            Self::MayBeStream { sender } => on.settled.temper_pauses(sender),
            Self::Corked { server, detail, confidence } => on.settled.cork(server, detail, confidence),
            Self::MayBeOther { server, form } => on.settled.doubt(Cause::ServerThink, server, Some(form)),
            Self::News { server } => return on.settled.take_back(Cause::ServerThink, server, Duration::MAX),
            Self::MayBeOwn { server } => on.settled.doubt_answer(server),
            Self::SetUpTls { asker } => on.settled.rename(Cause::RoundTrip, Cause::TlsHandshake, asker),
            Self::WayShorter { least, asker } => return on.settled.shorten_way(least, asker),
            Self::ClockSet { ns, asker, packets } => return on.settled.leave_out(ns, asker, packets),
            Self::Guessed(guess) => on.settled.temper(|line| guess.concerns(line)),
        }
        Duration::ZERO
    }
}

/// After fewer timeouts, chance may have lost each copy. Source: none written down.
const IGNORED_MIN: u32 = 3;
/// The causes that a loss is billed to.
const REPAIRS: [Cause; 3] = [Cause::Rto, Cause::Loss, Cause::SynRetransmit];

fn own_pace(ns: Duration, packet: u64, sender: Side) -> Charge {
    Charge::new(Cause::SenderThink, sender, ns, Confidence::Likely).evidence(packet, 0)
}

/// What the path may have taken.
fn may_have_stood(ns: Duration, sender: Side) -> Charge {
    Charge::new(Cause::Queueing, sender, ns, Confidence::Possible)
}

fn send_buffer(ns: Duration, sender: Side, [begins, ends, released]: [u64; 3], form: Form) -> Charge {
    let detail = Detail { form: Some(form), ..Detail::default() };
    let charge = Charge::new(Cause::SendBuffer, sender, ns, Confidence::Possible);
    charge.evidence(begins, ends).released_by(released).detail(detail)
}

/// What changes one account; nothing else may.
impl Account {
    fn place_of(&mut self, cause: Cause, side: Side) -> Option<usize> {
        self.open().lines.iter().position(|line| line.cause == cause && line.side == side)
    }

    /// Takes back up to `ns` of the charges to a cause. Returns how much.
    fn take_back(&mut self, cause: Cause, sender: Side, ns: Duration) -> Duration {
        self.take_back_at(cause, cause.side(sender), ns)
    }

    /// Moves this much to `unexplained`: the capture's clock was set.
    fn leave_out(&mut self, ns: Duration, asker: Side, [begins, ends]: [u64; 2]) -> Duration {
        let taken = self.take_set(ns);
        let set = Charge::new(Cause::Unexplained, asker, taken, Confidence::Possible);
        self.charge(&set.evidence(begins, ends));
        taken
    }

    /// Moves this much of the server's time to the path, together with what time stamps have shown
    /// before. All of it may be the path's, unless those had likely shown as much.
    fn let_stand(&mut self, server: Side, ns: Duration, [begins, ends]: [u64; 2]) -> Duration {
        let place = self.place_of(Cause::Queueing, Cause::Queueing.side(server));
        let (told, sure) = place.map_or((Duration::ZERO, Duration::ZERO), |place| {
            let line = &self.open().lines[place];
            (line.ns, line.by_confidence[Confidence::Likely as usize..].iter().copied().sum())
        });
        let stood = self.take_back(Cause::ServerThink, server, (ns - told).at_least_zero());
        self.charge(&Charge::new(Cause::Queueing, server, stood, Confidence::Likely).evidence(begins, ends));
        if sure < ns {
            self.doubt(Cause::ServerThink, server, None);
        }
        stood
    }

    /// Possible application time was pacing too.
    fn keep_beat(&mut self, pacing: &Charge, unsure: Duration, sender: Side) -> Duration {
        let ns = self.take_back(Cause::SenderThink, sender, unsure);
        self.charge(&Charge { ns, ..pacing.clone() });
        ns
    }

    /// Moves the charges of one cause to another, with their confidence.
    fn rename(&mut self, from: Cause, to: Cause, sender: Side) {
        let side = from.side(sender);
        let Some(place) = self.place_of(from, side) else { return };
        let detail = self.detail_at(place);
        let line = self.remove_line(place);
        self.total -= line.ns;
        self.absorb_line(&AccountLine { cause: to, side: to.side(sender), ..line }, detail);
    }

    /// Moves the server's charge to a cork.
    fn cork(&mut self, server: Side, detail: Detail, confidence: Confidence) {
        let Some(place) = self.place_of(Cause::ServerThink, server) else { return };
        let line = self.remove_line(place);
        self.total -= line.ns;
        let mut by_confidence = [Duration::ZERO; 3];
        by_confidence[confidence as usize] = line.ns;
        let line = AccountLine { cause: Cause::Cork, by_confidence, detailed: true, ..line };
        self.absorb_line(&line, Some(detail));
    }

    /// Repairs charged to the path were likely this end's, of this form.
    fn blame_repairs(&mut self, side: Side, form: Form) {
        for cause in REPAIRS {
            let Some(place) = self.place_of(cause, Side::Path) else { continue };
            let detail = self.detail_at(place).unwrap_or_default();
            let mut line = self.remove_line(place);
            self.total -= line.ns;
            let [_, likely, certain] = &mut line.by_confidence;
            *likely += std::mem::take(certain);
            let line = AccountLine { side, detailed: true, ..line };
            self.absorb_line(&line, Some(Detail { form: Some(form), ..detail }));
        }
    }

    /// Says of so many timeouts that nothing answered them.
    fn tell_ignored(&mut self, first: bool) {
        let Some(place) = self.place_of(Cause::Rto, Side::Path) else { return };
        let detail = self.detail_at(place).unwrap_or_default();
        if detail.form == Some(Form::Timeout) && self.open().lines[place].waits >= IGNORED_MIN {
            let line = self.remove_line(place);
            self.total -= line.ns;
            self.absorb_line(&line, Some(Detail { form: Some(Form::Ignored), ..detail }));
            if first {
                self.doubt_line(Cause::Rto, Side::Path);
            }
        }
    }

    fn temper_repairs(&mut self) {
        self.temper(|line| REPAIRS.contains(&line.cause) && line.side == Side::Path);
    }

    fn temper_pauses(&mut self, sender: Side) {
        self.temper(|line| line.cause == Cause::SenderThink && line.side == sender);
    }

    /// Lowers these lines to likely at most.
    fn temper(&mut self, which: impl Fn(&AccountLine) -> bool) {
        for line in self.open().lines.iter_mut().filter(|line| which(line)) {
            let [_, likely, certain] = &mut line.by_confidence;
            *likely += std::mem::take(certain);
        }
    }

    /// Raises possible charges to a cause to likely.
    fn confirm(&mut self, cause: Cause, sender: Side) {
        let side = cause.side(sender);
        if let Some(place) = self.place_of(cause, side) {
            let line = &mut self.open().lines[place];
            let possible = std::mem::take(&mut line.by_confidence[Confidence::Possible as usize]);
            line.by_confidence[Confidence::Likely as usize] += possible;
        }
    }

    /// Lowers the charges to a cause to possible, of this form.
    fn doubt(&mut self, cause: Cause, sender: Side, form: Option<Form>) {
        let side = cause.side(sender);
        let Written { lines, details } = self.open();
        if let Some(line) = lines.iter_mut().find(|line| line.cause == cause && line.side == side) {
            line.by_confidence = [line.ns, Duration::ZERO, Duration::ZERO];
            line.take_detail(form.map(|form| Detail { form: Some(form), ..Detail::default() }), details);
        }
    }

    /// Makes the way and the server's time at most possible.
    fn doubt_answer(&mut self, server: Side) {
        for cause in [Cause::RoundTrip, Cause::ServerThink, Cause::SenderThink] {
            self.doubt(cause, server, None);
        }
    }

    /// Makes the charges to a cause at most possible, and keeps their details. Returns their
    /// length.
    fn doubt_line(&mut self, cause: Cause, sender: Side) -> Duration {
        let Some(place) = self.place_of(cause, cause.side(sender)) else { return Duration::ZERO };
        let line = &mut self.open().lines[place];
        line.by_confidence = [line.ns, Duration::ZERO, Duration::ZERO];
        line.ns
    }

    /// Lowers up to `ns` of the charges to a cause to possible. Returns how much.
    fn doubt_part(&mut self, cause: Cause, sender: Side, ns: Duration) -> Duration {
        let Some(place) = self.place_of(cause, cause.side(sender)) else { return Duration::ZERO };
        let [possible, likely, certain] = &mut self.open().lines[place].by_confidence;
        let before = *possible;
        for sure in [likely, certain] {
            let lowered = (*sure).min(ns - (*possible - before));
            (*sure, *possible) = (*sure - lowered, *possible + lowered);
        }
        *possible - before
    }

    /// What an end was charged for thinking may have been the path's, where it is long enough to tell.
    fn doubt_own_time(&mut self, side: Side) {
        let own = self.place_of(Cause::ServerThink, side).map(|place| self.open().lines[place].ns);
        if own.is_some_and(|own| own >= HELD_BACK_MIN) {
            self.doubt(Cause::ServerThink, side, None);
        }
    }

    fn detail_at(&mut self, place: usize) -> Option<Detail> {
        let Written { lines, details } = self.open();
        LineView(&lines[place], details).own_detail()
    }

    /// Removes a line and its detail: a message may be held and forgiven without end.
    fn remove_line(&mut self, place: usize) -> AccountLine {
        let Written { lines, details } = self.open();
        let line = lines.remove(place);
        if usize::from(line.detail) < details.len() {
            details.swap_remove(usize::from(line.detail));
            let moved = details.len() as u8;
            lines
                .iter_mut()
                .filter(|other| other.detail == moved)
                .for_each(|other| other.detail = line.detail);
        }
        line
    }
}
