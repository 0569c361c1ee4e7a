//! What does the page get from a comparison? The document `tcpwhy.compare/1`, and the causes as on
//! every page.

use serde::Serialize;
use tcpwhy_report::compare::Comparison;
use tcpwhy_report::json::{ComparisonDto, compared};

use crate::data::{CauseDto, causes};

/// The data of a page about two captures.
#[derive(Debug, Serialize)]
pub struct Compared<'a> {
    schema: &'static str,
    causes: Vec<CauseDto>,
    comparison: ComparisonDto<'a>,
}

impl<'a> Compared<'a> {
    /// `paths` are shown unchanged, so they must be safe (`escape::visible`); `version` is tcpwhy's
    /// own.
    pub fn new(comparison: &'a Comparison, paths: [&'a str; 2], version: &'a str) -> Self {
        Self {
            schema: "tcpwhy.compared/1",
            causes: causes(),
            comparison: compared(comparison, paths, version),
        }
    }
}
