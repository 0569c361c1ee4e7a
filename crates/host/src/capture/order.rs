//! In what order did the packets pass? Two processors that tap packets at once stamp them before
//! they take the ring's lock (`tpacket_rcv`), so neighbours can be in the wrong order in the ring,
//! by microseconds. Holding packets briefly restores the order; a clock that was set back is a
//! different case and is left as it is.

use std::collections::VecDeque;

/// How far apart two packets can be and still have raced for the lock. A processor does not take
/// longer between time stamp and lock unless an interrupt storm or a hypervisor delays it.
const HORIZON_NS: i64 = 1_000_000;

/// A packet on its way from the ring to the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) at_ns: i64,
    pub(super) len: u32,
    pub(super) data: Vec<u8>,
}

/// Holds packets for as long as an earlier one may still come.
#[derive(Default)]
pub(super) struct Order {
    /// In order of time; equal times in the ring's order.
    held: VecDeque<Held>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Order {
    /// An empty buffer for the next packet's bytes.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes the packet; passes on those that no later packet can precede.
    pub(super) fn push<E>(
        &mut self,
        packet: Held,
        each: &mut impl FnMut(&Held) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.held.back().is_some_and(|last| packet.at_ns < last.at_ns - HORIZON_NS) {
            self.flush(each)?;
        }
        let behind = self.held.iter().rev().take_while(|other| other.at_ns > packet.at_ns).count();
        self.held.insert(self.held.len() - behind, packet);
        let newest = self.held.back().map_or(0, |last| last.at_ns);
        while self.held.front().is_some_and(|first| first.at_ns < newest - HORIZON_NS) {
            self.release(each)?;
        }
        Ok(())
    }

    /// Passes on everything.
    pub(super) fn flush<E>(&mut self, each: &mut impl FnMut(&Held) -> Result<(), E>) -> Result<(), E> {
        while !self.held.is_empty() {
            self.release(each)?;
        }
        Ok(())
    }

    fn release<E>(&mut self, each: &mut impl FnMut(&Held) -> Result<(), E>) -> Result<(), E> {
        let Some(mut packet) = self.held.pop_front() else { return Ok(()) };
        each(&packet)?;
        packet.data.clear();
        self.spare.push(packet.data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn pass(times_ns: &[i64]) -> Vec<i64> {
        let mut out = Vec::new();
        let mut order = Order::default();
        let mut each = |held: &Held| {
            out.push(held.at_ns);
            Ok::<(), Infallible>(())
        };
        for &at_ns in times_ns {
            let data = order.buffer();
            let Ok(()) = order.push(Held { at_ns, len: 0, data }, &mut each);
        }
        let Ok(()) = order.flush(&mut each);
        out
    }

    #[test]
    fn neighbours_that_raced_for_the_lock_are_put_right() {
        assert_eq!(pass(&[10, 30, 20, 40, 35, 5]), [5, 10, 20, 30, 35, 40]);
    }

    #[test]
    fn a_clock_that_was_set_back_is_left_alone() {
        let ms = 1_000_000;
        assert_eq!(pass(&[100 * ms, 101 * ms, 50 * ms, 51 * ms]), [100 * ms, 101 * ms, 50 * ms, 51 * ms]);
    }

    #[test]
    fn a_packet_waits_no_longer_than_the_horizon() {
        let mut order = Order::default();
        let mut seen = 0;
        for at_ns in [0, 500_000, 1_500_000] {
            let mut each = |_: &Held| {
                seen += 1;
                Ok::<(), Infallible>(())
            };
            let Ok(()) = order.push(Held { at_ns, len: 0, data: Vec::new() }, &mut each);
        }
        assert_eq!(seen, 1);
    }
}
