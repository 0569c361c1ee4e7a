//! What did single connections do in the last seconds? A sandboxed reader answers, as `tcpwhy read`
//! does.

use std::io::Read as _;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use anyhow::Context as _;
use tcpwhy_view::Connection;

use super::recent::Snapshot;
use crate::document::{self, Document};
use crate::feed::reader;

/// A larger answer is not shown on a screen.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Lines of a ladder that are kept, the last ones.
const LINES_MAX: usize = 4_000;

/// A reader's answer.
pub(super) enum Seen {
    Connections(Vec<Connection>),
    /// The packets of a connection, as text.
    Packets(Vec<String>),
}

/// Asks for the connections to a server.
pub(super) fn connections(snapshot: &Arc<Snapshot>, server: SocketAddr) -> Receiver<anyhow::Result<Seen>> {
    let words = ["read", "-", "--json", "--threads", "1", "--filter", &filter(server)].map(str::to_owned);
    ask(snapshot, words.to_vec(), |out| {
        let document: Document = serde_json::from_slice(out).context("the reader gave no answer")?;
        Ok(Seen::Connections(document.connections.into_iter().map(told).collect()))
    })
}

/// Asks for the packets of one of them, by its number there.
pub(super) fn packets(
    snapshot: &Arc<Snapshot>,
    server: SocketAddr,
    number: u64,
    columns: u16,
) -> Receiver<anyhow::Result<Seen>> {
    let (number, columns) = (number.to_string(), columns.clamp(60, 200).to_string());
    let filter = filter(server);
    let words = [
        "read",
        "-",
        "--threads",
        "1",
        "--filter",
        &filter,
        "--connection",
        &number,
        "-v",
        "--width",
        &columns,
    ];
    ask(snapshot, words.map(str::to_owned).to_vec(), |out| {
        let text = String::from_utf8_lossy(out);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        // The first lines name the connection.
        let kept = lines.len().saturating_sub(LINES_MAX);
        let head = lines.iter().take(3.min(kept));
        Ok(Seen::Packets(head.chain(&lines[kept..]).map(|line| (*line).to_owned()).collect()))
    })
}

fn filter(server: SocketAddr) -> String {
    format!("host {} and port {}", server.ip(), server.port())
}

/// Asks on separate threads.
fn ask(
    snapshot: &Arc<Snapshot>,
    words: Vec<String>,
    tell: impl FnOnce(&[u8]) -> anyhow::Result<Seen> + Send + 'static,
) -> Receiver<anyhow::Result<Seen>> {
    let (sender, receiver) = channel();
    let snapshot = Arc::clone(snapshot);
    let work = move || {
        let asked = answer(&snapshot, &words).and_then(|out| tell(&out));
        // The screen may be gone.
        let _ = sender.send(asked);
    };
    // If no thread can be started, the receiver sees that the sender is gone.
    let _ = std::thread::Builder::new().name("tcpwhy-look".to_owned()).spawn(work);
    receiver
}

fn answer(snapshot: &Snapshot, words: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut child = reader(words, Stdio::piped(), Stdio::piped())?;
    let mut input = child.stdin.take().context("the reader has no input")?;
    let mut out = child.stdout.take().context("the reader has no output")?;
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        // The reader may stop before the end.
        scope.spawn(move || drop(snapshot.write(&mut input)));
        out.by_ref().take(ANSWER_BYTES_MAX).read_to_end(&mut said)
    })?;
    drop(out);
    child.wait()?;
    Ok(said)
}

/// A connection of the document, in the form of the screen.
fn told(connection: document::Connection) -> Connection {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    Connection {
        elapsed_ns: signed(connection.bill.iter().map(|line| line.ns).sum()),
        slowest_ns: signed(
            connection.exchanges.iter().map(|exchange| exchange.elapsed_ns).max().unwrap_or(0),
        ),
        most: connection.bill.into_iter().next().map(|line| (line.cause, signed(line.ns))),
        id: connection.id,
        client: connection.client,
        server: connection.server,
        packets: connection.packets,
        exchanges: connection.billed,
    }
}
