//! How are a million numbers passed to a page in few bytes?
//!
//! As columns, each number as its difference to the one before: growing times, offsets and counters
//! become small numbers, and steady growth or a constant becomes one difference with a repetition
//! count. Deflate compresses the rest well. The page adds them up again into typed arrays. Columns
//! are kept as the text that will be written, which is generated once.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

/// A column is written in parts of this many bytes, which fill pieces nearly completely.
const PART_LEN: usize = 16 << 10;
/// A difference that is repeated at least this often is counted: `,0,0,0` is longer than `,[3]`.
const COUNTED: usize = 3;

/// A column of integers; serialises as differences, starting from 0. A list with one number among
/// them repeats the difference before it that many times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// Each difference after a comma.
    text: Vec<u8>,
    last: i64,
    /// The last one in the text, and how often it is repeated after that.
    difference: i64,
    again: usize,
    len: usize,
}

/// JSON without spaces, in which byte strings are already the text of a list.
pub(crate) struct Columns;

impl Column {
    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        let difference = value.wrapping_sub(self.last);
        (self.last, self.len) = (value, self.len + 1);
        if difference == self.difference {
            self.again += 1;
        } else {
            self.change(difference);
        }
    }

    #[inline]
    pub(crate) fn push_count(&mut self, value: u64) {
        self.push(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Repeats the last number this many times.
    pub(crate) fn repeat(&mut self, count: usize) {
        if count > 0 {
            self.push(self.last);
            (self.again, self.len) = (self.again + count - 1, self.len + count - 1);
        }
    }

    fn change(&mut self, difference: i64) {
        put_again(self.again, self.difference, &mut self.text);
        (self.difference, self.again) = (difference, 0);
        put(difference, &mut self.text);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

fn put(difference: i64, text: &mut Vec<u8>) {
    if let Ok(digit @ 0..10) = u8::try_from(difference) {
        text.extend_from_slice(&[b',', b'0' + digit]);
        return;
    }
    let number = difference.unsigned_abs();
    let Some(number) = u32::try_from(number).ok().filter(|number| *number < 100_000_000) else {
        return put_long(difference, text);
    };
    let (digits, count) = digits(number);
    let (before, before_len) = if difference < 0 { (u128::from(b'-') << 8, 2) } else { (0, 1) };
    let all = u128::from(b',') | before | u128::from(digits) << (8 * before_len);
    // Copies a fixed length, which is faster than the exact one.
    let len = text.len() + before_len + count;
    text.extend_from_slice(&all.to_le_bytes());
    text.truncate(len);
}

/// The digits of a number of up to eight digits, the first one in the lowest byte, and their count.
#[inline]
fn digits(number: u32) -> (u64, usize) {
    // In halves, quarters, and single digits: each division is a multiplication in all positions at
    // once.
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - 10 * tens) << 8;
    let zeros = (ones.trailing_zeros() / 8).min(7);
    ((ones | 0x3030_3030_3030_3030) >> (8 * zeros), 8 - zeros as usize)
}

#[cold]
fn put_long(difference: i64, text: &mut Vec<u8>) {
    text.extend_from_slice(b",");
    text.extend_from_slice(difference.to_string().as_bytes());
}

/// Repeats the previous difference this many times. At the start it is 0, which is not in the text
/// yet.
fn put_again(mut count: usize, difference: i64, text: &mut Vec<u8>) {
    if count > 0 && text.is_empty() {
        put(difference, text);
        count -= 1;
    }
    if count < COUNTED {
        (0..count).for_each(|_| put(difference, text));
    } else {
        text.extend_from_slice(b",[");
        let at = text.len();
        put(count as i64, text);
        text.remove(at);
        text.push(b']');
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Cow::Borrowed(&self.text);
        if self.again > 0 {
            put_again(self.again, self.difference, text.to_mut());
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

    /// Differences, and repetition counts.
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Step {
        By(i64),
        Again([usize; 1]),
    }

    fn written(numbers: &[i64]) -> String {
        let mut column = Column::default();
        for number in numbers {
            column.push(*number);
        }
        assert_eq!(column.len(), numbers.len());
        let mut written = Vec::new();
        column.serialize(&mut serde_json::Serializer::with_formatter(&mut written, Columns)).expect("room");
        String::from_utf8(written).expect("text")
    }

    #[test]
    fn differences_add_up_to_the_numbers() {
        let numbers = [0, 0, 5, 5, -3, 7, 17, 1_000_000_000_000, 0, i64::MAX, i64::MIN, 9, 0, -100];
        let steady: Vec<i64> = (0..500).map(|i| i * 1_448).collect();
        let numbers = [&numbers[..], &[4; 1_000], &[-4; 256], &[7], &steady, &[7; 300]].concat();
        for from in [0, 1, 2, 3, 13, 100, 1_300] {
            let text = written(&numbers[from..]);
            let steps: Vec<Step> = serde_json::from_str(&text).expect("a list");
            let mut sum = 0_i64;
            let read: Vec<i64> = steps
                .iter()
                .flat_map(|step| match step {
                    Step::By(difference) => std::iter::repeat_n(*difference, 1),
                    Step::Again([count]) => std::iter::repeat_n(before_of(&steps, step), *count),
                })
                .map(|difference| {
                    sum = sum.wrapping_add(difference);
                    sum
                })
                .collect();
            assert!(read == numbers[from..], "{text}");
        }
    }

    /// The difference before a repetition count.
    fn before_of(steps: &[Step], again: &Step) -> i64 {
        let at = steps.iter().position(|step| std::ptr::eq(step, again)).expect("one of them");
        match steps[at - 1] {
            Step::By(difference) => difference,
            Step::Again(_) => panic!("there is a difference in front"),
        }
    }

    #[test]
    fn digits_are_those_of_the_number() {
        let tens = (0..18).map(|digits| 10_i64.pow(digits));
        let some =
            (0..100_000).chain((0..100_000_000).step_by(9_973)).chain([i64::MAX, i64::MIN + 1, i64::MIN]);
        for number in some.chain(tens.flat_map(|ten| [ten - 1, ten, ten + 1])) {
            for number in [number, number.wrapping_neg()] {
                let mut text = Vec::new();
                put(number, &mut text);
                assert_eq!(text, format!(",{number}").as_bytes());
            }
        }
    }

    #[test]
    fn repeating_is_pushing() {
        for count in [0, 1, 2, 5, 300] {
            for start in [&[][..], &[0], &[7], &[7, 7], &[1, 2, 3]] {
                let (mut one, mut other) = (Column::default(), Column::default());
                for number in start {
                    one.push(*number);
                    other.push(*number);
                }
                one.repeat(count);
                (0..count).for_each(|_| other.push(start.last().copied().unwrap_or(0)));
                assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn what_comes_again_is_counted() {
        assert_eq!(written(&[]), "[]");
        assert_eq!(written(&[0]), "[0]");
        assert_eq!(written(&[0; 3]), "[0,0,0]");
        assert_eq!(written(&[0; 4]), "[0,[3]]");
        assert_eq!(written(&[7; 5]), "[7,0,[3]]");
        assert_eq!(written(&[3, 6, 9, 12, 15, 15, 0]), "[3,[4],0,-15]");
    }
}
