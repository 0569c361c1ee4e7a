//! How are a million numbers told to a page in few bytes?
//!
//! As columns, each number as what it adds to the one before: times, offsets and counters that grow become small numbers, what
//! repeats becomes zeros, and deflate makes little of both. A page adds them up again into typed arrays.
//! They are kept as the text that they will be: most take two bytes, and are written once.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

/// A column is written in parts of so many bytes, with which a piece is nearly as full as it may be.
const PART_LEN: usize = 16 << 10;
/// Of what most columns nearly always have, many at once.
const ZEROS: [[u8; 2]; 256] = [*b",0"; 256];

/// A column of integers; serialises as differences, the first one's to 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// Each difference behind a comma.
    text: Vec<u8>,
    last: i64,
    /// Numbers behind the text that are as the last one in it.
    repeated: usize,
    len: usize,
}

/// JSON without spaces, in which bytes are text that is a list already.
pub(crate) struct Columns;

impl Column {
    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        self.len += 1;
        if value == self.last {
            self.repeated += 1;
        } else {
            self.change(value);
        }
    }

    fn change(&mut self, value: i64) {
        self.put_repeated();
        let difference = value.wrapping_sub(self.last);
        self.last = value;
        match u8::try_from(difference) {
            Ok(digit @ 0..10) => self.text.extend_from_slice(&[b',', b'0' + digit]),
            _ => self.put(difference),
        }
    }

    fn put_repeated(&mut self) {
        put_zeros(std::mem::take(&mut self.repeated), &mut self.text);
    }

    fn put(&mut self, difference: i64) {
        // A comma, a sign and as many digits as an i64 has, and of them what it takes: so much is copied without asking how much.
        let mut text = [b','; 24];
        text[1] = b'-';
        let mut rest = difference.unsigned_abs();
        let start = 1 + usize::from(difference < 0);
        let end = start + 1 + rest.checked_ilog10().unwrap_or(0) as usize;
        for digit in text[start..end].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let len = self.text.len() + end;
        self.text.extend_from_slice(&text);
        self.text.truncate(len);
    }

    pub(crate) fn push_count(&mut self, value: u64) {
        self.push(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// So many differences of numbers that are as the one before.
fn put_zeros(mut count: usize, text: &mut Vec<u8>) {
    while count > 0 {
        let some = count.min(ZEROS.len());
        text.extend_from_slice(ZEROS[..some].as_flattened());
        count -= some;
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Cow::Borrowed(&self.text);
        if self.repeated > 0 {
            put_zeros(self.repeated, text.to_mut());
        }
        serializer.serialize_bytes(text.get(1..).unwrap_or_default())
    }
}

impl Formatter for Columns {
    fn write_byte_array<W: ?Sized + Write>(&mut self, to: &mut W, text: &[u8]) -> io::Result<()> {
        to.write_all(b"[")?;
        text.chunks(PART_LEN).try_for_each(|part| to.write_all(part))?;
        to.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_to_the_numbers() {
        let numbers = [0, 0, 5, 5, -3, 7, 17, 1_000_000_000_000, 0, i64::MAX, i64::MIN, 9, 0, -100];
        let numbers = [&numbers[..], &[4; 1_000], &[-4; 256], &[7], &[7; 300]].concat();
        let mut column = Column::default();
        for number in numbers.iter().copied() {
            column.push(number);
        }
        let mut written = Vec::new();
        column.serialize(&mut serde_json::Serializer::with_formatter(&mut written, Columns)).expect("room");
        let written: Vec<i64> = serde_json::from_slice(&written).expect("a list");
        let mut sum: i64 = 0;
        let read: Vec<i64> = written
            .iter()
            .map(|difference| {
                sum = sum.wrapping_add(*difference);
                sum
            })
            .collect();
        assert_eq!(read, numbers);
        assert_eq!((written[3], column.len()), (0, numbers.len()));
    }
}
