//! What does the user see now, and what does a key change? Answers and keys in, requested actions out; the
//! screen is drawn from the state.

use std::collections::{BTreeMap, VecDeque};

use crate::answer::{Answer, Finding};
use crate::pages::{Page, Text, help};

/// A key that has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Return
    Enter,
    /// Escape
    Escape,
    /// Deletes to the left.
    Backspace,
    /// One line.
    Up,
    /// One line.
    Down,
    /// A screen.
    PageUp,
    /// A screen.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// Ctrl-C
    Interrupt,
}

/// The action that a key requests from the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End, with the full answer.
    Quit,
    /// Write recent packets to a file.
    Save,
    /// Show the recent connections to this server, with [`State::show_connections`].
    Connections {
        /// `10.0.0.5:8080`
        endpoint: String,
    },
    /// Show the packets of a listed connection, with [`State::show_packets`].
    Packets {
        /// Its number there.
        connection: u64,
    },
}

/// A connection in the recent packets, as their reader reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Its number there.
    pub id: u64,
    /// `10.0.0.9:51000`
    pub client: String,
    /// `10.0.0.5:8080`
    pub server: String,
    /// Packets, both directions.
    pub packets: u64,
    /// Setups, exchanges and one-way messages.
    pub exchanges: u64,
    /// Their time.
    pub elapsed_ns: i64,
    /// The slowest one.
    pub slowest_ns: i64,
    /// The cause that took most of it, and its time.
    pub most: Option<(String, i64)>,
}

/// Sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Cost,
    Lately,
    Median,
    Hits,
    Endpoint,
    Cause,
}

impl Order {
    const ALL: [Self; 6] = [Self::Cost, Self::Lately, Self::Median, Self::Hits, Self::Endpoint, Self::Cause];

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|order| *order == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Cost => "by time in all",
            Self::Lately => "by time lately",
            Self::Median => "by median",
            Self::Hits => "by exchanges",
            Self::Endpoint => "by endpoint",
            Self::Cause => "by cause",
        }
    }
}

/// What is being typed, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    Search(String),
    Filter(String),
}

/// A finding's name.
type Name = (String, String, String);

/// Intervals remembered for each finding.
const STRETCHES: usize = 16;
/// Maximum length of typed text.
const TYPED_MAX: usize = 64;

/// Everything visible, and what it was selected from.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// `eth0, port 8080`
    pub(crate) about: String,
    pub(crate) answer: Answer,
    /// Packets and exchanges per second in the last interval.
    pub(crate) rates: [u64; 2],
    /// The answer that came while paused.
    latest: Option<Answer>,
    pub(crate) is_paused: bool,
    pub(crate) order: Order,
    pub(crate) is_reversed: bool,
    pub(crate) filter: String,
    pub(crate) search: String,
    pub(crate) prompt: Option<Prompt>,
    selected: Option<Name>,
    history: BTreeMap<Name, VecDeque<i64>>,
    /// As it was at the time of the pause.
    paused_history: BTreeMap<Name, VecDeque<i64>>,
    /// Pages above the findings; the last one is visible.
    pub(crate) pages: Vec<Page>,
    pub(crate) message: Option<String>,
    /// Columns and lines.
    pub(crate) size: [u16; 2],
    /// Colours may be used.
    pub(crate) has_color: bool,
}

impl State {
    /// Nothing has been found yet.
    pub fn new(about: String, has_color: bool) -> Self {
        Self { about, has_color, size: [80, 24], ..Self::default() }
    }

    /// Takes the next answer; while paused, keeps it for later.
    pub fn on_answer(&mut self, answer: Answer) {
        let mut history = BTreeMap::new();
        for finding in &answer.findings {
            let name = name(finding);
            let mut stretches = self.history.remove(&name).unwrap_or_default();
            stretches.push_back(finding.lately.ns);
            if stretches.len() > STRETCHES {
                stretches.pop_front();
            }
            history.insert(name, stretches);
        }
        self.history = history;
        if self.is_paused {
            self.latest = Some(answer);
        } else {
            self.take(answer);
        }
    }

    fn take(&mut self, answer: Answer) {
        let span_us = answer.after_us.saturating_sub(self.answer.after_us).max(1);
        let rate = |now: u64, before: u64| {
            (u128::from(now.saturating_sub(before)) * 1_000_000 / u128::from(span_us)) as u64
        };
        self.rates =
            [rate(answer.packets, self.answer.packets), rate(answer.exchanges, self.answer.exchanges)];
        self.answer = answer;
    }

    /// The terminal has this many columns and lines.
    pub fn on_size(&mut self, columns: u16, lines: u16) {
        self.size = [columns, lines];
    }

    /// Number of columns.
    pub fn columns(&self) -> u16 {
        self.size[0]
    }

