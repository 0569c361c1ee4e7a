//! Which problems can be recreated, and how? A scenario is a small TOML file that reads as a path from client to server
//! (docs/scenarios.md); [`record`] builds it on the real kernel and leaves captures and truth.

mod definition;
mod expect;
mod load;
mod run;

use std::fmt;

pub use definition::Definition;
pub use expect::{Expect, ExpectedCause, Share, Span};
pub use load::Override;
pub use run::{Recorded, path_truth, record};

use crate::PairOptions;
use crate::workload::Workload;

/// The scenarios that the binary carries: name and text, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// One scenario, ready to run: with its variant chosen, mended or not, and all overrides applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `split`, or `split@rtt-26` for a variant.
    pub name: String,
    /// The mend that was applied.
    pub mend: Option<String>,
    /// What it shows, in a line.
    pub shows: String,
    /// The case or incident that it recreates: `cases B`, `incidents 19`.
    pub case: Option<String>,
    /// What the case reported, in its own words.
    pub reported: Option<String>,
    /// What a formula says, where there is one: `2 RTT + 40 ms`.
    pub theory: Option<String>,
    /// The hosts and the path between them.
    pub pair: PairOptions,
    /// What both sides do.
    pub workload: Workload,
    /// What must come out.
    pub expect: Expect,
    /// All of this as TOML: enough to run it again.
    pub definition: String,
}

/// What the list of scenarios says about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it shows, in a line.
    pub shows: String,
    /// The case or incident that it recreates.
    pub case: Option<String>,
    /// Names of its variants; `NAME@VARIANT` runs one.
    pub variants: Vec<String>,
    /// Names of its mends and what they do.
    pub mends: Vec<(String, String)>,
}

/// A scenario that cannot be read, or does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Which one.
    pub scenario: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario {}: {}", self.scenario, self.what)
    }
}

impl std::error::Error for ScenarioError {}

/// Every scenario that the binary carries, by name.
///
/// # Errors
/// A file is broken, which a test rules out.
pub fn catalogue() -> Result<Vec<Entry>, ScenarioError> {
    FILES.iter().map(|(name, text)| load::entry(name, text)).collect()
}

impl Scenario {
    /// Loads `name` (`split` or `split@rtt-26`), mended or not, with overrides such as `rtt=40ms`.
    ///
    /// # Errors
    /// There is no such scenario, variant, mend or setting; the error names those that exist.
    pub fn load(name: &str, mend: Option<&str>, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let stem = name.split('@').next().unwrap_or_default();
        let Some((_, text)) = FILES.iter().find(|(file, _)| *file == stem) else {
            let names: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
            return Err(ScenarioError {
                scenario: name.to_owned(),
                what: format!("there is none of that name; there are: {}", names.join(", ")),
            });
        };
        Self::parse(name, text, mend, overrides)
    }

    /// The same from the text of a file of one's own.
    ///
    /// # Errors
    /// As [`Scenario::load`], and what is wrong with the text.
    pub fn parse(
        name: &str,
        text: &str,
        mend: Option<&str>,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        load::scenario(name, text, mend, overrides)
            .map_err(|what| ScenarioError { scenario: name.to_owned(), what })
    }
}

#[cfg(test)]
mod tests;
