//! What has been said on a connection, and at which byte does each side's next head begin?

use crate::head::{Head, Role};
use crate::protocol::{Protocol, Recognised, Talking, recognise};
use crate::talk::{CARRY, First, Out, Side, Step, Turn};

/// Bytes kept of each side's beginning until the protocol is recognised.
const FIRST_BYTES_MAX: usize = 64;
/// Beginnings examined before the protocol is given up.
const TRIES_MAX: u8 = 4;

/// The heads of both directions of a connection. The two sides are 0 and 1, in any order.
///
/// Pass it each segment with payload once, those of one side in the order of the stream; the first
/// byte after a handshake has offset 0, and no other byte does. A segment that ends before
/// [`next_at`](Self::next_at) may be skipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// The protocol is not known yet.
    Listening(Listening),
    Talking(Talk),
    /// No heads can be found.
    Deaf,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Listening(Listening::default())
    }
}

/// How each side began to speak, this time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Listening {
    firsts: [Beginning; 2],
    /// Which side spoke last.
    last: Option<usize>,
    tries: u8,
}

#[derive(Clone, Debug, PartialEq)]
struct Beginning {
    at: u64,
    payload_len: u32,
    len: u8,
    bytes: [u8; FIRST_BYTES_MAX],
}

impl Default for Beginning {
    fn default() -> Self {
        Self { at: 0, payload_len: 0, len: 0, bytes: [0; FIRST_BYTES_MAX] }
    }
}

impl Beginning {
    fn of(at: u64, captured: &[u8], payload_len: u32) -> Self {
        let len = captured.len().min(FIRST_BYTES_MAX);
        let mut bytes = [0; FIRST_BYTES_MAX];
        bytes[..len].copy_from_slice(&captured[..len]);
        Self { at, payload_len, len: len as u8, bytes }
    }

    /// Appends what follows directly, as far as there is room: a message may be written in pieces.
    fn goes_on(&mut self, at: u64, captured: &[u8], payload_len: u32) -> bool {
        let len = usize::from(self.len);
        if self.payload_len as usize != len
            || self.at + u64::from(self.payload_len) != at
            || len == FIRST_BYTES_MAX
        {
            return false;
        }
        let more = captured.len().min(FIRST_BYTES_MAX - len);
        self.bytes[len..len + more].copy_from_slice(&captured[..more]);
        self.len += more as u8;
        self.payload_len = self.payload_len.saturating_add(payload_len);
        true
    }

    fn first(&self) -> First<'_> {
        First { bytes: &self.bytes[..usize::from(self.len)], len: self.payload_len }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Talk {
    talking: Talking,
    /// The side that usually asks.
    client: Option<usize>,
    readers: [Reader; 2],
    /// Which side spoke last.
    last: Option<usize>,
}

/// How far one direction has been read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reader {
    state: State,
    /// Where the next head begins.
    next: u64,
    carried: u8,
    /// The part seen of a head that continues in the next segment.
    carry: [u8; CARRY],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// It has not spoken.
    Fresh,
    Reading,
    /// Where its next message begins is not known.
    Lost,
}

impl Conversation {
    /// For a connection whose protocol is to be detected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes it that of another connection, in the same memory.
    pub fn begin_again(&mut self) {
        let Phase::Listening(listening) = &mut self.phase else {
            *self = Self::default();
            return;
        };
        (listening.last, listening.tries) = (None, 0);
        for first in &mut listening.firsts {
            (first.at, first.payload_len, first.len) = (0, 0, 0); // of its bytes, none count
        }
    }

    /// For a connection whose protocol and client are known.
    pub fn speaking(protocol: Protocol, client: usize) -> Self {
        let talk = Talk::new(Recognised { protocol, client: Some(client.min(1)) });
        Self { phase: Phase::Talking(talk) }
    }

    /// The protocol, once it is known.
    pub fn protocol(&self) -> Option<Protocol> {
        match &self.phase {
            Phase::Talking(talk) => Some(talk.talking.protocol()),
            _ => None,
        }
    }

    /// The side that usually asks, once known.
    pub fn client(&self) -> Option<usize> {
        match &self.phase {
            Phase::Talking(talk) => talk.client,
            _ => None,
        }
    }

    /// No heads will ever be found: drop the conversation.
    pub fn is_deaf(&self) -> bool {
        self.phase == Phase::Deaf
    }

    /// No unreported head begins or continues before this byte of a side's stream. 0 if any segment
    /// may have one.
    pub fn next_at(&self, from: usize) -> u64 {
        match &self.phase {
            Phase::Listening(_) => 0,
            Phase::Deaf => u64::MAX,
            Phase::Talking(talk) => {
                let reader = &talk.readers[from];
                if reader.state == State::Reading { reader.next + u64::from(reader.carried) } else { 0 }
            }
        }
    }

