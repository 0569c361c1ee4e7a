//! What can change a charge after it was made, and why?
//!
//! A charge is made when its interval ends. What later packets show of it is a [`Revision`], and nothing else takes anything back
//! that stands in an account, moves it to another cause, or makes it more or less certain. No revision changes how long an exchange
//! took, but [`Revision::News`] and [`Revision::RepairUnneeded`], which say that nobody had waited.
//!
//! What is doubtful from the beginning is doubted before it is charged (`Split::doubt`); what turns out to have come earlier is a
//! charge of its own (`rules/late_start.rs`).

mod clock_set;
mod guess;

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::{Account, Written};
use crate::bill::charge::Charge;
use crate::bill::line::{AccountLine, LineView};
use crate::bill::spare::Spare;
use crate::bill::suspects::Suspect;
use crate::bill::tail::Tail;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail};

pub(crate) use guess::Guess;

/// What changes, and what shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Revision<'a> {
    /// A retransmission was needed: what was charged for it counts, behind what blocked its sender before.
    RepairNeeded,
    /// The original had arrived (a D-SACK, RFC 2883; an echoed time stamp, RFC 3522; a peer that went on): nothing waited for its copy.
    RepairUnneeded,
    /// The original of what counts as repaired had arrived, and what acknowledged it was late on the path.
    CopySpare(Spare),
    /// The answer had stood on the path for so long at least: of what is left of the wait nobody knows whose it was.
    AnswerStood { server: Side, ns: Duration, packets: [u64; 2] },
    /// A timer ran from `from` on, all the while that its sender waited for these.
    TimerRan { waits: &'a [Suspect], from: Instant, sender: Side },
    /// The way to the peer proves to be shorter: acknowledgements that seemed prompt had been held back.
    AcknowledgementsHeldBack { sender: Side },
    /// What Nagle held left whole with `packet`: bytes that Nagle holds later were written later, and the hold before them had delayed
    /// nothing.
    TailLeftWhole { packet: u64, sender: Side },
    /// A full segment left right behind a tail that Nagle had held: its writer had slept for room in its send buffer all the time.
    WriterSlept { tail: Tail, packet: u64, sender: Side },
    /// The application wrote `packet` at its own pace: what had held earlier bytes meanwhile delayed nothing.
    OwnPace { packet: u64, sender: Side },
    /// A beat has shown: up to so much of what the application may have taken before was the pace as well.
    BeatShown { pacing: &'a Charge, unsure: Duration, sender: Side },
    /// The link's rate has shown: so much of what was charged to this cause was not its. Whose it was says `bill/early.rs`.
    RateShown { cause: Cause, ns: Duration, sender: Side },
    /// Flights go on as no window's do: what a start was charged, the send buffer may have held.
    NoWindow { cause: Cause, ns: Duration, packets: [u64; 3], sender: Side },
    /// ... and what it may have held, it has likely held.
    BufferShown { sender: Side },
    /// What was repaired had arrived: a host dropped it, in this form.
    Dropped { by: Side, form: Form },
    /// What seemed to be lost before an answer came with it: what that was charged was likely the server's own time.
    NoneLost { server: Side, packets: [u64; 2] },
    /// What was repaired may have arrived: it is no more than likely the path's.
    MayBeDropped,
    /// What may have been one message may be many, of this form.
    MayBeMany { sender: Side, form: Form },
    /// A message goes on in so many pieces, for so long, that it may be a stream: its sender's pauses are no more than likely a wait.
    MayBeStream { sender: Side },
    /// What was billed to the server was a cork's (`rules/cork.rs`), as surely as this.
    Corked { server: Side, detail: Detail, confidence: Confidence },
    /// What was billed to the server may have been something else: a cork's, or the time until there was news.
    MayBeOther { server: Side, form: Form },
    /// It was the time until there was news: nobody waited for an answer.
    News { server: Side },
    /// The messages set up TLS: their round trips are that handshake's.
    SetUpTls { asker: Side },
    /// The capture's clock was set meanwhile, on by so much: nobody took that time.
    ClockSet { ns: Duration, asker: Side, packets: [u64; 2] },
    /// It rests on a guess.
    Guessed(Guess),
}

/// Where charges of a path stand, from those that may still not count to those that do.
pub(crate) struct Accounts<'a> {
    /// Of retransmissions that may have repaired nothing.
    pub pending: Option<&'a mut Account>,
    /// What blocked the sender since the application last wrote at its own pace.
    pub blocked: Option<&'a mut Account>,
    pub settled: &'a mut Account,
}

