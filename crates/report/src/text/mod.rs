//! How is the report told to a person at a terminal?
//!
//! The answer first, then the bill, then what to do; `connection` and `ladder` drill down. At most 100 columns, ASCII
//! where asked, colour only where the caller says that somebody sees it.

mod bill;
mod connection;
mod findings;
mod ladder;
mod layout;
mod overview;

pub use connection::connection;
pub use ladder::ladder;
pub use overview::overview;

use anstyle::{AnsiColor, Color, Style as Ansi};
use tcpwhy_core::Cause;

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
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, ascii: false, width: 100 }
    }
}

impl Style {
    fn paint(self, text: &str, ansi: Ansi) -> String {
        if self.color { format!("{}{text}{}", ansi.render(), ansi.render_reset()) } else { text.to_owned() }
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
