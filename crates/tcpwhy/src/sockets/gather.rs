//! Which sockets are worth a line, and what is known of each? From the kernel's dumps to rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use tcpwhy_sockets::counters::Counters;
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, Lately, Limit, Options, Owner, Seen, Socket, States, Watch, limit, owner};
use tcpwhy_wire::{Endpoint, Filter};

use super::calm::Calm;

/// A network namespace that is watched.
pub(super) struct Place {
    pub(super) namespace: Namespace,
    diag: Diag,
    watch: Watch,
    calm: Option<Calm>,
    pub(super) counters: Counters,
    /// What it counted since the previous look.
    pub(super) counted: Counters,
}

/// Which sockets are wanted.
pub(super) struct Wanted {
    pub(super) states: States,
    pub(super) filter: Option<Filter>,
    /// Inodes of the processes asked for, refreshed at each look.
    pub(super) of: Option<Who>,
    pub(super) idle: bool,
    pub(super) top: usize,
    /// Report the last interval; otherwise the whole lifetime.
    pub(super) lately: bool,
}

/// Owners of the wanted sockets.
#[derive(Clone, Debug)]
pub(super) enum Who {
    Pid(u32),
    /// A command of this name, or a container.
    Named(String),
}

/// A socket to show.
pub(super) struct Row {
    /// The place's index.
    pub(super) place: usize,
    pub(super) socket: Socket,
    pub(super) lately: Lately,
    pub(super) limit: Limit,
    pub(super) owner: Option<Owner>,
    /// Its options, or why they are not known.
    pub(super) options: Result<Options, String>,
    /// The other end, if it is on this machine and limits this one.
    pub(super) peer: Option<Peer>,
}

/// The other end of a connection, on the same machine.
pub(super) struct Peer {
    pub(super) owner: Option<Owner>,
    pub(super) receive_max: u32,
    pub(super) locked: Option<bool>,
}

/// The result of one look.
#[derive(Default)]
pub(super) struct Look {
    /// Worst first.
    pub(super) rows: Vec<Row>,
    /// All sockets that passed the filter, by what limits them.
    pub(super) counts: BTreeMap<&'static str, u64>,
    /// Processes that may not be looked into.
    pub(super) hidden: u32,
}

impl Place {
    /// Opens what is needed inside a namespace.
    pub(super) fn open(namespace: Namespace) -> std::io::Result<Self> {
        let (diag, counters) = namespace.enter(|| (Diag::open(), Counters::read()))?;
        Ok(Self {
            namespace,
            diag: diag?,
            watch: Watch::default(),
            calm: None,
            counters: counters?,
            counted: Counters::default(),
        })
    }

    /// Remembers all sockets as they are now; with `once`, a single look follows, which need not
    /// see unchanged sockets again.
    pub(super) fn note(&mut self, wanted: &Wanted, now: Duration, once: bool) -> std::io::Result<()> {
        let all = wanted.states == States::CONNECTED && wanted.filter.is_none() && wanted.of.is_none();
        let mut calm = (once && all && !wanted.idle).then(Calm::default);
        self.counters = self.namespace.enter(Counters::read)??;
        let Self { diag, watch, .. } = self;
        diag.each_seen(wanted.states, &mut |seen| {
            watch.note(seen, now);
            if let Some(calm) = &mut calm {
                calm.note(seen);
            }
        })?;
        self.calm = calm;
        Ok(())
    }

    /// What moved since the first look and how many stood still, if that is known without walking
    /// all sockets again.
    fn moved(&mut self, now: Duration) -> std::io::Result<Option<Moved>> {
        let Some(calm) = self.calm.take() else { return Ok(None) };
        let Self { namespace, diag, watch, counters, .. } = self;
        let counted = || namespace.enter(Counters::read)?.map(|now| now.since(counters));
        let moved = calm.moved(diag, watch, now, counted)?;
        Ok(moved.map(|moved| (calm.still(), moved)))
    }
}