impl Accounts<'_> {
    /// Takes back up to `ns` of a cause, of what is settled last. Returns how much that was.
    fn take_back(&mut self, cause: Cause, sender: Side, ns: Duration) -> Duration {
        let mut left = ns;
        let open = [self.pending.as_deref_mut(), self.blocked.as_deref_mut()];
        for account in open.into_iter().flatten().chain([&mut *self.settled]) {
            left -= account.take_back(cause, sender, left);
        }
        ns - left
    }

    /// What a copy was charged the path had taken to bring what acknowledges the first one. A probe leaves sooner than hosts hold that back for.
    fn on_spare(self, Spare { sender, ns, probe, packets }: Spare) -> Duration {
        let mut left = [(Cause::Rto, ns, Confidence::Likely), (Cause::Loss, probe, Confidence::Possible)];
        for account in self.pending.into_iter().chain([self.settled]) {
            for (cause, left, sure) in &mut left {
                let late = account.take_back(*cause, sender, *left);
                if late.is_positive() {
                    let charge = Charge::new(Cause::Queueing, sender, late, *sure);
                    account.charge(&Charge { evidence: packets, ..charge });
                }
                *left -= late;
            }
        }
        ns + probe - left[0].1 - left[1].1
    }

    /// What a loss before the answer was charged the server had taken.
    fn on_none_lost(mut self, server: Side, [begins, ends]: [u64; 2]) -> Duration {
        let ns = self.take_back(Cause::Rto, server, Duration::MAX);
        let own = Charge::new(Cause::ServerThink, server, ns, Confidence::Likely);
        self.settled.charge(&own.evidence(begins, ends));
        ns
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
    /// Revises what is settled.
    pub(crate) fn revise(&mut self, revision: Revision<'_>) -> Duration {
        revision.apply(Accounts { pending: None, blocked: None, settled: self })
    }
}

impl Revision<'_> {
    /// Changes what stands in these accounts. Returns how much was taken back or moved, where it may be a part.
    pub(crate) fn apply(self, mut on: Accounts<'_>) -> Duration {
        match self {
            Self::RepairNeeded => {
                let both = [on.blocked, on.pending].into_iter().flatten();
                both.for_each(|account| on.settled.absorb(account));
            }
            Self::RepairUnneeded => on.pending.into_iter().for_each(Account::clear),
            Self::CopySpare(spare) => return on.on_spare(spare),
            Self::AnswerStood { server, ns, packets } => return on.settled.let_stand(server, ns, packets),
            Self::TimerRan { waits, from, sender } => return on.on_timer(waits, from, sender),
            Self::AcknowledgementsHeldBack { sender } => {
                for account in [on.blocked, on.pending, Some(on.settled)].into_iter().flatten() {
                    account.rename(Cause::Nagle, Cause::NagleDelayedAck, sender);
                }
            }
            Self::TailLeftWhole { packet, sender } => {
                let Some(blocked) = on.blocked else { return Duration::ZERO };
                let mut held = |cause| blocked.take_back(cause, sender, Duration::MAX);
                let held = held(Cause::Nagle) + held(Cause::NagleDelayedAck);
                blocked.charge(&own_pace(held, packet, sender));
                return held;
            }
            Self::WriterSlept { tail, packet, sender } => {
                let slept = on.take_back(tail.cause, sender, tail.ns);
                let by = send_buffer(slept, sender, [tail.packet, packet, 0], Form::BehindTail);
                on.blocked.into_iter().for_each(|blocked| blocked.charge(&by));
                return slept;
            }
            Self::OwnPace { packet, sender } => {
                let Some(blocked) = on.blocked else { return Duration::ZERO };
                on.settled.charge(&own_pace(blocked.total(), packet, sender));
                blocked.clear();
            }
            Self::BeatShown { pacing, unsure, sender } => {
                return on.settled.keep_beat(pacing, unsure, sender);
            }
            Self::RateShown { cause, ns, sender } => return on.take_back(cause, sender, ns),
            Self::NoWindow { cause, ns, packets, sender } => {
                let ns = on.take_back(cause, sender, ns);
                on.settled.charge(&send_buffer(ns, sender, packets, Form::Uneven));
                return ns;
            }
            Self::BufferShown { sender } => {
                let both = [on.blocked, Some(on.settled)].into_iter().flatten();
                both.for_each(|account| account.confirm(Cause::SendBuffer, sender));
            }
            Self::Dropped { by, form } => on.settled.blame_repairs(by, form),
            Self::NoneLost { server, packets } => return on.on_none_lost(server, packets),
            Self::MayBeDropped => on.settled.temper_repairs(),
            Self::MayBeMany { sender, form } => on.settled.doubt(Cause::SenderThink, sender, Some(form)),
            Self::MayBeStream { sender } => on.settled.temper_pauses(sender),
            Self::Corked { server, detail, confidence } => on.settled.cork(server, detail, confidence),
            Self::MayBeOther { server, form } => on.settled.doubt(Cause::ServerThink, server, Some(form)),
            Self::News { server } => return on.settled.take_back(Cause::ServerThink, server, Duration::MAX),
            Self::SetUpTls { asker } => on.settled.rename(Cause::RoundTrip, Cause::TlsHandshake, asker),
            Self::ClockSet { ns, asker, packets } => return on.settled.leave_out(ns, asker, packets),
            Self::Guessed(guess) => on.settled.temper(|line| guess.concerns(line)),
        }
        Duration::ZERO
    }
}

