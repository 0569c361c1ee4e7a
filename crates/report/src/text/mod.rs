//! How is the report shown at a terminal?
//!
//! The answer first, then the bill, then the fixes; `connection` and `ladder` drill down. As wide
//! as the terminal, ASCII if requested, colour only if the caller enables it.

mod bill;
mod compare;
mod conduct;
mod connection;
mod findings;
mod ladder;
mod layout;
mod list;
mod markdown;
mod overview;
mod prose;
mod requests;

pub(crate) use compare::answer as compared;
pub use compare::comparison;
pub use connection::connection;
pub(crate) use findings::FINDINGS_SHOWN;
pub use findings::{is_shown, packets_by_file};
pub use ladder::ladder;
pub use list::{Order, Stream, Streams, list, list_as_markdown, ordered};
pub use markdown::markdown;
pub use overview::{limits, overview};
pub use prose::prose;

use anstyle::{AnsiColor, Color, Style as Ansi};
use tcpwhy_core::{Cause, Report};
use tcpwhy_remedy::Stack;

use crate::answer::{Class, class};

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Emit ANSI colours.
    pub color: bool,
    /// Bars and arrows from ASCII only.
    pub ascii: bool,
    /// Columns to fill.
    pub width: usize,
    /// How far the reader's time zone is ahead of UTC, in seconds.
    pub offset_s: i32,
    /// Only the answer and the bill.
    pub brief: bool,
    /// Fixes are explained for these stacks; if empty, for the three that best fit the server.
    pub stacks: Stacks,
}

/// A set of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stacks(u32);

impl Stacks {
    /// With this one as well.
    #[must_use]
    pub const fn with(self, stack: Stack) -> Self {
        Self(self.0 | 1 << stack as u32)
    }

    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether this one is shown.
    pub const fn has(self, stack: Stack) -> bool {
        self.0 == 0 || self.0 & 1 << stack as u32 != 0
    }
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, ascii: false, width: 100, offset_s: 0, brief: false, stacks: Stacks::default() }
    }
}

/// The whole capture's bill as a table with bars.
pub fn bill(report: &Report, style: Style) -> String {
    let lines = bill::totals(&report.bill, report.elapsed, style);
    lines.into_iter().map(|line| line + "\n").collect()
}

/// A sentence, wrapped.
pub fn wrapped(text: &str, style: Style) -> Vec<String> {
    layout::wrap(text, style.width, "", "")
}

/// The same after a label, with a hanging indent.
pub fn hanging(label: &str, text: &str, style: Style) -> Vec<String> {
    layout::wrap(text, style.width, label, &" ".repeat(layout::columns(label)))
}

/// Emphasized words, in colour mode.
pub fn strong(text: &str, style: Style) -> String {
    style.strong(text)
}

/// De-emphasized words, in colour mode.
pub fn faint(text: &str, style: Style) -> String {
    style.faint(text)
}

impl Style {
    fn paint(self, text: &str, ansi: Ansi) -> String {
        if self.color { format!("{}{text}{}", ansi.render(), ansi.render_reset()) } else { text.to_owned() }
    }

    /// Lines as they are shown: in ASCII mode, micro is `u`.
    fn finish(self, lines: Vec<String>) -> Vec<String> {
        if self.ascii { lines.into_iter().map(|line| line.replace('µ', "u")).collect() } else { lines }
    }

    fn strong(self, text: &str) -> String {
        self.paint(text, Ansi::new().bold())
    }

    fn faint(self, text: &str) -> String {
        self.paint(text, Ansi::new().dimmed())
    }

    fn cause(self, cause: Cause, text: &str) -> String {
        let color = match class(cause) {
            Class::Mechanism => AnsiColor::Red,
            Class::Trouble => AnsiColor::Yellow,
            Class::Program => AnsiColor::Cyan,
            Class::Path => AnsiColor::Green,
            Class::Unknown => AnsiColor::Magenta,
        };
        self.paint(text, Ansi::new().fg_color(Some(Color::Ansi(color))))
    }
}
