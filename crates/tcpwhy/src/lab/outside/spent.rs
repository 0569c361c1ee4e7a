//! Where did an exchange's time go, as far as can be told? Some of it to one class for certain, some to one of several.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::class::{ANY, Class};

/// Nanoseconds by what they may have been spent on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// By set of classes, a bit each.
    by_set: BTreeMap<u16, i64>,
}

impl Spent {
    pub(crate) fn add(&mut self, class: Class, ns: i64) {
        self.add_either(class.bit(), ns);
    }

    /// One of these, and nobody can say which.
    pub(crate) fn add_either(&mut self, classes: u16, ns: i64) {
        if ns > 0 {
            *self.by_set.entry(classes).or_default() += ns;
        }
    }

    /// All that `other` was spent on, or this class.
    pub(crate) fn add_or(&mut self, other: &Self, class: Class) {
        for (set, ns) in &other.by_set {
            self.add_either(*set | class.bit(), *ns);
        }
    }

    /// The hosts' own time between packets, and what other programs took.
    pub(crate) fn add_any(&mut self, ns: i64) {
        self.add_either(ANY, ns);
    }

    /// What was this class for certain.
    pub(crate) fn certain(&self, class: Class) -> i64 {
        self.by_set.get(&class.bit()).copied().unwrap_or(0)
    }

    pub(crate) fn any(&self) -> i64 {
        self.by_set.get(&ANY).copied().unwrap_or(0)
    }

    /// All but what may have been anything.
    pub(crate) fn told(&self) -> i64 {
        self.by_set.values().sum::<i64>() - self.any()
    }

    /// What was one of several classes, the fewest first.
    pub(crate) fn open(&self) -> Vec<(u16, i64)> {
        let several = |set: u16| set.count_ones() > 1 && set != ANY;
        let mut open: Vec<(u16, i64)> =
            self.by_set.iter().filter(|(set, _)| several(**set)).map(|(set, ns)| (*set, *ns)).collect();
        open.sort_by_key(|(set, _)| set.count_ones());
        open
    }
}

impl AddAssign<&Self> for Spent {
    fn add_assign(&mut self, other: &Self) {
        for (set, ns) in &other.by_set {
            self.add_either(*set, *ns);
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (set, ns) in &self.by_set {
            let classes = Class::ALL.into_iter().filter(|class| set & class.bit() != 0);
            let names: Vec<&str> = classes.map(Class::name).collect();
            let names = if *set == ANY { "anything".to_owned() } else { names.join(" or ") };
            writeln!(f, "    really {:10.1} ms  {names}", *ns as f64 / 1e6)?;
        }
        Ok(())
    }
}