/// What a loss costs.
const REPAIRS: [Cause; 3] = [Cause::Rto, Cause::Loss, Cause::SynRetransmit];

fn own_pace(ns: Duration, packet: u64, sender: Side) -> Charge {
    Charge::new(Cause::SenderThink, sender, ns, Confidence::Likely).evidence(packet, 0)
}

fn send_buffer(ns: Duration, sender: Side, [begins, ends, released]: [u64; 3], form: Form) -> Charge {
    let detail = Detail { form: Some(form), ..Detail::default() };
    let charge = Charge::new(Cause::SendBuffer, sender, ns, Confidence::Possible);
    charge.evidence(begins, ends).released_by(released).detail(detail)
}

/// What changes one account: nobody else may.
impl Account {
    fn place_of(&mut self, cause: Cause, side: Side) -> Option<usize> {
        self.open().lines.iter().position(|line| line.cause == cause && line.side == side)
    }

    /// Takes back up to `ns` of what was charged to a cause. Returns how much that was.
    fn take_back(&mut self, cause: Cause, sender: Side, ns: Duration) -> Duration {
        self.take_back_at(cause, cause.side(sender), ns)
    }

    /// So much of it nobody took: the capture's clock was set.
    fn leave_out(&mut self, ns: Duration, asker: Side, [begins, ends]: [u64; 2]) -> Duration {
        let taken = self.take_set(ns);
        let set = Charge::new(Cause::Unexplained, asker, taken, Confidence::Possible);
        self.charge(&set.evidence(begins, ends));
        taken
    }

    /// So much of what was charged to the server the path had taken, with what time stamps have shown of it before, and perhaps all, unless these had likely shown as
    /// much.
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

    /// What an application may have taken was its pace as well.
    fn keep_beat(&mut self, pacing: &Charge, unsure: Duration, sender: Side) -> Duration {
        let ns = self.take_back(Cause::SenderThink, sender, unsure);
        self.charge(&Charge { ns, ..pacing.clone() });
        ns
    }

    /// What was charged to one cause belongs to another, as far as could be told likely.
    fn rename(&mut self, from: Cause, to: Cause, sender: Side) {
        let side = from.side(sender);
        let Some(place) = self.place_of(from, side) else { return };
        let detail = self.detail_at(place);
        let line = self.remove_line(place);
        self.total -= line.ns;
        self.absorb_line(&AccountLine { cause: to, side: to.side(sender), ..line }, detail);
    }

