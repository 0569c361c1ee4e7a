//! How are a million numbers told to a page in few bytes?
//!
//! As columns, each number as what it adds to the one before: times, offsets and counters that grow become small numbers, what
//! repeats becomes zeros, and deflate makes little of both. A page adds them up again into typed arrays.

use serde::{Serialize, Serializer};

/// A column of integers; serialises as differences, the first one's to 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column(Vec<i64>);

impl Column {
    pub(crate) fn push(&mut self, value: i64) {
        self.0.push(value);
    }

    pub(crate) fn push_count(&mut self, value: u64) {
        self.push(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut before = 0;
        serializer.collect_seq(self.0.iter().map(|value| {
            let difference = value.wrapping_sub(before);
            before = *value;
            difference
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_to_the_numbers() {
        let numbers = [5, 5, -3, 1_000_000_000_000, 0];
        let mut column = Column::default();
        for number in numbers {
            column.push(number);
        }
        let written = serde_json::to_value(&column).unwrap_or_default();
        let mut sum = 0;
        let read: Vec<i64> = written
            .as_array()
            .into_iter()
            .flatten()
            .map(|difference| {
                sum += difference.as_i64().unwrap_or(i64::MIN);
                sum
            })
            .collect();
        assert_eq!(read, numbers);
        assert_eq!(written[1], 0);
    }
}
