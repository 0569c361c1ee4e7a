//! How often is a capture read for what was asked, and what does each pass keep?

use tcpwhy_core::report::{Connection, Exchange, Line, Report, TotalLine};
use tcpwhy_core::{Listing, Options};

use crate::cli::{Format, LISTED_FOR_ALL, LISTED_FOR_JSON, ReadArgs};
use crate::which::Which;

/// Connections and exchanges listed one by one if only the overview is printed.
const LISTED_FOR_TEXT: u64 = 1_000;
/// In the document at the end of `tcpwhy live --json`, however long it runs.
const LISTED_FOR_LIVE: u64 = 1_000;
/// On the page, from the whole capture; and on a served page, which can ask for more.
pub(crate) const LISTED_FOR_PAGE: usize = 10_000;
const LISTED_FOR_SERVING: usize = 200_000;

/// The memory that the lists of a report take during a further pass: each line cites two packets.
pub(crate) fn bytes(report: &Report) -> usize {
    let line = size_of::<Line>() + 2 * size_of::<u64>();
    let exchanges = |of: &Connection| {
        let lines = of.exchanges.iter().map(|exchange| exchange.bill.len()).sum::<usize>();
        of.exchanges.len() * size_of::<Exchange>() + lines * line
    };
    let connection =
        |of: &Connection| size_of::<Connection>() + of.bill.len() * size_of::<TotalLine>() + exchanges(of);
    report.connections.iter().map(connection).sum()
}

impl ReadArgs {
    #[cfg(unix)]
    pub(crate) fn serves(&self) -> bool {
        self.serve.is_some()
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "nothing is served here")]
    pub(crate) fn serves(&self) -> bool {
        false
    }

    /// Whether packets are drawn or explained in files or pages.
    pub(crate) fn draws(&self) -> bool {
        self.html.is_some() || self.annotate.is_some() || self.serves()
    }

    /// Whether they are drawn for a page only.
    pub(crate) fn is_page_alone(&self) -> bool {
        self.html.is_some() && self.annotate.is_none() && !self.serves()
    }

    /// Options of the analysis for what was asked.
    pub(crate) fn analysis(&self) -> Options {
        let many = match self.format() {
            _ if self.serves() => Listing::Thinned(LISTED_FOR_SERVING),
            _ if self.annotate.is_some() => Listing::UpTo(LISTED_FOR_ALL),
            Format::Json if self.input.is_live() => Listing::UpTo(LISTED_FOR_LIVE),
            Format::Json | Format::Csv => Listing::UpTo(LISTED_FOR_JSON),
            _ if self.html.is_some() => Listing::Thinned(LISTED_FOR_PAGE),
            Format::Text | Format::Markdown => Listing::UpTo(LISTED_FOR_TEXT),
        };
        self.input.listing(match self.connection {
            None => many,
            Some(Which::Number(number)) => Listing::Connection(number),
            // All of them, to see which one is meant.
            Some(_) => Listing::UpTo(LISTED_FOR_JSON),
        })
    }

    /// How often the inputs are read after the first pass: for the packets of the expensive
    /// exchanges, or for a connection named by its ends.
    pub(crate) fn more_passes(&self) -> usize {
        let files = usize::from(self.draws()) + usize::from(self.serves());
        let shown = match self.connection {
            None => self.verbose && self.format() == Format::Text,
            Some(which) => !matches!(which, Which::Number(_)),
        };
        usize::from(shown) + usize::from(self.show_requests) + files + usize::from(self.annotate.is_some())
    }
}
