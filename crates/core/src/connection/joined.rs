//! Which message do the first bytes of a head belong to that passed before the rest of it?

use tcpwhy_wire::Duration;

use super::Connection;
use crate::bill::asked::Passed;
use crate::words::mark::Mark;

impl Connection {
    /// Gives a message that a mark begins the bytes of its head that had passed before.
    pub(super) fn join_head(&mut self, mark: &Mark, of: Option<(u64, bool)>, from: usize) {
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let Some(head) = talk.unread[from].headless.take().filter(|head| head.seq == mark.seq) else {
            return;
        };
        let Some((ask, is_answer)) = of.and_then(|(n, is_answer)| Some((talk.find(n)?, is_answer))) else {
            return;
        };
        let (bytes, end) = (u64::from(head.bytes), head.seq + head.bytes);
        let passed = Passed { first: head.first, last: head.first, bytes, end };
        if is_answer {
            ask.answer.get_or_insert(passed);
        } else if ask.question.bytes == 0 {
            let sooner = (ask.question.first.0 - head.first.0).max(Duration::ZERO);
            (ask.start, ask.idle) = (ask.start - sooner, (ask.idle - sooner).at_least_zero());
            ask.question = passed;
        }
    }
}
