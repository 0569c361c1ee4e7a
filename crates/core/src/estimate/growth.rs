//! Do the flights grow like those of a congestion window?
//!
//! While a window is used up, each flight is twice the previous one until slow start ends (RFC 5681, 3.1),
//! then at most half as large again (bictcp_update, net/ipv4/tcp_cubic.c), and never smaller without a loss.
//! A send buffer counts the memory of packets (sk_wmem_queued), which holds more bytes the fuller they are:
//! its flights slacken, double and shrink. Far from the sender, where it cannot be seen which ACKs it let
//! pass, nothing else tells the two apart.

/// How the flights have grown so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Like those of a window that opens.
    #[default]
    Even,
    /// They have stopped doubling.
    Slack,
    /// No window grows like this.
    Uneven,
}

/// The flights of rounds after which the sender was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Growth {
    last: u32,
    /// What slow start had opened the window to when the last flight left: each flight adds its bytes (RFC
    /// 5681, 3.1).
    window: u32,
    shape: Shape,
    /// The round under way ended with a silence.
    silent: bool,
    /// The last flight filled the peer's window: its sender's own may have been any larger.
    shut: bool,
}

impl Growth {
    /// The shape with another flight.
    pub(crate) fn with(self, flight: u32, mss: u32) -> Shape {
        let (last, flight, blur) = (u64::from(self.last), u64::from(flight), 2 * u64::from(mss));
        if last == 0 || self.shape == Shape::Uneven {
            return self.shape;
        }
        let shrank = (flight + blur) * 10 < last * 9 && flight > 2 * blur;
        if self.shut {
            return if shrank { Shape::Uneven } else { self.shape };
        }
        // What did not fill a super-segment stays behind (tcp_tso_should_defer, net/ipv4/tcp_output.c), and
        // the next flight is all that the window has opened to, less what the last one had in flight from
        // before it.
        let opened = u64::from(self.window) + last;
        let catches_up = flight <= opened + blur / 2 && flight + last / 5 + blur / 2 >= opened;
        let doubled_again = self.shape == Shape::Slack && flight * 10 > last * 16 + blur * 10 && !catches_up;
        if shrank || doubled_again {
            Shape::Uneven
        } else if (flight + blur) * 10 < last * 19 {
            Shape::Slack
        } else {
            self.shape
        }
    }

    /// The sender was silent after this flight.
    pub(crate) fn on_silence(&mut self, flight: u32, mss: u32) {
        let begins = self.last == 0 || self.shut;
        let window = if begins { flight } else { flight.max(self.window.saturating_add(self.last)) };
        *self = Self { last: flight, window, shape: self.with(flight, mss), silent: true, shut: false };
    }

    /// The sender was silent after a flight that filled the peer's window: a congestion window that has let
    /// it pass is never smaller than that without a loss, whatever an idle sender's is reset to
    /// (tcp_cwnd_application_limited, net/ipv4/tcp_output.c: no smaller than what was used).
    pub(crate) fn on_shut(&mut self, flight: u32) {
        self.interrupt();
        *self = Self { last: flight, window: flight, silent: true, shut: true, ..*self };
    }

    /// A round ended: without a silence, it is not known how large its flight would have become.
    pub(crate) fn on_round(&mut self) {
        if !std::mem::take(&mut self.silent) {
            self.interrupt();
        }
    }

    /// The next flight has nothing to do with the last one.
    pub(crate) fn interrupt(&mut self) {
        (self.last, self.shut) = (0, false);
        if self.shape == Shape::Slack {
            self.shape = Shape::Even;
        }
    }

    pub(crate) fn shape(self) -> Shape {
        self.shape
    }
}
