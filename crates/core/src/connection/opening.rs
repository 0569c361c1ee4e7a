//! What does a server's TLS say before its program has been asked?
//!
//! TLS 1.3 hands out tickets as soon as the client's Finished is there (RFC 8446, 4.6.1), HTTP/2 begins with SETTINGS (RFC 9113, 3.4). The client
//! has asked beside its Finished and waits for something else: with tickets alone the server would seem to have begun its answer at once,
//! and the rest of it to be a pause within.

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use crate::flow::ends::{CLIENT, SERVER};

/// A record of one byte (RFC 8446, D.4).
const CHANGE_CIPHER_SPEC_LEN: i32 = 6;

/// A program that waits for nothing else takes no longer to react. Source: none written down.
const AT_ONCE: Duration = Duration::from_millis(2);

impl Connection {
    /// Where this segment may be what TLS 1.3 says by itself behind the client's Finished, how long after its sender's last data it came.
    #[cold]
    pub(super) fn opening_gap(&self, segment: &Segment, from: usize) -> Option<Duration> {
        let open = self.open.as_deref().filter(|open| from == SERVER && open.initiator == CLIENT)?;
        let [hello, clear] = self.talk.as_deref()?.session;
        // The message behind the ClientHello, of which nobody reads more than a ChangeCipherSpec: in TLS 1.2 keys come before that
        // (RFC 5246, 7.3).
        let read = hello?[1] - open.request_first?;
        let is_second =
            open.n == 1 + u64::from(self.setup.is_some()) && (read == 0 || read == CHANGE_CIPHER_SPEC_LEN);
        // The server's flight went on in ciphertext.
        let is_encrypted =
            self.flows[SERVER].snd_nxt.is_some_and(|next| next.after(clear.unwrap_or([next; 2])[1]));
        let last = self.flows[SERVER].last_data.as_ref()?;
        (is_second && is_encrypted && !open.crosses(segment)).then(|| segment.at - last.at)
    }

    /// Whether a segment comes at the heels of what the other end has said, as a word about that does.
    #[cold]
    pub(super) fn follows_at_once(&self, segment: &Segment, from: usize) -> bool {
        let said = self.flows[1 - from].last_data.as_ref();
        said.is_some_and(|said| segment.at - said.at - self.tap_rtt(from) <= AT_ONCE)
    }
}