/// How many sockets stood still, and those that moved.
type Moved = (u64, Vec<(Socket, Lately)>);

/// A socket that may be shown; the least important is dropped first.
struct Candidate {
    weight: u32,
    socket: Box<(Socket, Lately, Limit)>,
    place: usize,
}

impl Candidate {
    /// Ties are broken by cookie, so that two looks agree.
    fn key(&self) -> (u32, u64, Reverse<u64>) {
        let (socket, lately, _) = &*self.socket;
        (self.weight, lately.bytes_acked + lately.bytes_received, Reverse(socket.cookie))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Selects sockets for rows.
struct Sieve<'a> {
    wanted: &'a Wanted,
    look: Look,
    best: BinaryHeap<Reverse<Candidate>>,
    /// Inodes of the processes asked for.
    theirs: Option<BTreeSet<u32>>,
}

impl Sieve<'_> {
    /// Takes the kernel's answer about a socket of the place with this index.
    fn see(&mut self, seen: &Seen<'_>, watch: &Watch, now: Duration, place: usize) {
        if self.theirs.as_ref().is_some_and(|theirs| !theirs.contains(&seen.inode())) {
            return;
        }
        let is_idle = || if self.wanted.lately { watch.is_idle(seen) } else { Watch::was_idle(seen) };
        if self.wanted.filter.is_none() && !self.wanted.idle && is_idle() {
            self.count(&Limit::Idle, 1);
        } else if let Some(socket) = seen.socket()
            && passes(self.wanted.filter.as_ref(), &socket)
        {
            let lately = watch.since(&socket, now);
            self.take(socket, lately, place);
        }
    }

    fn count(&mut self, limit: &Limit, sockets: u64) {
        *self.look.counts.entry(limit.name()).or_default() += sockets;
    }

    fn take(&mut self, socket: Socket, lately: Lately, place: usize) {
        let limit = limit::of(&socket, &lately, None);
        self.count(&limit, 1);
        let weight = limit.weight();
        if weight > 0 || self.wanted.idle {
            let socket = Box::new((socket, lately, limit));
            self.best.push(Reverse(Candidate { weight, socket, place }));
            if self.best.len() > self.wanted.top {
                self.best.pop();
            }
        }
    }
}

/// Looks at all sockets of all places, `now` on the clock of the earlier looks; `more` if others
/// follow.
pub(super) fn look(
    places: &mut [Place],
    wanted: &Wanted,
    now: Duration,
    more: bool,
) -> std::io::Result<Look> {
    let mut look = Look::default();
    let theirs = wanted.of.as_ref().map(|who| held_by(who, &mut look));
    let mut sieve = Sieve { wanted, look, best: BinaryHeap::new(), theirs };
    for (number, place) in places.iter_mut().enumerate() {
        if let Some((still, moved)) = place.moved(now)? {
            sieve.count(&Limit::Idle, still);
            for (socket, lately) in moved {
                sieve.take(socket, lately, number);
            }
        } else {
            let Place { diag, watch, .. } = place;
            diag.each_seen(wanted.states, &mut |seen| {
                sieve.see(seen, watch, now, number);
                if more {
                    watch.note(seen, now);
                }
            })?;
            if more {
                watch.forget_before(now);
            }
        }
        let counters = place.namespace.enter(Counters::read)??;
        place.counted = counters.since(&place.counters);
        place.counters = counters;
    }
    let Sieve { mut look, best, .. } = sieve;
    let rows = best.into_sorted_vec().into_iter().map(|Reverse(candidate)| {
        let (socket, lately, limit) = *candidate.socket;
        let options = Err("its owner is unknown or may not be examined".to_owned());
        Row { place: candidate.place, socket, lately, limit, owner: None, options, peer: None }
    });
    look.rows = rows.collect();
    know_more(&mut look, places);
    Ok(look)
}

