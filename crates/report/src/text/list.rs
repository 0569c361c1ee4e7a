//! Which connections are there, how long did each take, and what was its top cause?

use std::cmp::Reverse;

use tcpwhy_core::report::{Connection, Kind, Report};
use tcpwhy_wire::Duration;

use super::Style;
use super::layout::{cut, left, right, widths, wrap};
use crate::clock::time_of_day;
use crate::quantity::{count, counted, percent, time};

/// Sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Most time billed first.
    Cost,
    /// Earliest first.
    Start,
    /// Slowest exchange first.
    Slowest,
}

/// The stream of a connection in Wireshark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The values of `tcp.stream` in versions 4.0 and 4.4; all but the first begin within the
    /// connection.
    Of([Vec<u64>; 2]),
    /// There were too many to follow.
    NotFollowed,
}

/// What is known about streams.
#[derive(Clone, Copy)]
pub enum Streams<'a> {
    /// The stream of each connection.
    Of(&'a dyn Fn(&Connection) -> Stream),
    /// Each file has its own numbers.
    SeveralFiles,
    /// Packets before the window were not counted.
    NotCounted,
}

impl Streams<'_> {
    fn of(self, connection: &Connection) -> Option<Stream> {
        match self {
            Self::Of(of) => Some(of(connection)),
            Self::SeveralFiles | Self::NotCounted => None,
        }
    }

    /// The numbers of a connection by version, if they are known.
    pub(crate) fn numbers(self, connection: &Connection) -> [Vec<u64>; 2] {
        match self.of(connection) {
            Some(Stream::Of(numbers)) => numbers,
            _ => Default::default(),
        }
    }
}

/// Maximum number of streams shown for one connection.
const STREAMS_TOLD: usize = 3;

fn stream_cell(stream: Option<&Stream>) -> String {
    let Some(Stream::Of([numbers, later])) = stream else { return "-".to_owned() };
    let told = |numbers: &[u64]| {
        let told: Vec<String> = numbers.iter().take(STREAMS_TOLD).map(u64::to_string).collect();
        told.join(",") + if numbers.len() > STREAMS_TOLD { ",..." } else { "" }
    };
    if numbers == later { told(numbers) } else { format!("{}|{}", told(numbers), told(later)) }
}

fn slowest(connection: &Connection) -> Duration {
    connection.exchanges.iter().map(|exchange| exchange.elapsed).max().unwrap_or(Duration::ZERO)
}

/// The connections in this order.
pub fn ordered(report: &Report, order: Order) -> Vec<&Connection> {
    let mut connections: Vec<&Connection> = report.connections.iter().collect();
    match order {
        Order::Cost => connections.sort_by_key(|connection| Reverse(connection.cost())),
        Order::Start => connections.sort_by_key(|connection| connection.packet_range[0]),
        Order::Slowest => connections.sort_by_key(|connection| Reverse(slowest(connection))),
    }
    connections
}

/// The cells of each row, below the headings.
fn cells(connections: &[&Connection], top: usize, style: Style) -> Vec<[String; 9]> {
    let mut cells = vec![
        ["n", "client", "server", "start", "lasts", "exch.", "billed", "slowest", "top cause"]
            .map(str::to_owned),
    ];
    for connection in connections.iter().take(top) {
        let exchanges =
            connection.exchanges.iter().filter(|exchange| exchange.kind != Kind::Setup).count() as u64;
        let setups = connection.exchanges.len() as u64 - exchanges;
        let most = connection.bill.first().map_or_else(
            || "nothing billed".to_owned(),
            |line| format!("{} {}", line.cause, percent(line.ns, connection.cost())),
        );
        cells.push([
            connection.id.to_string(),
            connection.client.to_string(),
            connection.server.to_string(),
            time_of_day(connection.span[0], style.offset_s),
            time(connection.span[1] - connection.span[0]),
            count(connection.billed.saturating_sub(setups)),
            time(connection.cost()),
            time(slowest(connection)),
            most,
        ]);
    }
    cells
}

