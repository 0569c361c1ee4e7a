//! What are the words of a line, however long the line is?
//!
//! Some protocols put the length of what follows at the end of a line that is longer than what is
//! kept of a head. So the words are processed as they pass.

/// The number of words whose numeric values are kept.
const NUMBERS: usize = 6;
/// The number of words after the first whose hashes are kept.
const HASHES: usize = 3;
/// Prefix of the subjects for answers (NATS).
const INBOX: &[u8] = b"_INBOX.";
/// Marks a word that is not a number.
const NONE: u32 = u32::MAX;
/// Longer lines are not valid (NATS accepts 4 KB, memcached 2 KB and keys of 250 bytes).
const LINE_LEN_MAX: u32 = 1 << 16;

/// FNV-1a.
const HASH_BASIS: u32 = 0x811c_9dc5;

fn mix(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// The hash of a word.
pub(crate) fn word_hash(word: &[u8]) -> u32 {
    word.iter().fold(HASH_BASIS, |hash, byte| mix(hash, *byte))
}

/// A line, as far as it has been read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Words {
    /// Bytes of the line, its end included.
    pub(crate) len: u32,
    /// Words so far.
    pub(crate) count: u8,
    in_word: bool,
    /// The beginning of the first word, unchanged in case.
    op: [u8; 12],
    op_len: u8,
    numbers: [u32; NUMBERS],
    hashes: [u32; HASHES],
    /// Letters of the second word that match an inbox.
    inbox: u8,
    /// The last bytes of the line, the very last in the lowest byte.
    last: u64,
}

impl Default for Words {
    fn default() -> Self {
        let (op, numbers, hashes) = ([0; 12], [NONE; NUMBERS], [0; HASHES]);
        Self { len: 0, count: 0, in_word: false, op, op_len: 0, numbers, hashes, inbox: 0, last: 0 }
    }
}

/// The state of a line after these bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Passed {
    /// It continues.
    All,
    /// It ended after this many bytes.
    Line(usize, Words),
    /// It is too long.
    TooLong,
}

impl Words {
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Passed {
        for (at, byte) in bytes.iter().enumerate() {
            self.len += 1;
            if *byte == b'\n' {
                return Passed::Line(at + 1, std::mem::take(self));
            }
            if self.len >= LINE_LEN_MAX {
                return Passed::TooLong;
            }
            if matches!(byte, b' ' | b'\t' | b'\r') {
                self.in_word = false;
            } else {
                self.on_letter(*byte);
            }
            self.last = if *byte == b'\r' { self.last } else { self.last << 8 | u64::from(*byte) };
        }
        Passed::All
    }

    fn on_letter(&mut self, byte: u8) {
        let begins = !std::mem::replace(&mut self.in_word, true);
        self.count = self.count.saturating_add(u8::from(begins));
        let word = usize::from(self.count) - 1;
        if let Some(number) = self.numbers.get_mut(word) {
            let digit = u32::from(byte.wrapping_sub(b'0'));
            let before = if begins { Some(0) } else { Some(*number).filter(|number| *number != NONE) };
            let now =
                before.filter(|_| digit < 10).and_then(|before| before.checked_mul(10)?.checked_add(digit));
            *number = now.unwrap_or(NONE);
        }
        if word == 0 {
            if let Some(slot) = self.op.get_mut(usize::from(self.op_len)) {
                *slot = byte;
            }
            self.op_len = self.op_len.saturating_add(1);
        } else if let Some(hash) = self.hashes.get_mut(word - 1) {
            let before = if begins { HASH_BASIS } else { *hash };
            if word == 1 && INBOX.get(usize::from(self.inbox)) == Some(&byte) && (begins || self.inbox > 0) {
                self.inbox += 1;
            } else if word == 1 && usize::from(self.inbox) < INBOX.len() {
                self.inbox = 0;
            }
            *hash = mix(before, byte);
        }
    }

    /// The first word, if it is not longer than any known one.
    pub(crate) fn op(&self) -> &[u8] {
        self.op.get(..usize::from(self.op_len)).unwrap_or_default()
    }

    /// The numeric value of a word; words are counted from 0.
    pub(crate) fn number(&self, word: u8) -> Option<u32> {
        self.numbers.get(usize::from(word)).copied().filter(|number| *number != NONE)
    }

    /// The hash of the second, third or fourth word.
    pub(crate) fn hash(&self, word: u8) -> Option<u32> {
        let at = usize::from(word).checked_sub(1)?;
        self.hashes.get(at).copied().filter(|_| word < self.count)
    }

    /// Whether this is the first letter of the first word.
    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        self.op_len > 0 && self.op[0] == byte
    }

    /// The hash of one of the first four words.
    pub(crate) fn word(&self, word: usize) -> Option<u32> {
        if word > 0 {
            return self.hash(word as u8);
        }
        let op = self.op();
        (!op.is_empty()).then(|| word_hash(op))
    }

    /// Whether the second word is an inbox.
    pub(crate) fn is_to_inbox(&self) -> bool {
        usize::from(self.inbox) == INBOX.len()
    }

    pub(crate) fn ends_with(&self, end: &[u8]) -> bool {
        let mut last = self.last;
        end.iter().rev().all(|byte| {
            let same = last as u8 == *byte;
            last >>= 8;
            same
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_however_they_come() {
        let line = b"set key-1 0 3600 17 noreply\r\n";
        for cut in 0..line.len() {
            let mut words = Words::default();
            assert_eq!(words.pass(&line[..cut]), Passed::All);
            let Passed::Line(used, words) = words.pass(&line[cut..]) else { panic!("no line") };
            assert_eq!((used, words.len as usize, words.count), (line.len() - cut, line.len(), 6));
            assert_eq!(words.op(), b"set");
            assert_eq!([2, 3, 4, 1].map(|word| words.number(word)), [Some(0), Some(3600), Some(17), None]);
            assert!(words.ends_with(b" noreply") && !words.ends_with(b"-noreply"));
        }
    }
}