    /// The message about a running action is obsolete.
    pub fn done(&mut self) {
        self.message = None;
    }

    /// Shows a message until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Opens the connections to a server.
    pub fn show_connections(&mut self, title: String, mut connections: Vec<Connection>) {
        connections.sort_by_key(|connection| (std::cmp::Reverse(connection.elapsed_ns), connection.id));
        self.pages.push(Page::Connections { title, connections, at: 0 });
    }

    /// Opens the packets of a connection, at their end.
    pub fn show_packets(&mut self, title: String, lines: Vec<String>) {
        let mut text = Text { title, lines, top: usize::MAX, is_prose: false };
        text.scroll(0, self.size);
        self.pages.push(Page::Text(text));
    }

    /// Findings that pass the filter, in the order chosen.
    pub(crate) fn findings(&self) -> Vec<&Finding> {
        let wanted = self.filter.to_lowercase();
        let mut found: Vec<&Finding> = self.answer.findings.iter().collect();
        found.retain(|finding| told(finding).contains(&wanted));
        match self.order {
            // In the order of the answer.
            Order::Cost => {}
            Order::Lately => found.sort_by_key(|finding| std::cmp::Reverse(finding.lately.ns)),
            Order::Median => found.sort_by_key(|finding| std::cmp::Reverse(finding.p50_ns)),
            Order::Hits => found.sort_by_key(|finding| std::cmp::Reverse(finding.hits)),
            Order::Endpoint => found.sort_by(|one, other| one.endpoint.cmp(&other.endpoint)),
            Order::Cause => found.sort_by(|one, other| one.cause.cmp(&other.cause)),
        }
        if self.is_reversed {
            found.reverse();
        }
        found
    }

    /// The row of the selected finding.
    pub(crate) fn at(&self, findings: &[&Finding]) -> usize {
        let selected = self.selected.as_ref();
        findings.iter().position(|finding| selected == Some(&name(finding))).unwrap_or(0)
    }

    /// What was added to a finding in the last intervals.
    pub(crate) fn history(&self, finding: &Finding) -> impl Iterator<Item = &i64> + Clone {
        let history = if self.is_paused { &self.paused_history } else { &self.history };
        history.get(&name(finding)).into_iter().flatten()
    }

    /// Handles a key.
    pub fn on_key(&mut self, key: Key) -> Option<Wish> {
        self.message = None;
        if key == Key::Interrupt {
            return Some(Wish::Quit);
        }
        if let Some(prompt) = self.prompt.take() {
            self.on_typed(prompt, key);
            return None;
        }
        match key {
            Key::Char('q') => return Some(Wish::Quit),
            Key::Char('s') => return Some(Wish::Save),
            Key::Char('/') => self.prompt = Some(Prompt::Search(String::new())),
            Key::Char('n') => self.find(1),
            Key::Char('N') => self.find(-1),
            Key::Char('p' | ' ') => self.pause(),
            Key::Char('?') => self.pages.push(Page::Text(help())),
            Key::Char('e') => self.explain(),
            Key::Enter => return self.open(),
            Key::Escape | Key::Backspace => self.back(),
            Key::Char('j') | Key::Down => self.go(1),
            Key::Char('k') | Key::Up => self.go(-1),
            Key::PageDown => self.go(i64::from(self.page_lines())),
            Key::PageUp => self.go(-i64::from(self.page_lines())),
            Key::Home | Key::Char('g') => self.go(-FAR),
            Key::End | Key::Char('G') => self.go(FAR),
            Key::Char('f') if self.pages.is_empty() => {
                self.prompt = Some(Prompt::Filter(self.filter.clone()));
            }
            Key::Char('o') if self.pages.is_empty() => self.order = self.order.next(),
            Key::Char('r') if self.pages.is_empty() => self.is_reversed = !self.is_reversed,
            Key::Char(_) | Key::Interrupt => {}
        }
        None
    }

