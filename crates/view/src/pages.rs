//! What can be opened above the findings? Connections, packets, explanations, the help.

use tcpwhy_core::Cause;
use tcpwhy_remedy::explain;

use crate::cells::wrap;
use crate::state::{Connection, moved};

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The connections to a server, one of them selected.
    Connections { title: String, connections: Vec<Connection>, at: usize },
    /// Something to read.
    Text(Text),
}

/// Something to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// The first visible line.
    pub(crate) top: usize,
    /// Its lines may be wrapped differently.
    pub(crate) is_prose: bool,
}

impl Text {
    /// The text of `tcpwhy explain` for a cause; `None` if it is not a cause.
    pub(crate) fn of_cause(cause: &str) -> Option<Self> {
        let explanation = explain(cause.parse::<Cause>().ok()?);
        let markdown = explanation.markdown();
        // Join paragraphs, so that they fit any width; lists and code stay as they are.
        let mut lines: Vec<String> = Vec::new();
        for line in markdown.lines() {
            let is_new = line.is_empty() || line.starts_with(['#', '-', '|', '`', ' ', '>']);
            match lines.last_mut() {
                Some(last) if !is_new && !last.is_empty() && !last.starts_with(['#', '|', '`']) => {
                    *last += " ";
                    *last += line;
                }
                _ => lines.push(line.to_owned()),
            }
        }
        Some(Self { title: format!("{cause}: {}", explanation.title), lines, top: 0, is_prose: true })
    }

    /// The lines as they are displayed.
    pub(crate) fn shown(&self, columns: u16) -> Vec<String> {
        if self.is_prose {
            self.lines.iter().flat_map(|line| wrap(line, usize::from(columns))).collect()
        } else {
            self.lines.clone()
        }
    }

    /// Scrolls down by this many lines, but not beyond the last.
    pub(crate) fn scroll(&mut self, lines: i64, [columns, height]: [u16; 2]) {
        let room = usize::from(height.saturating_sub(3).max(1));
        let tops = self.shown(columns).len().saturating_sub(room) + 1;
        self.top = moved(self.top, lines, tops);
    }
}

/// The keys.
pub(crate) fn help() -> Text {
    let lines = "\
Findings, the most expensive first. `lately` is the time since the last update; the bars are earlier updates.

  up, down, j, k        select
  PgUp, PgDn, g, G      a screen, the first, the last
  enter                 the connections of this server in the last seconds; of a connection, its packets as a ladder
  esc                   back; on the findings, clear filter and search
  e                     explain the cause
  o                     change the order: time in all, time lately, median, exchanges, endpoint, cause
  r                     reverse the order
  f                     only findings with these letters: a cause, a side, an address, a process
  /                     search; n the next, N the one before
  p, space              pause the display; counting continues
  s                     save the packets of the last seconds as pcapng
  q, Ctrl-C             quit, with the complete answer";
    Text {
        title: "Keys".to_owned(),
        lines: lines.lines().map(str::to_owned).collect(),
        top: 0,
        is_prose: true,
    }
}