    /// What was charged to the server a cork had held.
    fn cork(&mut self, server: Side, detail: Detail, confidence: Confidence) {
        let Some(place) = self.place_of(Cause::ServerThink, server) else { return };
        let line = self.remove_line(place);
        self.total -= line.ns;
        let mut by_confidence = [Duration::ZERO; 3];
        by_confidence[confidence as usize] = line.ns;
        let line = AccountLine { cause: Cause::Cork, by_confidence, detailed: true, ..line };
        self.absorb_line(&line, Some(detail));
    }

    /// What repairs were charged to the path was likely this end's, of this form.
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

    fn temper_repairs(&mut self) {
        self.temper(|line| REPAIRS.contains(&line.cause) && line.side == Side::Path);
    }

    fn temper_pauses(&mut self, sender: Side) {
        self.temper(|line| line.cause == Cause::SenderThink && line.side == sender);
    }

    /// What these lines say is no more than likely.
    fn temper(&mut self, which: impl Fn(&AccountLine) -> bool) {
        for line in self.open().lines.iter_mut().filter(|line| which(line)) {
            let [_, likely, certain] = &mut line.by_confidence;
            *likely += std::mem::take(certain);
        }
    }

    /// What was charged to a cause because it may have been that proves to be likely.
    fn confirm(&mut self, cause: Cause, sender: Side) {
        let side = cause.side(sender);
        if let Some(place) = self.place_of(cause, side) {
            let line = &mut self.open().lines[place];
            let possible = std::mem::take(&mut line.by_confidence[Confidence::Possible as usize]);
            line.by_confidence[Confidence::Likely as usize] += possible;
        }
    }

    /// What was charged to a cause was no more than possibly that, of this form.
    fn doubt(&mut self, cause: Cause, sender: Side, form: Option<Form>) {
        let side = cause.side(sender);
        let Written { lines, details } = self.open();
        if let Some(line) = lines.iter_mut().find(|line| line.cause == cause && line.side == side) {
            line.by_confidence = [line.ns, Duration::ZERO, Duration::ZERO];
            line.take_detail(form.map(|form| Detail { form: Some(form), ..Detail::default() }), details);
        }
    }

    fn detail_at(&mut self, place: usize) -> Option<Detail> {
        let Written { lines, details } = self.open();
        LineView(&lines[place], details).own_detail()
    }

    /// Takes a line out, and its detail: a message may be held and forgiven without end.
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

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Side = Side::Client;
    const SERVER: Side = Side::Server;

    fn ms(n: i64) -> Duration {
        Duration::from_millis(n)
    }

    fn account(of: &[(Cause, Side, i64, Confidence)]) -> Account {
        let mut account = Account::default();
        for &(cause, sender, n, confidence) in of {
            account.charge(&Charge::new(cause, sender, ms(n), confidence));
        }
        account
    }

