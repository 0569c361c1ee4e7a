//! How does the screen look? From the state alone: the same state and size give the same screen.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use tcpwhy_core::Cause;
use tcpwhy_remedy::explain;
use tcpwhy_report::escape::visible;
use tcpwhy_report::quantity::{count, percent};
use tcpwhy_wire::Duration;

use crate::answer::{Finding, micros, nanos};
use crate::bars::bars;
use crate::cells::{Column, cut, table};
use crate::pages::{Page, Text};
use crate::state::{Connection, Prompt, State};

const FINDINGS: [Column; 9] = [
    Column::text("cause", 0),
    Column::text("whose", 0),
    Column::number("share", 1),
    Column::number("median", 2),
    Column::number("p99", 6),
    Column::number("exchanges", 5),
    Column::number("lately", 3),
    Column::text("trend", 4),
    Column::text("confidence", 7),
];

const CONNECTIONS: [Column; 7] = [
    Column::text("client", 0),
    Column::text("server", 2),
    Column::number("time", 1),
    Column::number("exchanges", 3),
    Column::number("slowest", 4),
    Column::number("packets", 5),
    Column::text("most of it", 1),
];

/// Lines with details of the selected finding below the table, if there is room.
const MORE_LINES: u16 = 4;
/// There is room from this many lines on.
const ROOMY: u16 = 14;

