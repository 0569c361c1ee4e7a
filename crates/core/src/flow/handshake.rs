//! How long did the handshake take, and was a SYN or a SYN-ACK lost?

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::report::{Confidence, Detail};

/// No SYN-ACK that was not lost takes this long to be repeated (TCP_TIMEOUT_INIT, 1 s since Linux 3.1).
const LOST_AFTER: Duration = Duration::from_millis(900);
/// SYNs whose time stamps are remembered, to tell which of them was answered.
const SYNS_REMEMBERED: usize = 8;

/// The handshake of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub first_syn: (Instant, u64),
    /// The first ones with a time stamp, and what it says.
    syns: Vec<(Instant, u32)>,
    syn_count: u32,
    last_syn: (Instant, u64),
    first_syn_ack: Option<Instant>,
    pub last_syn_ack: Option<(Instant, u64)>,
    syn_ack_count: u32,
    /// The SYN that the SYN-ACK echoes, where time stamps tell.
    answered: Option<Instant>,
    /// What the SYN carried, until that is answered.
    pub early: Option<Box<Segment>>,
    /// The server took that, and the request did not wait for the handshake.
    pub is_fast: bool,
    pub done: bool,
}

impl Setup {
    pub(crate) fn new(syn: &Segment) -> Self {
        let mut setup = Self {
            first_syn: (syn.at, syn.packet),
            syns: Vec::new(),
            syn_count: 0,
            last_syn: (syn.at, syn.packet),
            first_syn_ack: None,
            last_syn_ack: None,
            syn_ack_count: 0,
            answered: None,
            early: None,
            is_fast: false,
            done: false,
        };
        setup.on_syn(syn);
        setup
    }

    pub(crate) fn on_syn(&mut self, syn: &Segment) {
        if self.syns.len() < SYNS_REMEMBERED
            && let Some(stamps) = syn.options.timestamps
        {
            self.syns.push((syn.at, stamps.val));
        }
        self.syn_count = self.syn_count.saturating_add(1);
        self.last_syn = (syn.at, syn.packet);
    }

    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Segment) {
        if self.done {
            return;
        }
        self.first_syn_ack.get_or_insert(syn_ack.at);
        self.last_syn_ack = Some((syn_ack.at, syn_ack.packet));
        self.syn_ack_count = self.syn_ack_count.saturating_add(1);
        if let Some(stamps) = syn_ack.options.timestamps
            && self.answered.is_none()
        {
            self.answered = self.syns.iter().find(|(_, val)| *val == stamps.ecr).map(|(at, _)| *at);
        }
    }

    /// The packet that ended it, or the last one of a client that nobody answered.
    pub(crate) fn last(&self) -> Option<u64> {
        let syn = (self.syn_count > 1).then_some(self.last_syn.1);
        self.last_syn_ack.map(|(_, packet)| packet).or(syn)
    }

    /// Whether the client sent its SYN and saw nothing of it.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.last_syn_ack.is_none() && !self.done
    }

    /// Whether it did so again and again.
    pub(crate) fn is_repeated(&self) -> bool {
        self.syn_count > 1
    }

    /// What a client waited that has no SYN-ACK: until its last SYN.
    fn bill_syns(&self, account: &mut Account) {
        let form = if self.done { "syn" } else { "unanswered" };
        let detail = Detail { retransmits: Some(self.syn_count - 1), form: Some(form), ..Detail::default() };
        let waited = self.last_syn.0 - self.first_syn.0;
        let charge = Charge::new(Cause::SynRetransmit, Side::Client, waited, Confidence::Certain);
        account.charge(&charge.evidence(self.first_syn.1, self.last_syn.1).detail(detail));
    }

    /// Draws up the bill: from the first SYN until the SYN-ACK reaches the client. `client` and `server` are the round
    /// trips between the capture and the ends, of which queues took what `stood`.
    pub(crate) fn bill(
        &self,
        client: Duration,
        server: Duration,
        stood: impl Iterator<Item = Charge>,
        account: &mut Account,
    ) {
        account.clear();
        let Some((syn_ack_at, syn_ack)) = self.last_syn_ack else { return self.bill_syns(account) };
        let felt = syn_ack_at - self.first_syn.0 + client;
        let mut split = Split::of(felt);
        let excess = syn_ack_at - self.first_syn.0 - server;
        if self.syn_count > 1 || self.syn_ack_count > 1 || excess >= LOST_AFTER {
            // What the echoed time stamp shows is lost for certain; what exceeds the round trip is, if the round
            // trip is known.
            let shown = self.answered.map_or(Duration::ZERO, |at| at - self.first_syn.0);
            let repeated = self.first_syn_ack.map_or(Duration::ZERO, |at| syn_ack_at - at);
            let form = if self.syn_count > 1 && shown.is_positive() { "syn" } else { "syn-ack" };
            let detail = Detail {
                retransmits: Some(
                    self.syn_count.saturating_sub(1).max(self.syn_ack_count.saturating_sub(1)).max(1),
                ),
                form: Some(form),
                ..Detail::default()
            };
            split.take(
                Charge::new(
                    Cause::SynRetransmit,
                    Side::Client,
                    shown.max(repeated).max(excess),
                    Confidence::Certain,
                )
                .evidence(self.first_syn.1, self.last_syn.1)
                .detail(detail),
            );
        }
        for charge in stood {
            split.take(charge.evidence(self.first_syn.1, syn_ack));
        }
        let handshake = Charge::new(Cause::Handshake, Side::Client, Duration::ZERO, Confidence::Certain)
            .evidence(self.first_syn.1, syn_ack);
        account.charge_split(&split.rest(handshake));
    }
}
