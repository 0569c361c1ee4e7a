//! Where did an exchange's time go, as far as it can be known? Some of it certainly to one class,
//! some to one of several.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::class::{ANY, Class};

/// Nanoseconds by the classes they may have been spent on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// By set of classes, one bit each.
    by_set: BTreeMap<u16, i64>,
}

impl Spent {
    pub(crate) fn add(&mut self, class: Class, ns: i64) {
        self.add_either(class.bit(), ns);
    }

    /// Spent on one of these; which one is unknown.
    pub(crate) fn add_either(&mut self, classes: u16, ns: i64) {
        if ns > 0 {
            *self.by_set.entry(classes).or_default() += ns;
        }
    }

    /// Adds the time of `other`, each part of which may also have been this class.
    pub(crate) fn add_or(&mut self, other: &Self, class: Class) {
        for (set, ns) in &other.by_set {
            self.add_either(*set | class.bit(), *ns);
        }
    }

    /// Time that may have been anything: hosts' own work between packets, and other programs.
    pub(crate) fn add_any(&mut self, ns: i64) {
        self.add_either(ANY, ns);
    }

    /// Time that was certainly this class.
    pub(crate) fn certain(&self, class: Class) -> i64 {
        self.by_set.get(&class.bit()).copied().unwrap_or(0)
    }

    pub(crate) fn any(&self) -> i64 {
        self.by_set.get(&ANY).copied().unwrap_or(0)
    }

    /// All but the time that may have been anything.
    pub(crate) fn told(&self) -> i64 {
        self.by_set.values().sum::<i64>() - self.any()
    }

    /// Time of one of several classes, smallest sets first.
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
