//! How much has been added up at servers?
//!
//! What shards report adds up to the same however many there are, so that it can be compared with a
//! budget.

/// How many values, of which causes, in which octaves of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tallied {
    pub values: u64,
    pub causes: u64,
    pub octaves: u64,
}

impl Tallied {
    pub(crate) fn add(&mut self, other: Self) {
        self.values += other.values;
        self.causes |= other.causes;
        self.octaves |= other.octaves;
    }
}
