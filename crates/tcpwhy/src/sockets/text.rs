//! How are sockets shown to a person? One line each, with the limit first.

use std::fmt::Write as _;
use std::time::Duration;

use tcpwhy_report::escape::visible;
use tcpwhy_report::quantity::{self, count, counted, time};
use tcpwhy_report::{Style, text};
use tcpwhy_sockets::{Limit, Options, State, limit};

use super::args::SocketsArgs;
use super::gather::{Look, Peer, Place, Row};
use crate::cli::{is_terminal, terminal_width};

/// One look.
pub(super) fn look(look: &Look, places: &[Place], at: Duration, args: &SocketsArgs) -> String {
    // Without a terminal, there is no width to fit.
    let width = if is_terminal() { terminal_width() } else { usize::MAX };
    let style = Style { color: args.color.is_on(), width, ..Style::default() };
    let mut out = String::new();
    if args.lasting.is_some() {
        out += &(text::faint(&format!("== after {}", span(at)), style) + "\n");
    }
    let sockets: u64 = look.counts.values().sum();
    let busy = look.counts.iter().filter(|(name, _)| !["idle", "listens"].contains(name));
    let busy: u64 = busy.map(|(_, count)| count).sum();
    let kind = if args.listen { "listening socket" } else { "socket" };
    let stretch =
        if args.once { "over their lives".to_owned() } else { format!("in the last {}", span(args.every)) };
    let summary = format!("{}; {} limited by something, {stretch}", counted(sockets, kind), count(busy));
    say(&mut out, "", &summary, style);
    if !look.rows.is_empty() {
        out += "\n";
        table(&mut out, look, places, args, style);
    }
    let shown = look.rows.len() as u64;
    if shown < sockets {
        let rest = sockets - shown;
        let idle = look.counts.get("idle").copied().unwrap_or(0).min(rest);
        let rest = match idle {
            0 => format!("{} not shown", count(rest)),
            idle if idle == rest => format!("{} with nothing to send not shown (--all)", count(rest)),
            _ => format!("{} not shown, {} of them with nothing to send (--all)", count(rest), count(idle)),
        };
        out += "\n";
        say(&mut out, "", &rest, style);
    }
    for place in places {
        namespace(&mut out, place, places.len() > 1, args, style);
    }
    if look.hidden > 0 {
        let whom = if look.hidden == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", count(look.hidden.into()))
        };
        let text =
            format!("owners and options of the sockets of {whom} are hidden from this user (root sees them)");
        say(&mut out, "", &text, style);
    }
    out
}

fn table(out: &mut String, look: &Look, places: &[Place], args: &SocketsArgs, style: Style) {
    let lines: Vec<[String; 4]> = look
        .rows
        .iter()
        .map(|row| {
            let place = if places.len() > 1 {
                format!("  in {}", place_name(&places[row.place]))
            } else {
                String::new()
            };
            let owner = row.owner.as_ref().map_or_else(
                || "-".to_owned(),
                |owner| {
                    let container =
                        owner.container.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
                    visible(&format!("{} {}{container}", owner.command, owner.pid)).into_owned()
                },
            );
            [words(row), row.socket.local.to_string(), row.socket.remote.to_string(), owner + &place]
        })
        .collect();
    let heads = ["what limits it", "this end", "other end", "process"];
    let width = |column: usize| {
        let widest = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        widest.max(heads[column].len())
    };
    let widths = [width(0), width(1), width(2)];
    let line = |cells: [&str; 4]| {
        let [limit, local, remote, owner] = cells;
        let [a, b, c] = widths;
        format!("  {limit:<a$}  {local:<b$}  {remote:<c$}  {owner}").trim_end().to_owned()
    };
    let shown: Vec<String> =
        lines.iter().map(|[limit, local, remote, owner]| line([limit, local, remote, owner])).collect();
    let fits = shown.iter().all(|line| line.chars().count() <= style.width);
    if fits {
        *out += &(text::faint(&line(heads), style) + "\n");
    }
    for ((row, [limit, local, remote, owner]), shown) in look.rows.iter().zip(&lines).zip(&shown) {
        if fits {
            *out += &(shown.clone() + "\n");
        } else {
            say(out, "  ", &format!("{local} -> {remote} {owner}"), style);
            say(out, "      ", limit, style);
        }
        if args.verbose {
            evidence(out, row, style);
        }
    }
}

/// One line, or as many as needed, after a label.
fn say(out: &mut String, label: &str, text: &str, style: Style) {
    for line in text::hanging(label, text, style) {
        let _ = writeln!(out, "{line}");
    }
}