impl State {
    /// Draws the whole screen.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let mut canvas = Canvas { area, buffer };
        if area.height < 4 || area.width < 8 {
            canvas.line(0, "no room", Style::new());
            return;
        }
        match self.pages.last() {
            None => self.draw_findings(&mut canvas),
            Some(Page::Connections { title, connections, at }) => {
                self.draw_connections(&mut canvas, title, connections, *at);
            }
            Some(Page::Text(text)) => self.draw_text(&mut canvas, text),
        }
        self.draw_foot(&mut canvas);
    }

    fn draw_findings(&self, canvas: &mut Canvas<'_>) {
        let answer = &self.answer;
        canvas.line(0, &format!("tcpwhy live  {}", self.about), strong());
        let right =
            if self.is_paused { "paused".to_owned() } else { format!("after {}", micros(answer.after_us)) };
        canvas.right(
            0,
            &right,
            if self.is_paused { strong().add_modifier(Modifier::REVERSED) } else { faint() },
        );
        let [packets, exchanges] = self.rates;
        let dropped = match answer.dropped {
            0 => "none dropped".to_owned(),
            dropped => format!("{} dropped: use a larger --ring", count(dropped)),
        };
        let head = format!(
            "{} packets ({}/s), {} exchanges ({}/s); {dropped}",
            count(answer.packets),
            count(packets),
            count(answer.exchanges),
            count(exchanges)
        );
        canvas.line(1, &head, if answer.dropped > 0 { self.colored(Color::Red) } else { Style::new() });
        let findings = self.findings();
        let mut order = self.order.words().to_owned();
        if self.is_reversed {
            order += ", reversed";
        }
        let all = answer.findings.len();
        let chosen = if self.filter.is_empty() {
            format!("{all} findings, {order}")
        } else {
            format!("{} of {all} findings with {:?}, {order}", findings.len(), self.filter)
        };
        canvas.line(2, &chosen, faint());
        let rows: Vec<_> = findings.iter().map(|finding| self.row(finding)).collect();
        let more = if canvas.area.height >= ROOMY { MORE_LINES } else { 0 };
        let room = canvas.area.height.saturating_sub(5 + more);
        let at = self.at(&findings);
        let styles = |i: usize| self.style_of(findings[i]);
        let told: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        self.draw_table(canvas, [3, room], &table(&FINDINGS, &rows, canvas.columns()), &told, at, &styles);
        if findings.is_empty() {
            let why = if all > 0 { "nothing matches the filter" } else { "no waits so far" };
            canvas.line(4, why, faint());
        }
        if let Some(finding) = findings.get(at).filter(|_| more > 0) {
            self.draw_more(canvas, finding, canvas.area.height - 1 - more);
        }
    }

    fn row(&self, finding: &Finding) -> [String; 9] {
        let elapsed = Duration::from_nanos(self.answer.elapsed_ns);
        [
            visible(&finding.cause).into_owned(),
            visible(&format!("{} of {}", finding.side, finding.endpoint)).into_owned(),
            percent(Duration::from_nanos(finding.ns), elapsed),
            nanos(finding.p50_ns),
            nanos(finding.p99_ns),
            format!("{} of {}", count(finding.hits), count(finding.of)),
            count(u64::try_from(finding.lately.hits).unwrap_or(0)),
            format!("{:<8} {}", visible(&finding.trend), bars(self.history(finding))),
            visible(&finding.confidence).into_owned(),
        ]
    }

    /// The selected finding, and the owner of its socket.
    fn draw_more(&self, canvas: &mut Canvas<'_>, finding: &Finding, from: u16) {
        let title = finding.cause.parse::<Cause>().map_or("", |cause| explain(cause).title);
        canvas.line(from, &format!("{}: {title}", visible(&finding.cause)), strong());
        let cost = format!(
            "{} in all; median {}, p99 {}, longest {}; {} in the last {}",
            nanos(finding.ns),
            nanos(finding.p50_ns),
            nanos(finding.p99_ns),
            nanos(finding.max_ns),
            nanos(finding.lately.ns),
            micros(self.answer.span_us)
        );
        canvas.line(from + 1, &cost, Style::new());
        if let Some(fact) = &finding.socket {
            canvas.line(from + 2, &visible(&fact.words), self.colored(Color::Yellow));
            if let Some(fix) = &fact.fix {
                canvas.line(from + 3, &format!("try: {}", visible(fix)), Style::new());
            }
        }
    }

    fn draw_connections(&self, canvas: &mut Canvas<'_>, title: &str, connections: &[Connection], at: usize) {
        canvas.line(0, title, strong());
        let rows: Vec<[String; 7]> = connections
            .iter()
            .map(|connection| {
                let whole = Duration::from_nanos(connection.elapsed_ns);
                [
                    visible(&connection.client).into_owned(),
                    visible(&connection.server).into_owned(),
                    nanos(connection.elapsed_ns),
                    count(connection.exchanges),
                    nanos(connection.slowest_ns),
                    count(connection.packets),
                    connection.most.as_ref().map_or_else(String::new, |(cause, ns)| {
                        format!("{} {}", visible(cause), percent(Duration::from_nanos(*ns), whole))
                    }),
                ]
            })
            .collect();
        let told: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        let room = canvas.area.height.saturating_sub(3);
        let lines = table(&CONNECTIONS, &rows, canvas.columns());
        self.draw_table(canvas, [1, room], &lines, &told, at, &|_| Style::new());
        if connections.is_empty() {
            canvas.line(2, "none of its packets is among the latest", faint());
        }
    }

    /// The heading, and as many lines as fit, with the selected one among them.
    fn draw_table(
        &self,
        canvas: &mut Canvas<'_>,
        [from, room]: [u16; 2],
        lines: &[String],
        told: &[String],
        at: usize,
        style: &dyn Fn(usize) -> Style,
    ) {
        let Some((head, lines)) = lines.split_first() else { return };
        canvas.line(from, head, faint());
        let height = usize::from(room);
        let first = at.saturating_sub(height / 2).min(lines.len().saturating_sub(height));
        let wanted = self.search.to_lowercase();
        for (i, line) in lines.iter().enumerate().skip(first).take(height) {
            let y = from + 1 + (i - first) as u16;
            let mut style = style(i);
            if !wanted.is_empty() && told[i].to_lowercase().contains(&wanted) {
                style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            }
            if i == at {
                let padded = format!("{line:<width$}", width = canvas.columns());
                canvas.line(y, &padded, style.add_modifier(Modifier::REVERSED));
            } else {
                canvas.line(y, line, style);
            }
        }
    }

    fn draw_text(&self, canvas: &mut Canvas<'_>, text: &Text) {
        canvas.line(0, &visible(&text.title), strong());
        let lines = text.shown(canvas.area.width);
        let room = usize::from(self.page_lines());
        let top = text.top.min(lines.len());
        let bottom = (top + room).min(lines.len());
        canvas.right(0, &format!("{}-{bottom} of {}", (top + 1).min(bottom), lines.len()), faint());
        let wanted = self.search.to_lowercase();
        for (line, y) in lines[top..bottom].iter().zip(1..) {
            let mut style = if text.is_prose && line.starts_with('#') { strong() } else { Style::new() };
            if !wanted.is_empty() && line.to_lowercase().contains(&wanted) {
                style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            }
            canvas.line(y, &visible(line), style);
        }
    }

    /// The input line, a message, or the keys.
    fn draw_foot(&self, canvas: &mut Canvas<'_>) {
        let y = canvas.area.height - 1;
        match (&self.prompt, &self.message, self.pages.last()) {
            (Some(Prompt::Search(text)), ..) => canvas.line(y, &format!("search: {text}_"), strong()),
            (Some(Prompt::Filter(text)), ..) => canvas.line(y, &format!("only with: {text}_"), strong()),
            (None, Some(message), _) => canvas.line(y, &visible(message), self.colored(Color::Yellow)),
            (None, None, None) => canvas.line(
                y,
                "enter connections  e explain  o order  f filter  / search  p pause  s save  ? keys  q quit",
                faint(),
            ),
            (None, None, Some(Page::Connections { .. })) => {
                canvas.line(y, "enter packets  e explain  / search  s save  esc back  q quit", faint());
            }
            (None, None, Some(Page::Text(_))) => {
                canvas.line(y, "up, down, PgUp, PgDn  / search  n next  esc back  q quit", faint());
            }
        }
    }

    fn style_of(&self, finding: &Finding) -> Style {
        match finding.trend.as_str() {
            "rising" => self.colored(Color::Red),
            "falling" => self.colored(Color::Green),
            "over" => faint(),
            _ => Style::new(),
        }
    }

    fn colored(&self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }
}

fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// The area to draw on.
struct Canvas<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
}

impl Canvas<'_> {
    fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    /// A line, cut to the width.
    fn line(&mut self, y: u16, text: &str, style: Style) {
        if y < self.area.height {
            let text = cut(text, self.columns());
            self.buffer.set_stringn(self.area.x, self.area.y + y, text, self.columns(), style);
        }
    }

    /// Text at the end of a line.
    fn right(&mut self, y: u16, text: &str, style: Style) {
        let text = cut(text, self.columns());
        let x = self.columns() - text.chars().count().min(self.columns());
        self.buffer.set_stringn(self.area.x + x as u16, self.area.y + y, text, self.columns() - x, style);
    }
}
