//! What did the client measure? Lines `connect START END LOCALPORT` and `exchange START END REQUEST
//! REPLY`; or only `call START END`, from a framework that hides its connections and its messages.

use anyhow::{Context as _, bail};
use tcpwhy_lab::Pair;
use tcpwhy_lab::truth::{Kind, PerSide, Setup, Think, TrueConnection, TrueExchange, Truth};

/// The truth, as far as the client's own clock tells it.
pub(super) fn truth(said: &str, port: u16) -> anyhow::Result<Truth> {
    let (mut truth, mut calls) = (Truth::empty(), Vec::new());
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let what = words.next().unwrap_or_default();
        let numbers: Vec<i64> = words
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| format!("the client's account: {line}"))?;
        match (what, numbers.as_slice()) {
            ("connect", &[start_ns, end_ns, local]) => truth.connections.push(TrueConnection {
                client: format!("{}:{local}", Pair::CLIENT_V4),
                server: format!("{}:{port}", Pair::SERVER_V4),
                setup: Setup { start_ns, end_ns, elapsed_ns: end_ns - start_ns, ..Setup::default() },
                exchanges: Vec::new(),
                events: PerSide::default(),
                samples: PerSide::default(),
            }),
            ("exchange", &[start_ns, end_ns, request, reply]) => {
                let connection = truth.connections.last_mut().context("an exchange without a connection")?;
                let before = connection.exchanges.last().map_or(connection.setup.end_ns, |last| last.end_ns);
                let (request, reply) = (u64::try_from(request)?, u64::try_from(reply)?);
                let n = connection.exchanges.len();
                let exchange = exchange(n, [start_ns, end_ns], request, reply);
                connection.exchanges.push(TrueExchange { client_idle_ns: start_ns - before, ..exchange });
            }
            ("call", &[start_ns, end_ns]) => calls.push(exchange(calls.len(), [start_ns, end_ns], 0, 0)),
            _ => bail!("the client's account: {line}"),
        }
    }
    if !calls.is_empty() {
        truth.connections.push(TrueConnection {
            client: Pair::CLIENT_V4.to_string(),
            server: format!("{}:{port}", Pair::SERVER_V4),
            setup: Setup { error: Some("the client did not say".to_owned()), ..Setup::default() },
            exchanges: calls,
            events: PerSide::default(),
            samples: PerSide::default(),
        });
    }
    Ok(truth)
}

fn exchange(
    before: usize,
    [start_ns, end_ns]: [i64; 2],
    request_bytes: u64,
    reply_bytes: u64,
) -> TrueExchange {
    TrueExchange {
        n: before as u64 + 1,
        kind: Kind::Exchange,
        initiator: "client".to_owned(),
        start_ns,
        end_ns,
        elapsed_ns: end_ns - start_ns,
        client_idle_ns: 0,
        request_bytes,
        reply_bytes,
        request_writes: 0,
        reply_writes: 0,
        request_read_ns: None,
        reply_start_ns: None,
        reply_written_ns: None,
        reply_first_ns: None,
        think: Think::default(),
        path_late_ns: 0,
    }
}

/// Whether the client only says how long calls took: then the bill's exchanges have no counterpart
/// to compare with.
pub(super) fn is_of_calls(truth: &Truth) -> bool {
    truth.connections.iter().all(|connection| connection.setup.error.is_some())
}