/// The limit, and its reason.
fn words(row: &Row) -> String {
    let mut words = row.limit.words();
    if row.socket.state != State::Established && row.socket.state != State::Listen {
        let _ = write!(words, " ({})", row.socket.state.name());
    }
    match (&row.limit, &row.options, &row.peer) {
        (Limit::PeerWindow { .. } | Limit::ZeroWindow { .. }, _, Some(peer)) => words += &blame(peer),
        (Limit::Nagle { certain: true, .. }, _, _) => words += "; TCP_NODELAY is off",
        (Limit::Reader { .. }, Ok(Options { receive_buffer_locked: Some(true), .. }), _) => {
            words += "; its buffer is fixed by SO_RCVBUF";
        }
        _ => {}
    }
    words
}

fn blame(peer: &Peer) -> String {
    let who = peer
        .owner
        .as_ref()
        .map_or_else(String::new, |owner| format!(" by pid {} ({})", owner.pid, visible(&owner.command)));
    match peer.locked {
        Some(true) => format!("; fixed to {} B of memory{who} (SO_RCVBUF)", count(peer.receive_max.into())),
        Some(false) => format!("; not fixed{who}"),
        None => String::new(),
    }
}

fn evidence(out: &mut String, row: &Row, style: Style) {
    let mut of = |name: &str, value: &str| say(out, &format!("      {name:<13} "), value, style);
    for (name, value) in limit::evidence(&row.socket, &row.lately) {
        of(name, &value);
    }
    let value = match &row.options {
        Ok(options) => options_told(options),
        Err(why) => format!("not known: {why}"),
    };
    of("options", &value);
    if let Some(cause) = row.limit.cause() {
        of("more", &format!("tcpwhy explain {cause}"));
    }
}

fn options_told(options: &Options) -> String {
    let switch =
        |name: &str, value: Option<bool>| value.map(|on| format!("{name} {}", if on { "on" } else { "off" }));
    let lock = |name: &str, value: Option<bool>| {
        value.map(|on| format!("{name} {}", if on { "set" } else { "not set" }))
    };
    let lowat = options.notsent_lowat.filter(|lowat| *lowat != 0 && *lowat != u32::MAX);
    let timeout = options.user_timeout_ms.filter(|timeout| *timeout > 0);
    let all = [
        switch("TCP_NODELAY", options.nodelay),
        switch("TCP_CORK", options.cork),
        switch("TCP_QUICKACK", options.quickack),
        lock("SO_RCVBUF", options.receive_buffer_locked),
        lock("SO_SNDBUF", options.send_buffer_locked),
        lowat.map(|lowat| format!("TCP_NOTSENT_LOWAT {lowat} B")),
        timeout.map(|timeout| format!("TCP_USER_TIMEOUT {timeout} ms")),
        options.congestion.as_ref().map(|name| format!("TCP_CONGESTION {}", visible(name))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a namespace counted for all of its sockets.
fn namespace(out: &mut String, place: &Place, named: bool, args: &SocketsArgs, style: Style) {
    let counted = if args.once { &place.counters } else { &place.counted };
    let since = if args.once { "since it was made" } else { "in the same time" };
    let mut said = Vec::new();
    let mut counts = |number: u64, noun: &str, what: &str| {
        if number > 0 {
            said.push(format!("{} {what}", quantity::counted(number, noun)));
        }
    };
    counts(counted.listen_overflows, "connection", "found a full backlog");
    counts(counted.listen_drops.saturating_sub(counted.listen_overflows), "SYN", "dropped");
    counts(counted.syn_cookies_sent, "SYN cookie", "sent");
    counts(counted.requests_dropped, "SYN", "dropped for a full queue");
    counts(counted.delayed_acks, "acknowledgement", "held back until the timer ran out");
    counts(counted.segments_retransmitted, "segment", "retransmitted");
    if !said.is_empty() {
        let who = if named {
            format!("network namespace {}", place_name(place))
        } else {
            "this network namespace".to_owned()
        };
        say(out, "", &format!("{who}, {since}: {}", said.join(", ")), style);
    }
}

fn place_name(place: &Place) -> String {
    let namespace = &place.namespace;
    let name = namespace.name.clone();
    let process = namespace.process.as_ref().map(|(pid, name)| format!("{name} {pid}"));
    visible(&name.or(process).unwrap_or_else(|| namespace.inode.to_string())).into_owned()
}

fn span(span: Duration) -> String {
    time(tcpwhy_wire::Duration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
}
