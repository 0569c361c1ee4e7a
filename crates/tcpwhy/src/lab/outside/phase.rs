//! What did one direction's part of an exchange wait for? For the link while it worked on these
//! bytes; otherwise for what held the next packet.

use tcpwhy_lab::workload::{Event, Sample};

use super::class::{ANY, Class};
use super::rows::{Row, Rows};
use super::spent::Spent;

/// Shorter gaps are the host's own work.
pub(super) const HOST_GAP_NS: i64 = 200_000;
/// TCP_CA_Recovery, include/uapi/linux/tcp.h.
const RECOVERY: u8 = 3;
const APP: u16 = Class::App.bit();

/// One direction of a connection.
pub(super) struct Phase<'a> {
    pub(super) rows: &'a Rows,
    /// Samples of the sender's kernel.
    pub(super) samples: &'a [Sample],
    /// The sending application's write calls, in order.
    pub(super) writes: Vec<&'a Event>,
}

impl Phase<'_> {
    /// Attributes the time from `from` until the bytes before `end` have all been delivered.
    /// Returns when that was; `None` if the path's records do not have all of them.
    pub(super) fn spend(&self, from: i64, end: i64, spent: &mut Spent) -> Option<i64> {
        let last = self.rows.completes(end)?;
        let delivered = last.delivered?;
        let written = self.call(end - 1).map_or(from, |call| call.start_ns);
        let mut at = from;
        let mut sent_to: Option<i64> = None;
        for row in self.rows.data.iter().filter(|row| row.starts <= last.starts) {
            let again = sent_to.is_some_and(|to| row.end() <= to);
            let in_flight_to = sent_to.unwrap_or(row.offset);
            if !again {
                sent_to = Some(row.end());
            }
            if row.ends < from {
                continue;
            }
            if row.starts > at {
                let until = row.starts.min(last.ends);
                if again {
                    let class = if until - at < HOST_GAP_NS { ANY } else { Class::Repair.bit() };
                    spent.add_either(class, until - at);
                } else {
                    self.idle(at, until, row, in_flight_to, written, spent);
                }
                at = until;
            }
            if row.delivered.is_some() && row.ends.min(last.ends) > at {
                spent.add(Class::Bandwidth, row.ends.min(last.ends) - at);
                at = row.ends.min(last.ends);
            }
        }
        // The rest is the last packet's time on the path.
        let left = (delivered - at).max(0);
        let trip = last.delayed.min(left);
        let queued = last.queued.min(left - trip);
        spent.add(Class::Trip, trip);
        spent.add(Class::Queueing, queued);
        spent.add_any(left - trip - queued);
        Some(delivered)
    }

    /// The server never blocked in a read again: as far as bytes before `end` arrived after `from`
    /// all the same, it waited for them, or they came at its own pace. Returns when the last of
    /// them arrived.
    pub(super) fn read_slowly(&self, from: i64, end: i64, spent: &mut Spent) -> Option<i64> {
        if self.rows.completes(end)?.delivered? <= from {
            return Some(from);
        }
        let mut came = Spent::default();
        let delivered = self.spend(from, end, &mut came)?;
        spent.add_or(&came, Class::App);
        Some(delivered)
    }

    /// The call that wrote this byte.
    fn call(&self, offset: i64) -> Option<&Event> {
        let at = self.writes.partition_point(|call| begins(call) <= offset).checked_sub(1)?;
        Some(self.writes[at])
    }

    fn is_writing(&self, at: i64) -> bool {
        let behind = self.writes.partition_point(|call| call.start_ns <= at);
        behind > 0 && at < self.writes[behind - 1].end_ns
    }

    /// The link was idle from `from` to `until`, and then got new data: what held the sender? The
    /// message's last byte was `written` at that time.
    fn idle(&self, from: i64, until: i64, row: &Row, sent_to: i64, written: i64, spent: &mut Spent) {
        if until - from < HOST_GAP_NS {
            spent.add_any(until - from);
            return;
        }
        // Before its call, the kernel cannot have had the data.
        let there = self.call(row.offset).map_or(from, |call| call.start_ns).clamp(from, until);
        let ask = |sample: &Sample, at, early| self.held(sample, at, row, sent_to, early, written);
        let late = self.parts(there, until, |sample, at| ask(sample, at, false));
        let was_held =
            until - there >= HOST_GAP_NS && late.iter().any(|(set, _)| set & Class::Held.bit() != 0);
        let early = self.parts(from, there, |sample, at| match ask(sample, at, true) {
            // What held the packet later would already have held it: both happened at the same
            // time.
            APP if was_held && sample.tcp_info.unacked > Some(0) => APP | Class::Held.bit(),
            set => set,
        });
        for (set, ns) in early.into_iter().chain(late) {
            spent.add_either(set, ns);
        }
    }

    /// Cuts a time into parts, one for each sample of the kernel in it. Without a sample, the
    /// previous one applies until the application writes again.
    fn parts(&self, from: i64, until: i64, ask: impl Fn(&Sample, i64) -> u16) -> Vec<(u16, i64)> {
        let first = self.samples.partition_point(|sample| sample.at_ns < from);
        let behind = self.samples.partition_point(|sample| sample.at_ns < until);
        let called =
            |sample: &Sample| self.writes.iter().any(|call| (sample.at_ns..=from).contains(&call.start_ns));
        let before = first.saturating_sub(1);
        let asked = &self.samples[if first < behind { first } else { before }..behind];
        let asked = if first == behind && asked.iter().any(called) { &[] } else { asked };
        if until - from < HOST_GAP_NS || asked.is_empty() {
            return vec![(ANY, until - from)];
        }
        let ns = (until - from) / asked.len() as i64;
        asked.iter().map(|sample| (ask(sample, sample.at_ns.clamp(from, until)), ns)).collect()
    }

    /// What this sample says about the next packet. `early`: the application had not called for it
    /// yet.
    fn held(&self, sample: &Sample, at: i64, row: &Row, sent_to: i64, early: bool, written: i64) -> u16 {
        let info = &sample.tcp_info;
        let [unacked, cwnd, mss, unsent] = [info.unacked, info.snd_cwnd, info.snd_mss, info.notsent_bytes]
            .map(|value| i64::from(value.unwrap_or(0)));
        let writing = self.is_writing(at);
        if early && !writing {
            return APP;
        }
        let class = if info.ca_state.is_some_and(|state| state >= RECOVERY) {
            Class::Repair.bit() | Class::Window.bit()
        } else if unsent > 0 {
            let in_flight = sent_to - info.bytes_acked.unwrap_or(0) as i64;
            let closed = info.snd_wnd.is_some_and(|window| in_flight + mss.min(unsent) > i64::from(window));
            if closed && unacked < cwnd {
                Class::Receiver.bit()
            } else if unacked < cwnd && row.payload < mss {
                Class::Held.bit()
            } else {
                Class::Window.bit()
            }
        } else if writing && unacked > 0 {
            let full = if unacked >= cwnd { Class::Window.bit() } else { 0 };
            Class::SendBuffer.bit() | full
        } else {
            ANY
        };
        // The application had not written everything yet, and nothing kept it from writing: what
        // held the rest delayed nothing that its own pace did not.
        if at < written && !writing { class | APP } else { class }
    }
}

fn begins(call: &Event) -> i64 {
    call.offset.unwrap_or(0) as i64
}
