//! Which part of a bill rests on a guess, and is at most likely?

use crate::bill::line::AccountLine;
use crate::words::cause::{Cause, Side};

/// What is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guess {
    /// Which end is the client: affects all lines that name an end.
    Roles,
    /// Which message answers which: affects all lines.
    Pairing,
    /// No payload was captured, and news and tickets look like answers: affects the programs' time.
    Unread,
}

impl Guess {
    pub(super) fn concerns(self, line: &AccountLine) -> bool {
        match self {
            Self::Roles => matches!(line.side, Side::Client | Side::Server),
            Self::Pairing => true,
            Self::Unread => matches!(line.cause, Cause::ServerThink | Cause::SenderThink),
        }
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::Duration;

    use super::*;
    use crate::bill::account::Account;
    use crate::bill::charge::Charge;
    use crate::bill::line::LineView;
    use crate::bill::revise::Revision;
    use crate::words::report::Confidence;

    #[test]
    fn nothing_is_certain_by_a_guess() {
        let bill = |guess| {
            let mut account = Account::default();
            for cause in [Cause::ServerThink, Cause::RoundTrip, Cause::Nagle] {
                let ns = Duration::from_millis(5);
                account.charge(&Charge::new(cause, Side::Server, ns, Confidence::Certain));
            }
            account.revise(Revision::Guessed(guess));
            let bill = account.bill();
            let certain = bill.summary().filter(|line| line.confidence() == Confidence::Certain);
            certain.map(LineView::cause).collect::<Vec<_>>()
        };
        assert_eq!(bill(Guess::Roles), [Cause::RoundTrip]);
        assert_eq!(bill(Guess::Pairing), []);
        assert_eq!(bill(Guess::Unread), [Cause::RoundTrip, Cause::Nagle]);
    }
}