/// At most `top` connections as a table in Markdown.
pub fn list_as_markdown(report: &Report, order: Order, top: usize, style: Style) -> String {
    let connections = ordered(report, order);
    let rows = cells(&connections, top, style).into_iter().map(|row| format!("| {} |\n", row.join(" | ")));
    let mut rows: Vec<String> = rows.collect();
    rows.insert(1, "|--:|---|---|--:|--:|--:|--:|--:|---|\n".to_owned());
    let all = connections.len() as u64 + report.omitted.connections;
    let shown = connections.len().min(top) as u64;
    if all > shown {
        rows.push(format!("\nand {} more\n", count(all - shown)));
    }
    rows.concat()
}

/// What is dropped on a narrow terminal: a column, digits of a time of day, or the share of the
/// cause.
#[derive(Clone, Copy)]
enum Step {
    Without(usize),
    StartIn(usize),
    CauseAlone,
}

/// What is dropped, in this order, until a line fits: first what the last line or another column
/// also shows.
fn steps(order: Order) -> [Step; 9] {
    let (duration, slowest) = (Step::Without(DURATION), Step::Without(SLOWEST));
    let (first, second) = if order == Order::Slowest { (duration, slowest) } else { (slowest, duration) };
    [
        Step::Without(STREAM),
        // `10:00:00.123`, `10:00:00`.
        Step::StartIn(12),
        first,
        Step::StartIn(8),
        Step::CauseAlone,
        Step::Without(EXCHANGES),
        second,
        Step::Without(START),
        Step::Without(BILLED),
    ]
}

const STREAM: usize = 1;
const START: usize = 4;
const DURATION: usize = 5;
const EXCHANGES: usize = 6;
const BILLED: usize = 7;
const SLOWEST: usize = 8;
const CAUSE: usize = 9;
const COLUMNS: usize = 10;
/// Numeric columns.
const FROM_THE_RIGHT: std::ops::RangeInclusive<usize> = START..=SLOWEST;

const SHOWS: &str =
    "`tcp.stream eq N` in Wireshark, with N from the column stream, shows the packets of a line.";
const SEVERAL: &str =
    "N,M: `tcp.stream in {N,M}`; to Wireshark, a SYN with another sequence number begins a stream.";
const VERSIONS: &str = "N|M: N in Wireshark 4.0, M in 4.4, where a SYN after a FIN or a reset, and another SYN/ACK, begin a stream.";
const NOT_FOLLOWED: &str = "Lines with - have no stream number: too many connections for --memory.";
const SEVERAL_FILES: &str =
    "Wireshark numbers the streams of each file by itself: list one file to see their numbers.";
const NOT_COUNTED: &str =
    "Wireshark's stream numbers are not known: packets too far before --from were not counted.";

/// A table that fits the terminal.
struct Table {
    rows: Vec<[String; COLUMNS]>,
    has: [bool; COLUMNS],
    /// The streams of the lines' connections in Wireshark.
    streams: Vec<Option<Stream>>,
}

impl Table {
    fn of(connections: &[&Connection], order: Order, top: usize, numbers: Streams<'_>, style: Style) -> Self {
        let streams: Vec<_> = connections.iter().take(top).map(|connection| numbers.of(connection)).collect();
        let shown = streams.iter().map(|stream| stream_cell(stream.as_ref()));
        let shown = std::iter::once("stream".to_owned()).chain(shown);
        let rows = cells(connections, top, style).into_iter().zip(shown);
        let rows =
            rows.map(|([id, client, server, start, lasts, exchanges, billed, slowest, most], stream)| {
                [id, stream, client, server, start, lasts, exchanges, billed, slowest, most]
            });
        let mut table = Self { rows: rows.collect(), has: [true; COLUMNS], streams };
        table.has[STREAM] = matches!(numbers, Streams::Of(_));
        for step in steps(order) {
            if table.columns() <= style.width {
                break;
            }
            match step {
                Step::Without(column) => table.has[column] = false,
                Step::StartIn(digits) => table.rows.iter_mut().for_each(|row| row[START].truncate(digits)),
                Step::CauseAlone => table.rows.iter_mut().for_each(|row| {
                    if row[CAUSE].ends_with('%') {
                        let end = row[CAUSE].find(' ').unwrap_or(row[CAUSE].len());
                        row[CAUSE].truncate(end);
                    }
                }),
            }
        }
        table
    }

