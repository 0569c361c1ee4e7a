//! Which problems can be recreated, and how? A scenario is a small TOML file that reads as a path
//! from client to server (docs/scenarios.md); [`record`] builds it on the real kernel and leaves
//! captures and truth.

mod definition;
mod expect;
mod load;
mod run;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

pub use definition::{Definition, Picture, Transfer};
pub use expect::{Expect, ExpectedCause, Share, Span};
pub use load::Override;
pub use run::{Recorded, path_truth, record};

use crate::PairOptions;
use crate::workload::Workload;

/// The built-in scenarios: name and text, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// One scenario, ready to run: with its variant chosen, with or without a fix, and all overrides
/// applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// `split`, or `split@rtt-26` for a variant.
    pub name: String,
    /// The fix that was applied.
    pub fix: Option<String>,
    /// What it shows, in a line.
    pub shows: String,
    /// The case or incident that it recreates: `cases B`, `incidents 19`.
    pub case: Option<String>,
    /// What the case reported, in its own words.
    pub reported: Option<String>,
    /// A formula's prediction, if there is one: `2 RTT + 40 ms`.
    pub theory: Option<String>,
    /// Its row in the table of the reference cases.
    pub row: Option<String>,
    /// How this differs from the report, and why.
    pub note: Option<String>,
    /// The transfer, if arithmetic can predict it.
    pub transfer: Option<Transfer>,
    /// What to draw.
    pub picture: Option<Picture>,
    /// The hosts and the path between them.
    pub pair: PairOptions,
    /// What both sides do.
    pub workload: Workload,
    /// What is expected.
    pub expect: Expect,
    /// All of this as TOML: enough to run it again.
    pub definition: String,
}

/// An entry in the list of scenarios.
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
    /// Names of its fixes and what they do.
    pub fixes: Vec<(String, String)>,
    /// Its rows in the table of the reference cases.
    pub rows: Vec<Row>,
}

/// A form with a row in the table of the reference cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// `A1 initial window 1`: the case, the position in it, and the subject.
    pub label: String,
    /// `a-window-of-one`, `a-window-of-one@initcwnd-2`
    pub form: String,
    /// The fix that makes this form.
    pub fix: Option<String>,
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

/// Every built-in scenario, by name.
///
/// # Errors
/// A file is broken, which a test rules out.
pub fn catalogue() -> Result<Vec<Entry>, ScenarioError> {
    FILES.iter().map(|(name, text)| load::entry(name, text)).collect()
}

/// One scenario by its name, or a file by its path.
///
/// # Errors
/// There is none, or the file cannot be read.
pub fn entry(name: &str) -> Result<Entry, ScenarioError> {
    load::entry(name, &text_of(name)?)
}

/// The text of a built-in scenario, or of a file.
fn text_of(name: &str) -> Result<Cow<'static, str>, ScenarioError> {
    let fail = |what| ScenarioError { scenario: name.to_owned(), what };
    if let Some((_, text)) = FILES.iter().find(|(file, _)| *file == name) {
        return Ok(Cow::Borrowed(text));
    }
    if Path::new(name).extension().is_some_and(|end| end == "toml") {
        return std::fs::read_to_string(name).map(Cow::Owned).map_err(|error| fail(error.to_string()));
    }
    let names: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
    Err(fail(format!("no such scenario; available: {}", names.join(", "))))
}

impl Scenario {
    /// Loads `name` (`split`, `split@rtt-26`, `my/own.toml`), with or without a fix, with overrides
    /// such as `rtt=40ms`.
    ///
    /// # Errors
    /// There is no such scenario, variant, fix or setting; the error names those that exist.
    pub fn load(name: &str, fix: Option<&str>, overrides: &[Override]) -> Result<Self, ScenarioError> {
        let stem = name.split('@').next().unwrap_or_default();
        Self::parse(name, &text_of(stem)?, fix, overrides)
    }

    /// The same from the text of a file.
    ///
    /// # Errors
    /// As [`Scenario::load`], or errors in the text.
    pub fn parse(
        name: &str,
        text: &str,
        fix: Option<&str>,
        overrides: &[Override],
    ) -> Result<Self, ScenarioError> {
        load::scenario(name, text, fix, overrides)
            .map_err(|what| ScenarioError { scenario: name.to_owned(), what })
    }
}

#[cfg(test)]
mod tests;