    /// Handles a key during text input.
    fn on_typed(&mut self, mut prompt: Prompt, key: Key) {
        let (Prompt::Search(text) | Prompt::Filter(text)) = &mut prompt;
        match key {
            Key::Escape => return,
            Key::Backspace => {
                text.pop();
            }
            Key::Char(c) if text.chars().count() < TYPED_MAX && !c.is_control() => text.push(c),
            Key::Enter => {
                match prompt {
                    Prompt::Search(text) => {
                        self.search = text;
                        self.find(0);
                    }
                    Prompt::Filter(text) => self.filter = text,
                }
                return;
            }
            _ => {}
        }
        self.prompt = Some(prompt);
    }

    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        self.paused_history = if self.is_paused { self.history.clone() } else { BTreeMap::new() };
        if let Some(latest) = self.latest.take() {
            self.take(latest);
        }
    }

    /// Closes the top page; without one, clears filter and search.
    fn back(&mut self) {
        if self.pages.pop().is_none() {
            self.filter.clear();
            self.search.clear();
        }
    }

    fn explain(&mut self) {
        let cause = match self.pages.last() {
            Some(Page::Text(_)) => return,
            Some(Page::Connections { connections, at, .. }) => connections
                .get(*at)
                .and_then(|connection| connection.most.as_ref())
                .map(|(cause, _)| cause.clone()),
            None => {
                let findings = self.findings();
                findings.get(self.at(&findings)).map(|finding| finding.cause.clone())
            }
        };
        if let Some(page) = cause.and_then(|cause| Text::of_cause(&cause)) {
            self.pages.push(Page::Text(page));
        }
    }

    fn open(&mut self) -> Option<Wish> {
        match self.pages.last() {
            Some(Page::Text(_)) => None,
            Some(Page::Connections { connections, at, .. }) => {
                connections.get(*at).map(|connection| Wish::Packets { connection: connection.id })
            }
            None => {
                let findings = self.findings();
                let endpoint = findings.get(self.at(&findings))?.endpoint.clone();
                if !endpoint.contains(':') {
                    self.say("this finding covers several servers: see --json or the saved file".to_owned());
                    return None;
                }
                Some(Wish::Connections { endpoint })
            }
        }
    }

    /// Lines of a page that are visible.
    pub(crate) fn page_lines(&self) -> u16 {
        self.size[1].saturating_sub(3).max(1)
    }

    /// Moves down by this many lines.
    fn go(&mut self, lines: i64) {
        let size = self.size;
        match self.pages.last_mut() {
            Some(Page::Text(text)) => text.scroll(lines, size),
            Some(Page::Connections { connections, at, .. }) => *at = moved(*at, lines, connections.len()),
            None => {
                let findings = self.findings();
                let to = moved(self.at(&findings), lines, findings.len());
                self.selected = findings.get(to).map(|finding| name(finding));
            }
        }
    }

    /// Goes to the next line that matches the search: the current or a later one (0), a later one (1), an
    /// earlier one (-1).
    fn find(&mut self, direction: i64) {
        if self.search.is_empty() {
            return;
        }
        let wanted = self.search.to_lowercase();
        let size = self.size;
        let found = match self.pages.last_mut() {
            Some(Page::Text(text)) => {
                let lines = text.shown(size[0]);
                let has = |i: usize| lines[i].to_lowercase().contains(&wanted);
                let to = next(text.top.min(lines.len()), lines.len(), direction, has);
                text.top = to.unwrap_or(text.top);
                text.scroll(0, size);
                to.is_some()
            }
            Some(Page::Connections { connections, at, .. }) => {
                let has = |i: usize| told_of_connection(&connections[i]).contains(&wanted);
                let to = next(*at, connections.len(), direction, has);
                *at = to.unwrap_or(*at);
                to.is_some()
            }
            None => {
                let findings = self.findings();
                let to = next(self.at(&findings), findings.len(), direction, |i| {
                    told(findings[i]).contains(&wanted)
                });
                let selected = to.map(|to| name(findings[to]));
                let is_found = selected.is_some();
                self.selected = selected.or(self.selected.take());
                is_found
            }
        };
        if !found {
            self.say(format!("nothing here has {:?}", self.search));
        }
    }
}

/// Farther than any page is long.
const FAR: i64 = 1 << 40;

fn name(finding: &Finding) -> Name {
    (finding.cause.clone(), finding.side.clone(), finding.endpoint.clone())
}

/// The text of a finding that is searched.
fn told(finding: &Finding) -> String {
    let Finding { cause, side, endpoint, confidence, trend, .. } = finding;
    let fact = finding.socket.as_ref().map_or("", |fact| fact.words.as_str());
    format!("{cause} {side} {endpoint} {confidence} {trend} {fact}").to_lowercase()
}

fn told_of_connection(connection: &Connection) -> String {
    let most = connection.most.as_ref().map_or("", |(cause, _)| cause.as_str());
    format!("{} {} {most}", connection.client, connection.server).to_lowercase()
}

pub(crate) fn moved(at: usize, lines: i64, count: usize) -> usize {
    let last = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1).max(0);
    let at = i64::try_from(at).unwrap_or(i64::MAX).min(last);
    usize::try_from(at.saturating_add(lines).clamp(0, last)).unwrap_or(0)
}

/// The next match in this direction, wrapping around at the end.
fn next(at: usize, count: usize, direction: i64, has: impl Fn(usize) -> bool) -> Option<usize> {
    let step = |i: usize| match direction {
        0 => (at + i) % count,
        1.. => (at + i + 1) % count,
        _ => (at + 2 * count - i - 1) % count,
    };
    (0..count).map(step).find(|i| has(*i))
}
