//! Which request under way has this identifier, and whose last word has passed, without searching a
//! thousand of them?

use std::collections::VecDeque;

use tcpwhy_wire::Seq;

use crate::bill::asked::Ask;

/// At most this many finished requests are kept beside the open ones, in total and per identifier.
const OVER_MAX: usize = 16;

/// Each end's requests with identifiers: pairs of identifier and request number, sorted. Some may be
/// over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Numbered {
    of: [Vec<(u64, u64)>; 2],
}

impl Numbered {
    /// Adds one that is not in `asked` yet.
    pub(super) fn insert(&mut self, ask: &Ask, asked: &VecDeque<Ask>) {
        let Some(id) = ask.id else { return };
        let of = &mut self.of[ask.asker];
        if of.len() >= 2 * asked.len() + OVER_MAX {
            of.retain(|(_, n)| open(asked, *n).is_some());
        }
        let place = of.partition_point(|known| *known < (id, ask.n));
        of.insert(place, (id, ask.n));
    }

    /// An end's requests with this identifier, oldest first. Some may be over (`open`).
    pub(super) fn with(&mut self, asker: usize, id: u64, asked: &VecDeque<Ask>) -> &[(u64, u64)] {
        let of = &mut self.of[asker];
        let range = |of: &[(u64, u64)]| {
            let begin = of.partition_point(|known| known.0 < id);
            begin..begin + of[begin..].partition_point(|known| known.0 == id)
        };
        let mut places = range(of);
        if places.len() > OVER_MAX {
            let left: Vec<_> =
                of[places.clone()].iter().filter(|(_, n)| open(asked, *n).is_some()).copied().collect();
            of.splice(places, left);
            places = range(of);
        }
        &of[places]
    }

    /// Its heap size in bytes.
    pub(super) fn heap(&self) -> usize {
        self.of.iter().map(Vec::capacity).sum::<usize>() * size_of::<(u64, u64)>()
    }
}

/// The request with this number, if its reply is not complete yet.
pub(super) fn open(asked: &VecDeque<Ask>, n: u64) -> Option<&Ask> {
    let place = asked.binary_search_by_key(&n, |ask| ask.n).ok()?;
    asked.get(place).filter(|ask| !ask.is_answered)
}

/// For each end, where its last words end and the numbers of their requests, sorted by that end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ripe([VecDeque<(Seq, u64)>; 2]);

/// From this many entries on, those closed in another way are forgotten.
const MANY: usize = 2_048;

impl Ripe {
    /// Notes that the last word of a request has passed. Returns whether there are so many that some
    /// may be over.
    #[cold]
    pub(super) fn note(&mut self, ask: &Ask) -> bool {
        let (speaker, Some(last)) = ask.last_word() else { return false };
        let ends = &mut self.0[speaker];
        if ends.back().is_none_or(|(end, _)| !end.after(last.end)) {
            ends.push_back((last.end, ask.n));
        } else {
            let place = ends.partition_point(|(end, _)| !end.after(last.end));
            ends.insert(place, (last.end, ask.n));
        }
        ends.len() >= MANY
    }

    /// Forgets exchanges that were closed in another way.
    #[cold]
    pub(super) fn forget(&mut self, asked: &VecDeque<Ask>) {
        for ends in &mut self.0 {
            ends.retain(|(_, n)| asked.binary_search_by_key(n, |ask| ask.n).is_ok());
        }
    }

    /// The numbers of exchanges that both ends' ACKs may cover, smallest first.
    #[cold]
    pub(super) fn take(&mut self, acked: [Option<Seq>; 2]) -> Vec<u64> {
        let mut over = Vec::new();
        for (ends, acked) in self.0.iter_mut().zip(acked) {
            let Some(acked) = acked else { continue };
            while let Some((_, n)) = ends.pop_front_if(|(end, _)| acked.at_or_after(*end)) {
                over.push(n);
            }
        }
        over.sort_unstable();
        over
    }

    /// Its heap size in bytes.
    pub(super) fn heap(&self) -> usize {
        self.0.iter().map(VecDeque::capacity).sum::<usize>() * size_of::<(Seq, u64)>()
    }
}