    /// Columns of the terminal that it takes.
    fn columns(&self) -> usize {
        let widths = widths(&self.rows).into_iter().zip(self.has);
        widths.filter(|(_, has)| *has).map(|(width, _)| width + 2).sum::<usize>().saturating_sub(2)
    }

    fn lines(&self, style: Style) -> Vec<String> {
        let widths = widths(&self.rows);
        let line = |row: &[String; COLUMNS]| {
            let there = row.iter().zip(widths).enumerate().filter(|(column, _)| self.has[*column]);
            let shown = there.map(|(column, (cell, width))| match column {
                0 | STREAM => right(cell, width),
                column if FROM_THE_RIGHT.contains(&column) => right(cell, width),
                _ => left(cell, width),
            });
            cut(shown.collect::<Vec<_>>().join("  ").trim_end(), style.width)
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        if let Some(heading) = lines.first_mut() {
            *heading = style.faint(heading);
        }
        lines
    }

    /// Notes about the streams.
    fn notes(&self, numbers: Streams<'_>) -> Vec<String> {
        let first =
            self.rows.get(1).map(|row| row[STREAM].as_str()).filter(|cell| cell.parse::<u64>().is_ok());
        let mut notes = Vec::new();
        let mut say = |is_so: bool, text: String| {
            if is_so {
                notes.push(text);
            }
        };
        let has = |is: fn(&Stream) -> bool| self.has[STREAM] && self.streams.iter().flatten().any(is);
        say(has(|stream| matches!(stream, Stream::Of(_))), SHOWS.to_owned());
        say(
            has(|stream| matches!(stream, Stream::Of([one, other]) if one.len().max(other.len()) > 1)),
            SEVERAL.to_owned(),
        );
        say(has(|stream| matches!(stream, Stream::Of([one, other]) if one != other)), VERSIONS.to_owned());
        say(has(|stream| *stream == Stream::NotFollowed), NOT_FOLLOWED.to_owned());
        match (numbers, first) {
            (Streams::Of(_), Some(first)) if !self.has[STREAM] => {
                say(true, format!("The first one listed is `tcp.stream eq {first}` in Wireshark."));
            }
            (Streams::Of(_), _) => {}
            (Streams::SeveralFiles, _) => say(true, SEVERAL_FILES.to_owned()),
            (Streams::NotCounted, _) => say(true, NOT_COUNTED.to_owned()),
        }
        notes
    }

    /// The names of dropped columns.
    fn left_out(&self) -> Option<String> {
        let heading = self.rows.first()?;
        let has_streams = self.streams.iter().any(Option::is_some);
        let columns = std::iter::once(STREAM).filter(|_| has_streams).chain(START..=SLOWEST);
        let names = columns.filter(|column| !self.has[*column]).map(|column| heading[column].as_str());
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// At most `top` connections, a line each, with Wireshark's stream number.
pub fn list(report: &Report, order: Order, top: usize, streams: Streams<'_>, style: Style) -> String {
    let connections = ordered(report, order);
    let table = Table::of(&connections, order, top, streams, style);
    let mut out = table.lines(style);
    let mut say = |text: &str| out.extend(wrap(text, style.width, "", ""));
    let listed = connections.len();
    if listed > top {
        say(&format!("... and {} more (--top {listed} shows all)", count((listed - top) as u64)));
    }
    if report.omitted.connections > 0 {
        say(&format!(
            "{} more not listed after the first {}",
            counted(report.omitted.connections, "connection"),
            count(listed as u64)
        ));
    }
    if let Some(names) = table.left_out() {
        say(&format!("No room for {names}: use a wider terminal, --width or --format csv."));
    }
    for note in table.notes(streams) {
        say(&note);
    }
    out.push(String::new());
    style.finish(out).join("\n")
}
