//! How does the user explore live traffic? Answers and keys change the state, the state is drawn,
//! and keys trigger actions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use tcpwhy_report::quantity::{bytes, time};
use tcpwhy_view::{State, Wish};

use super::look::{self, Seen};
use super::recent::{Recent, Snapshot};
use super::relay::Said;
use super::terminal::{Came, Screen, next};
use super::{Session, made_anew};

/// How long to wait for a key before checking for other events.
const STEP: Duration = Duration::from_millis(50);

/// A question to a reader that has not been answered yet.
struct Pending {
    title: String,
    answer: Receiver<anyhow::Result<Seen>>,
}

/// The connections opened last: their server, and the packets used.
struct Opened {
    server: std::net::SocketAddr,
    snapshot: Arc<Snapshot>,
}

/// Runs until the user ends it. Returns what the reader may already have said of its final answer.
pub(super) fn run(session: &mut Session<'_>, about: String, recent: &Recent) -> anyhow::Result<Vec<u8>> {
    let mut state = State::new(about, session.args.color.is_on());
    let mut screen = Screen::open()?;
    let (columns, lines) = screen.size()?;
    state.on_size(columns, lines);
    let (mut pending, mut opened) = (None::<Pending>, None::<Opened>);
    screen.draw(&state)?;
    while !session.ends() {
        let mut is_changed = false;
        if let Some(came) = next(STEP)? {
            is_changed = true;
            match came {
                Came::Size(columns, lines) => state.on_size(columns, lines),
                Came::Key(key) => match state.on_key(key) {
                    None => {}
                    Some(Wish::Quit) => return Ok(Vec::new()),
                    Some(Wish::Save) => state.say(save(recent)),
                    Some(Wish::Connections { endpoint }) => match endpoint.parse() {
                        Ok(server) => {
                            let snapshot = Arc::new(recent.snapshot());
                            let title = format!("connections to {server} in the last {}", span(&snapshot));
                            pending = Some(Pending { title, answer: look::connections(&snapshot, server) });
                            opened = Some(Opened { server, snapshot });
                        }
                        Err(_) => state.say(format!("{endpoint} is no address")),
                    },
                    Some(Wish::Packets { connection }) => {
                        if let Some(Opened { server, snapshot }) = &opened {
                            let title =
                                format!("packets of the last {}, the latest at the end", span(snapshot));
                            let answer = look::packets(snapshot, *server, connection, state.columns());
                            pending = Some(Pending { title, answer });
                        }
                    }
                },
            }
            if pending.is_some() {
                state.say("reading the last packets".to_owned());
            }
        }
        loop {
            match session.said.try_recv() {
                Ok(Said::Answer(answer)) => {
                    let answer = session.complete(*answer);
                    state.on_answer(answer);
                    is_changed = true;
                }
                Ok(Said::Rest(rest)) => return Ok(rest),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(Vec::new()),
            }
        }
        if let Some(Pending { title, answer }) = pending.take() {
            match answer.try_recv() {
                Err(TryRecvError::Empty) => pending = Some(Pending { title, answer }),
                Ok(Ok(Seen::Connections(connections))) => {
                    state.done();
                    state.show_connections(title, connections);
                    is_changed = true;
                }
                Ok(Ok(Seen::Packets(lines))) => {
                    state.done();
                    state.show_packets(title, lines);
                    is_changed = true;
                }
                Ok(Err(error)) => {
                    state.say(format!("{error:#}"));
                    is_changed = true;
                }
                Err(TryRecvError::Disconnected) => {
                    state.say("cannot start a thread for it".to_owned());
                    is_changed = true;
                }
            }
        }
        if is_changed {
            screen.draw(&state)?;
        }
    }
    Ok(Vec::new())
}

fn span(snapshot: &Snapshot) -> String {
    let ns = i64::try_from(snapshot.span.as_nanos()).unwrap_or(i64::MAX);
    time(tcpwhy_wire::Duration::from_nanos(ns))
}

/// Saves recent packets into the current directory; returns the outcome.
fn save(recent: &Recent) -> String {
    let path = PathBuf::from(format!("tcpwhy-{}.pcapng", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S")));
    let snapshot = recent.snapshot();
    let written = made_anew(&path).and_then(|mut file| {
        snapshot.write(&mut file)?;
        Ok(file.metadata()?.len())
    });
    match written {
        Ok(length) => format!("saved the last {}, {}: {}", span(&snapshot), bytes(length), path.display()),
        Err(error) => format!("not saved: {error:#}"),
    }
}