fn passes(filter: Option<&Filter>, socket: &Socket) -> bool {
    filter.is_none_or(|filter| filter.matches(endpoint(socket.local), endpoint(socket.remote)))
}

fn endpoint(address: SocketAddr) -> Endpoint {
    match address {
        SocketAddr::V4(v4) => Endpoint::v4(v4.ip().octets(), v4.port()),
        SocketAddr::V6(v6) => Endpoint::v6(v6.ip().octets(), v6.port()),
    }
}

/// The sockets that the requested processes hold.
fn held_by(who: &Who, look: &mut Look) -> BTreeSet<u32> {
    let pids = match who {
        Who::Pid(pid) => vec![*pid],
        Who::Named(name) => {
            let is_it = |pid: &u32| {
                owner::name_of(*pid) == *name
                    || owner::container_of(*pid).is_some_and(|container| container.starts_with(name.as_str()))
            };
            owner::processes().into_iter().filter(is_it).collect()
        }
    };
    let mut inodes = BTreeSet::new();
    for pid in pids {
        let seen = owner::each_socket(pid, |_, inode| {
            inodes.insert(inode);
        });
        look.hidden += u32::from(seen.is_none());
    }
    inodes
}

/// Adds owners, options, and the other ends that are the limit.
fn know_more(look: &mut Look, places: &mut [Place]) {
    let inodes: BTreeSet<u32> =
        look.rows.iter().map(|row| row.socket.inode).filter(|inode| *inode != 0).collect();
    if inodes.is_empty() {
        return;
    }
    let (owners, hidden) = owner::find(&inodes, None);
    look.hidden = look.hidden.max(hidden.processes);
    let (mut peers, mut others) = (HashMap::new(), None::<Vec<Diag>>);
    for row in &mut look.rows {
        row.owner = owners.get(&row.socket.inode).cloned();
        if let Some(owner) = &row.owner {
            row.options = Options::of_foreign(owner.pid, owner.descriptor, row.socket.cookie)
                .map_err(|error| error.to_string());
        }
        // With the options, the limit may be a different one, or certain.
        row.limit = limit::of(&row.socket, &row.lately, row.options.as_ref().ok());
        if matches!(row.limit, Limit::PeerWindow { .. } | Limit::ZeroWindow { .. }) {
            let other = |diag: &mut Diag| diag.one(row.socket.remote, row.socket.local).ok().flatten();
            let near = other(&mut places[row.place].diag);
            // It may be in another namespace, as with containers; each namespace has its own
            // loopback.
            let is_far = || !row.socket.remote.ip().is_loopback();
            let mut known = || places.iter_mut().find_map(|place| other(&mut place.diag));
            let elsewhere = || others.get_or_insert_with(all_diags).iter_mut().find_map(other);
            let far = || is_far().then(|| known().or_else(elsewhere)).flatten();
            if let Some(other) = near.or_else(far) {
                peers.insert(row.socket.cookie, other);
            }
        }
    }
    let inodes = peers.values().map(|peer| peer.inode).collect();
    let (owners, _) = owner::find(&inodes, None);
    for row in &mut look.rows {
        row.peer = peers.get(&row.socket.cookie).map(|peer| {
            let owner = owners.get(&peer.inode).cloned();
            let options = owner
                .as_ref()
                .and_then(|owner| Options::of_foreign(owner.pid, owner.descriptor, peer.cookie).ok());
            let locked = options.and_then(|options| options.receive_buffer_locked);
            Peer { owner, receive_max: peer.memory.receive_max, locked }
        });
    }
    look.rows.sort_by_key(|row| Reverse(row.limit.weight()));
}

/// A connection to the sockets of each namespace that can be entered.
fn all_diags() -> Vec<Diag> {
    let open = |namespace: Namespace| namespace.enter(Diag::open).ok()?.ok();
    Namespace::all().into_iter().filter_map(open).collect()
}
