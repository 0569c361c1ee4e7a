//! Was an answer released by what another client brought to its server?
//!
//! A request that waits for news (a long poll) is answered when something happens: another client says
//! something, or a timer ends all waits. Its server did not work on it meanwhile. What one client asks on
//! several connections may wait for the same lock, and shows nothing.

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

use crate::words::mark::{Mark, Role};

/// An answer is late by human times from here on. Source: none written down.
const LATE_MIN: Duration = Duration::from_secs(1);
/// Answers as late as this seldom wait for the same lock or the same pause of their server. Source: none
/// written down.
const LATE_TOGETHER: Duration = Duration::from_secs(10);
/// They leave together within this. Source: none written down.
const TOGETHER: Duration = Duration::from_millis(1);
/// A request has released an answer if that comes within one part in this many of the time for which the
/// server had heard no other: by chance, one in as many does. Source: none written down.
const CHANCE: i64 = 1_000;
/// Servers remembered. A bound on memory.
const PLACES: usize = 64;

/// What servers were last asked, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases {
    /// By a hash of the server's end; the latest of those with one hash.
    servers: Vec<Option<Server>>,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    end: Endpoint,
    /// The client of its last request, when that came, and how long there had been none before.
    asked: (u128, Instant, Duration),
    /// The client of its last answer that was [`LATE_TOGETHER`], and when that left.
    late: Option<(u128, Instant)>,
}

impl Releases {
    /// Notes the marks of a segment of a connection whose last request came at `asked_at`; marks a late
    /// answer that something else may have released. Returns when its last request came now.
    pub(crate) fn note(
        &mut self,
        segment: &Segment,
        marks: &mut [Mark],
        mut asked_at: Option<Instant>,
    ) -> Option<Instant> {
        for mark in marks.iter_mut().filter(|mark| mark.first && !mark.by_peer) {
            match mark.role {
                Role::Asks => {
                    asked_at = Some(segment.at);
                    self.on_request(segment);
                }
                Role::Answers => {
                    let waited = asked_at.map_or(Duration::ZERO, |asked_at| segment.at - asked_at);
                    mark.released = waited >= LATE_MIN && self.has_released(segment, waited);
                }
                _ => {}
            }
        }
        asked_at
    }

    fn on_request(&mut self, segment: &Segment) {
        let (end, at) = (segment.dst, segment.at);
        if self.servers.is_empty() {
            self.servers.resize(PLACES, None);
        }
        let slot = &mut self.servers[place(end)];
        let known = slot.filter(|server| server.end == end);
        // Of a server without an earlier request, nothing says how seldom it is asked.
        let quiet = known.map_or(Duration::ZERO, |server| at - server.asked.1);
        *slot = Some(Server {
            end,
            asked: (segment.src.addr, at, quiet),
            late: known.and_then(|server| server.late),
        });
    }

    #[cold]
    fn has_released(&mut self, segment: &Segment, waited: Duration) -> bool {
        let slot = self.servers.get_mut(place(segment.src)).and_then(Option::as_mut);
        let Some(server) = slot.filter(|server| server.end == segment.src) else { return false };
        let (client, (asker, asked_at, quiet)) = (segment.dst.addr, server.asked);
        let behind = segment.at - asked_at;
        let by_request = asker != client && behind >= Duration::ZERO && behind <= quiet.divided_by(CHANCE);
        let mut together = false;
        // A server that is asked meanwhile may be overloaded, and catch up.
        if waited >= LATE_TOGETHER && behind >= LATE_TOGETHER {
            let before = server.late.replace((client, segment.at));
            together = before.is_some_and(|(other, at)| other != client && segment.at - at <= TOGETHER);
        }
        by_request || together
    }
}

fn place(end: Endpoint) -> usize {
    let addr = (end.addr ^ end.addr >> 64) as u64;
    ((addr ^ u64::from(end.port) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES
}