    /// Where a side's next message begins is unknown: nothing is reported until one begins
    /// unmistakably.
    pub fn is_lost(&self, from: usize) -> bool {
        matches!(&self.phase, Phase::Talking(talk) if talk.readers[from].state == State::Lost)
    }

    /// Takes a segment of one side: its offset in the stream, the captured part of its payload, and
    /// the payload's length. Reports the heads in it or completed by it, each with the bytes that
    /// its name refers to.
    pub fn on_bytes(
        &mut self,
        from: usize,
        at: u64,
        captured: &[u8],
        payload_len: u32,
        mut on_head: impl FnMut(Head, &[u8]),
    ) {
        let captured = &captured[..captured.len().min(payload_len as usize)];
        match &mut self.phase {
            Phase::Deaf => {}
            Phase::Listening(_) => self.listen(from, at, captured, payload_len, &mut on_head),
            Phase::Talking(talk) => {
                let end = talk.on_bytes(from, at, captured, payload_len, &mut on_head);
                self.go_on(end);
            }
        }
    }

    /// Examines the beginning of what a side says this time; when both sides fit a protocol, reads
    /// them.
    fn listen(
        &mut self,
        from: usize,
        at: u64,
        captured: &[u8],
        payload_len: u32,
        on_head: &mut dyn FnMut(Head, &[u8]),
    ) {
        let Phase::Listening(listening) = &mut self.phase else { return };
        let goes_on = listening.last == Some(from);
        let is_again = at.saturating_add(u64::from(payload_len)) <= listening.firsts[from].at;
        if captured.is_empty()
            || is_again
            || goes_on && !listening.firsts[from].goes_on(at, captured, payload_len)
        {
            return;
        }
        if !goes_on {
            listening.last = Some(from);
            listening.firsts[from] = Beginning::of(at, captured, payload_len);
        }
        let [a, b] = &listening.firsts;
        let Some(recognised) = recognise([a.first(), b.first()]) else {
            listening.tries += u8::from(!goes_on);
            if listening.tries == TRIES_MAX {
                self.phase = Phase::Deaf;
            }
            return;
        };
        let [own, other] = [from, 1 - from].map(|side| listening.firsts[side].clone());
        let mut talk = Talk::new(recognised);
        talk.begin(from, own.at);
        let mut end = End::Open;
        if other.len > 0 {
            talk.begin(1 - from, other.at);
            let bytes = other.first().bytes;
            end = talk.on_bytes(1 - from, other.at, bytes, other.payload_len, on_head);
        } else {
            talk.readers[1 - from].next = other.at;
        }
        if end == End::Open && own.at < at {
            let before = (at - own.at) as u32;
            end = talk.on_bytes(from, own.at, &own.bytes[..before as usize], before, on_head);
        }
        if end == End::Open {
            end = talk.on_bytes(from, at, captured, payload_len, on_head);
        }
        self.phase = Phase::Talking(talk);
        self.go_on(end);
    }

    /// Listens to both sides from here on; retransmissions are ignored.
    fn listens_behind(&self) -> Listening {
        let Phase::Talking(talk) = &self.phase else { return Listening::default() };
        let behind = |reader: Reader| {
            let next = reader.next.saturating_add(u64::from(reader.carried));
            Beginning { at: if next < u64::MAX / 2 { next } else { 0 }, ..Beginning::default() }
        };
        Listening { firsts: talk.readers.map(behind), ..Listening::default() }
    }

    fn go_on(&mut self, end: End) {
        match end {
            End::Open => {}
            End::Anew => self.phase = Phase::Listening(self.listens_behind()),
            End::Wrong => self.phase = Phase::Deaf,
        }
    }
}

/// Whether the protocol is still spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Anew,
    Wrong,
}

impl Talk {
    fn new(recognised: Recognised) -> Self {
        let reader = Reader { state: State::Fresh, next: 0, carried: 0, carry: [0; CARRY] };
        let talking = Talking::new(recognised.protocol);
        Self { talking, client: recognised.client, readers: [reader; 2], last: None }
    }

    fn side(&self, from: usize) -> Side {
        if self.client.unwrap_or(0) == from { Side::Client } else { Side::Server }
    }

    /// A message of this side begins here, as its bytes have shown.
    fn begin(&mut self, from: usize, at: u64) {
        if at > 0 {
            self.talking.lose(self.side(from));
        }
        self.readers[from] = Reader { state: State::Reading, next: at, ..self.readers[from] };
    }