    /// Each line as `cause side ms confidence`, in alphabetical order.
    fn lines(account: &Account) -> Vec<String> {
        let line = |line: LineView<'_>| {
            let ms = line.ns().as_nanos() / 1_000_000;
            format!("{} {} {ms} {:?}", line.cause(), line.side(), line.confidence())
        };
        let mut lines: Vec<String> = account.clone().bill().summary().map(line).collect();
        lines.sort();
        lines
    }

    /// Applies it to a path with these accounts. Returns what was moved, and what is pending, blocked and settled then.
    fn revised(
        revision: Revision<'_>,
        [pending, blocked, settled]: [&[(Cause, Side, i64, Confidence)]; 3],
    ) -> (i64, [Vec<String>; 3]) {
        let [mut pending, mut blocked, mut settled] = [pending, blocked, settled].map(account);
        let before = pending.total() + blocked.total() + settled.total();
        let all =
            Accounts { pending: Some(&mut pending), blocked: Some(&mut blocked), settled: &mut settled };
        let moved = revision.apply(all);
        let after = pending.total() + blocked.total() + settled.total();
        let nobody_waited = matches!(revision, Revision::News { .. } | Revision::RateShown { .. });
        let gone = if nobody_waited { moved } else { Duration::ZERO };
        if !matches!(revision, Revision::RepairUnneeded) {
            assert_eq!(after + gone, before, "{revision:?}");
        }
        for account in [&mut pending, &mut blocked, &mut settled] {
            assert_eq!(account.total(), account.bill().summary().map(LineView::ns).sum(), "{revision:?}");
        }
        (moved.as_nanos() / 1_000_000, [&pending, &blocked, &settled].map(lines))
    }

    use Cause::{
        Loss, Nagle, NagleDelayedAck, Pacing, Queueing, RoundTrip, Rto, SendBuffer, SenderThink, ServerThink,
        SlowStart,
    };
    use Confidence::{Certain, Likely, Possible};

    #[test]
    fn a_repair_counts_once_it_is_known_to_have_been_needed() {
        let accounts: [&[_]; 3] = [&[(Rto, SERVER, 210, Certain)], &[(SlowStart, SERVER, 5, Likely)], &[]];
        let [pending, blocked, settled] = revised(Revision::RepairNeeded, accounts).1;
        assert!(pending.is_empty() && blocked.is_empty());
        assert_eq!(settled, ["rto path 210 Certain", "slow-start server 5 Likely"]);
        let [pending, blocked, settled] = revised(Revision::RepairUnneeded, accounts).1;
        assert!(pending.is_empty() && settled.is_empty());
        assert_eq!(blocked, ["slow-start server 5 Likely"]);
    }

    #[test]
    fn what_a_copy_was_charged_is_the_paths_delay() {
        let accounts: [&[_]; 3] = [&[(Rto, SERVER, 210, Certain)], &[], &[(Rto, SERVER, 400, Certain)]];
        let spare = Spare { sender: SERVER, ns: ms(310), probe: Duration::ZERO, packets: [7, 8, 0] };
        let [pending, _, settled] = revised(Revision::CopySpare(spare), accounts).1;
        assert_eq!(pending, ["queueing path 210 Likely"]);
        assert_eq!(settled, ["queueing path 100 Likely", "rto path 300 Certain"]);
    }

    /// Of a wait that began before the timer, only what came behind that was its.
    #[test]
    fn a_timer_takes_what_was_waited_for_while_it_ran() {
        let at = |n: i64| Instant::from_nanos(n * 1_000_000);
        let wait = |ended, cause, n| Suspect::of(at(ended), cause, SERVER, ms(n));
        let waits = [wait(110, SlowStart, 30), wait(200, Loss, 80)];
        let revision = Revision::TimerRan { waits: &waits, from: at(100), sender: SERVER };
        let (moved, [pending, blocked, settled]) = revised(
            revision,
            [
                &[(Loss, SERVER, 60, Likely)],
                &[(SlowStart, SERVER, 30, Likely)],
                &[(Loss, SERVER, 50, Likely)],
            ],
        );
        assert_eq!(moved, 90); // 10 of the first, all of the second
        assert!(pending.is_empty());
        assert_eq!(blocked, ["slow-start server 20 Likely"]);
        assert_eq!(settled, ["loss path 30 Likely", "rto path 90 Likely"]);
    }

    #[test]
    fn acknowledgements_that_were_held_back_are_the_receivers_too() {
        let revision = Revision::AcknowledgementsHeldBack { sender: CLIENT };
        let held: &[_] = &[(Nagle, CLIENT, 40, Likely)];
        let (_, [pending, blocked, settled]) = revised(revision, [&[], held, held]);
        assert!(pending.is_empty());
        assert_eq!(
            (blocked, settled.clone()),
            (settled, vec!["nagle-delayed-ack client 40 Likely".to_owned()])
        );
    }

    #[test]
    fn a_tail_that_left_whole_had_delayed_nothing() {
        let revision = Revision::TailLeftWhole { packet: 9, sender: CLIENT };
        let blocked: &[_] = &[(Nagle, CLIENT, 10, Likely), (NagleDelayedAck, CLIENT, 40, Certain)];
        let (moved, [_, blocked, settled]) = revised(revision, [&[], blocked, &[(Nagle, CLIENT, 7, Likely)]]);
        assert_eq!((moved, blocked), (50, vec!["sender-think client 50 Likely".to_owned()]));
        assert_eq!(settled, ["nagle client 7 Likely"]); // what was settled before stays
    }

    #[test]
    fn a_writer_that_slept_was_not_held_by_nagle() {
        let tail = Tail { packet: 8, cause: NagleDelayedAck, ns: ms(40), flight: 20_000 };
        let revision = Revision::WriterSlept { tail, packet: 9, sender: SERVER };
        let (moved, [_, blocked, settled]) = revised(
            revision,
            [&[], &[(NagleDelayedAck, SERVER, 30, Likely)], &[(NagleDelayedAck, SERVER, 25, Likely)]],
        );
        assert_eq!((moved, blocked), (40, vec!["send-buffer server 40 Possible".to_owned()]));
        assert_eq!(settled, ["nagle-delayed-ack server 15 Likely"]);
    }

    #[test]
    fn what_an_application_wrote_at_its_own_pace_nothing_had_held() {
        let revision = Revision::OwnPace { packet: 9, sender: SERVER };
        let (_, [_, blocked, settled]) =
            revised(revision, [&[], &[(SlowStart, SERVER, 30, Likely), (Nagle, SERVER, 4, Likely)], &[]]);
        assert!(blocked.is_empty());
        assert_eq!(settled, ["sender-think server 34 Likely"]);
    }

    #[test]
    fn a_beat_was_kept_before_it_showed() {
        let pacing = Charge::new(Pacing, SERVER, ms(3), Possible);
        let revision = Revision::BeatShown { pacing: &pacing, unsure: ms(12), sender: SERVER };
        let (moved, [_, _, settled]) = revised(revision, [&[], &[], &[(SenderThink, SERVER, 20, Possible)]]);
        assert_eq!(
            (moved, settled),
            (12, vec!["pacing server 12 Possible".to_owned(), "sender-think server 8 Possible".to_owned()])
        );
    }

    #[test]
    fn a_rate_that_shows_takes_back_what_was_not_its() {
        let revision = Revision::RateShown { cause: SlowStart, ns: ms(25), sender: SERVER };
        let (moved, [_, blocked, settled]) =
            revised(revision, [&[], &[(SlowStart, SERVER, 20, Likely)], &[(SlowStart, SERVER, 20, Likely)]]);
        assert!(blocked.is_empty());
        assert_eq!((moved, settled), (25, vec!["slow-start server 15 Likely".to_owned()]));
    }

    #[test]
    fn flights_that_no_window_explains_are_the_send_buffers() {
        let revision =
            Revision::NoWindow { cause: SlowStart, ns: ms(50), packets: [1, 2, 0], sender: SERVER };
        let accounts: [&[_]; 3] =
            [&[], &[(SlowStart, SERVER, 20, Likely)], &[(SlowStart, SERVER, 20, Likely)]];
        let (moved, [_, blocked, settled]) = revised(revision, accounts);
        assert!(blocked.is_empty());
        assert_eq!((moved, settled), (40, vec!["send-buffer server 40 Possible".to_owned()])); // no more than there is
        let possible: &[_] = &[(SendBuffer, SERVER, 20, Possible)];
        let (_, [_, blocked, settled]) =
            revised(Revision::BufferShown { sender: SERVER }, [&[], possible, possible]);
        assert_eq!((&blocked, &settled), (&vec!["send-buffer server 20 Likely".to_owned()], &blocked));
    }

    #[test]
    fn what_had_arrived_and_was_repaired_the_host_dropped() {
        let settled: &[_] = &[(Rto, CLIENT, 1_000, Certain), (Loss, CLIENT, 30, Certain)];
        let (_, [_, _, dropped]) =
            revised(Revision::Dropped { by: SERVER, form: Form::AcceptQueue }, [&[], &[], settled]);
        assert_eq!(dropped, ["loss server 30 Likely", "rto server 1000 Likely"]);
        let (_, [_, _, doubted]) = revised(Revision::MayBeDropped, [&[], &[], settled]);
        assert_eq!(doubted, ["loss path 30 Likely", "rto path 1000 Likely"]);
    }

    #[test]
    fn a_wait_for_news_is_nobodys() {
        let settled: &[_] = &[(ServerThink, SERVER, 30_000, Likely), (RoundTrip, SERVER, 10, Certain)];
        let (_, [_, _, doubted]) =
            revised(Revision::MayBeOther { server: SERVER, form: Form::OrNews }, [&[], &[], settled]);
        assert_eq!(doubted, ["round-trip path 10 Certain", "server-think server 30000 Possible"]);
        let (moved, [_, _, left]) = revised(Revision::News { server: SERVER }, [&[], &[], settled]);
        assert_eq!((moved, left), (30_000, vec!["round-trip path 10 Certain".to_owned()]));
        let many = Revision::MayBeMany { sender: SERVER, form: Form::OrPushes };
        let (_, [_, _, pushes]) = revised(many, [&[], &[], &[(SenderThink, SERVER, 500, Certain)]]);
        assert_eq!(pushes, ["sender-think server 500 Possible"]);
    }

    #[test]
    fn a_reply_that_a_cork_held_was_not_its_server_s() {
        let settled: &[_] = &[(RoundTrip, SERVER, 4, Certain), (ServerThink, SERVER, 206, Likely)];
        let detail = Detail { form: Some(Form::WholeReply), ..Detail::default() };
        let corked = |confidence| Revision::Corked { server: SERVER, detail, confidence };
        let (_, [_, _, likely]) = revised(corked(Likely), [&[], &[], settled]);
        assert_eq!(likely, ["cork server 206 Likely", "round-trip path 4 Certain"]);
        let (_, [_, _, possible]) = revised(corked(Possible), [&[], &[], settled]);
        assert_eq!(possible, ["cork server 206 Possible", "round-trip path 4 Certain"]);
        let (_, [_, _, maybe]) =
            revised(Revision::MayBeOther { server: SERVER, form: Form::OrCork }, [&[], &[], settled]);
        assert_eq!(maybe, ["round-trip path 4 Certain", "server-think server 206 Possible"]);
    }

    #[test]
    fn what_is_left_of_an_answer_that_stood_is_no_more_than_possibly_its_server_s() {
        let settled: &[_] = &[(RoundTrip, SERVER, 19, Certain), (ServerThink, SERVER, 273, Likely)];
        let stood = |ns| Revision::AnswerStood { server: SERVER, ns: ms(ns), packets: [1, 2] };
        let (moved, [_, _, some]) = revised(stood(200), [&[], &[], settled]);
        let left =
            ["queueing path 200 Likely", "round-trip path 19 Certain", "server-think server 73 Possible"];
        assert_eq!((moved, some), (200, left.map(str::to_owned).to_vec()));
        let (moved, [_, _, all]) = revised(stood(400), [&[], &[], settled]);
        assert_eq!((moved, all.len()), (273, 2));
        // Frames 46 to 60 of a small site's: stamps say that it was 489 ms late, and its copy, which came with it, of 200.
        let settled: &[_] = &[(Queueing, SERVER, 489, Likely), (ServerThink, SERVER, 395, Likely)];
        let (moved, [_, _, told]) = revised(stood(200), [&[], &[], settled]);
        let told: Vec<_> = told.iter().map(String::as_str).collect();
        assert_eq!((moved, told), (0, vec!["queueing path 489 Likely", "server-think server 395 Likely"]));
    }

    #[test]
    fn round_trips_of_messages_that_set_up_tls_are_that_handshakes() {
        let (_, [_, _, settled]) =
            revised(Revision::SetUpTls { asker: CLIENT }, [&[], &[], &[(RoundTrip, CLIENT, 20, Certain)]]);
        assert_eq!(settled, ["tls-handshake client 20 Certain"]);
    }

    /// A stream that Nagle holds is charged and forgiven again and again.
    #[test]
    fn what_is_taken_back_leaves_nothing_behind() {
        let mut account = Account::default();
        let hold = |bytes, cause| {
            let detail = Detail { held_bytes: Some(bytes), ..Detail::default() };
            Charge::new(cause, Side::Client, ms(40), Likely).detail(detail)
        };
        account.charge(&hold(1, Nagle));
        for bytes in 2..1_000 {
            account.charge(&hold(bytes, NagleDelayedAck));
            account.charge(&hold(7, Cause::Cork));
            let taken = account.take_back(NagleDelayedAck, Side::Client, Duration::MAX);
            assert_eq!((taken, account.open().details.len()), (ms(40), 2));
            account.rename(Nagle, NagleDelayedAck, Side::Client);
            account.rename(NagleDelayedAck, Nagle, Side::Client);
        }
        let mut held =
            |cause| account.bill().summary().find(|line| line.cause() == cause)?.detail().held_bytes;
        assert_eq!([held(Nagle), held(Cause::Cork)], [Some(1), Some(7)]);
    }
}
