//! Is this a standing queue? CoDel (RFC 8289) drops at the head while packets stay longer than a
//! target.

use tcpwhy_wire::{Duration, Instant};

/// The state of RFC 8289, 5.3, with its names.
#[derive(Clone, Debug)]
pub struct Codel {
    target: Duration,
    interval: Duration,
    /// When the sojourn time will have been above the target for an interval.
    first_above_time: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl Codel {
    /// Accepts a standing queue of `target` and reacts after `interval`; RFC 8289, 4 argues for 5 ms and 100 ms.
    pub const fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            dropping: false,
            drop_next: Instant::MIN,
            count: 0,
            last_count: 0,
        }
    }

    /// Whether a packet that comes to the head of the queue at `now`, after `sojourn`, is sent.
    /// Call it for each packet taken from the queue until one is kept. `backlog_bytes` are behind
    /// it in the queue.
    pub fn keeps(&mut self, sojourn: Duration, backlog_bytes: u64, now: Instant) -> bool {
        let ok_to_drop = self.is_standing(sojourn, backlog_bytes, now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
                return true;
            }
            if now < self.drop_next {
                return true;
            }
            self.count += 1;
            self.drop_next = self.control_law(self.drop_next);
            return false;
        }
        if !ok_to_drop {
            return true;
        }
        // RFC 8289, 5.5: if the last dropping state ended a short while ago, resume its rate.
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now - self.drop_next < self.interval.times(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        false
    }

    fn is_standing(&mut self, sojourn: Duration, backlog_bytes: u64, now: Instant) -> bool {
        if sojourn < self.target || backlog_bytes <= MAXPACKET_BYTES {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.interval);
                false
            }
            Some(time) => now >= time,
        }
    }

    /// `t + interval / sqrt(count)`, in integers so that every platform agrees.
    fn control_law(&self, t: Instant) -> Instant {
        // interval / sqrt(count) = sqrt(interval^2 / count).
        let interval = self.interval.as_nanos().unsigned_abs();
        let square = u128::from(interval) * u128::from(interval) / u128::from(self.count.max(1));
        t + Duration::from_nanos(square.isqrt() as i64)
    }
}

/// With less than a packet's worth of backlog nothing is dropped (RFC 8289, 5.2: `maxpacket`).
const MAXPACKET_BYTES: u64 = 1514;