    fn on_bytes(
        &mut self,
        from: usize,
        at: u64,
        captured: &[u8],
        payload_len: u32,
        on_head: &mut dyn FnMut(Head, &[u8]),
    ) -> End {
        let side = self.side(from);
        let is_turn = self.last.replace(from) == Some(1 - from);
        let reader = &mut self.readers[from];
        let end = at.saturating_add(u64::from(payload_len));
        let seen = reader.next.saturating_add(u64::from(reader.carried));
        match reader.state {
            State::Fresh | State::Reading if end <= seen => return End::Open,
            State::Reading if at <= seen => {}
            State::Fresh if at == reader.next => reader.state = State::Reading,
            State::Fresh | State::Reading | State::Lost => {
                reader.lose();
                if !self.talking.begins(side, First { bytes: captured, len: payload_len }, is_turn) {
                    return End::Open;
                }
                self.talking.lose(side);
                *reader = Reader { state: State::Reading, next: at, ..*reader };
            }
        }
        let mut out = Out { from, is_turn, at: 0, base: 0, captured, carried: None, turn: None, on_head };
        loop {
            let reader = &mut self.readers[from];
            let seen = reader.next.saturating_add(u64::from(reader.carried));
            if seen >= end {
                return End::Open;
            }
            let begin = (seen - at) as usize;
            let Some(rest) = captured.get(begin..).filter(|rest| !rest.is_empty()) else {
                // A head is in a part that was not captured.
                reader.lose();
                return self.cut(side, seen, end, &mut out);
            };
            let step = reader.step(&mut self.talking, side, begin, rest, &mut out);
            match step {
                Step::Other(protocol) if protocol != self.talking.protocol() => {
                    self.talking = Talking::new(protocol);
                    // A carried byte is part of its beginning too.
                    let carried = std::mem::take(&mut self.readers[from].carried);
                    debug_assert!(carried <= 1, "another protocol is told by its first byte");
                }
                Step::Lose => {
                    self.readers[from].lose();
                    return End::Open;
                }
                Step::Wrong | Step::Other(_) => return End::Wrong,
                Step::Need | Step::Skip(_) => {}
            }
            match out.turn.take() {
                None => {}
                Some(Turn::Anew) => return End::Anew,
                Some(Turn::Into(protocol)) => self.talking = Talking::new(protocol),
            }
        }
    }
}

impl Talk {
    /// The rest of a segment, from `seen` to `end`, was not captured, and contains a head.
    fn cut(&self, side: Side, seen: u64, end: u64, out: &mut Out<'_>) -> End {
        if let Some(head) = self.talking.cut(side) {
            out.put_at(seen, head);
        }
        if self.talking.turns(side).is_none() {
            return End::Open;
        }
        out.put_at(seen, Head { len: Some(end - seen), last: true, ..Head::piece(Role::Answers, "cut") });
        End::Anew
    }
}

impl Reader {
    fn lose(&mut self) {
        (self.state, self.carried) = (State::Lost, 0);
    }

    /// One step over the bytes after the carried ones.
    fn step(
        &mut self,
        talking: &mut Talking,
        side: Side,
        begin: usize,
        rest: &[u8],
        out: &mut Out<'_>,
    ) -> Step {
        out.at = self.next;
        if self.carried == 0 {
            (out.base, out.carried) = (begin, None);
            let step = talking.step(side, rest, out);
            match step {
                Step::Need if rest.len() < CARRY => {
                    self.carry[..rest.len()].copy_from_slice(rest);
                    self.carried = rest.len() as u8;
                }
                Step::Skip(len) if len > 0 => self.next = self.next.saturating_add(len),
                Step::Lose | Step::Other(_) => {}
                _ => return Step::Wrong,
            }
            return step;
        }
        out.base = 0;
        let Some(slot) = self.carry.get_mut(usize::from(self.carried)) else { return Step::Wrong };
        *slot = rest[0];
        self.carried += 1;
        loop {
            let carried = usize::from(self.carried);
            out.carried = Some(self.carry);
            let step = talking.step(side, &self.carry[..carried], out);
            match step {
                Step::Need if carried < CARRY => return step,
                Step::Lose => return step,
                Step::Skip(len) if len > 0 => {
                    self.next = self.next.saturating_add(len);
                    out.at = self.next;
                    let used = carried.min(usize::try_from(len).unwrap_or(CARRY));
                    self.carry.copy_within(used..carried, 0);
                    self.carried = (carried - used) as u8;
                    if self.carried == 0 || out.turn.is_some() {
                        return step;
                    }
                }
                _ => return Step::Wrong,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Conversation;

    /// One of these is kept for each connection with captured payload.
    #[test]
    fn is_small() {
        assert!(size_of::<Conversation>() <= 288, "{} bytes", size_of::<Conversation>());
    }
}
