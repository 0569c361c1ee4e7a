//! How are sockets reported to a program? One document per look, in one line; the kernel's names,
//! times in µs, sizes in bytes.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tcpwhy_report::escape::json_line;
use tcpwhy_sockets::{Options, Owner};

use super::args::SocketsArgs;
use super::gather::{Look, Place, Row};

/// One look.
pub(super) fn look(
    look: &Look,
    places: &[Place],
    at: Duration,
    args: &SocketsArgs,
) -> serde_json::Result<String> {
    let spaces = places.iter().map(|place| {
        let (namespace, counted) = (&place.namespace, &place.counted);
        json!({
            "inode": namespace.inode,
            "name": namespace.name,
            "pid": namespace.process.as_ref().map(|(pid, _)| pid),
            "listen_overflows": counted.listen_overflows,
            "listen_drops": counted.listen_drops,
            "syn_cookies_sent": counted.syn_cookies_sent,
            "requests_dropped": counted.requests_dropped,
            "delayed_acks": counted.delayed_acks,
            "segments_out": counted.segments_out,
            "segments_retransmitted": counted.segments_retransmitted,
        })
    });
    let document = json!({
        "schema": "tcpwhy.sockets/1",
        "at_us": at.as_micros() as u64,
        "span_us": (!args.once).then_some(args.every.as_micros() as u64),
        "limits": look.counts,
        "processes_hidden": look.hidden,
        "namespaces": spaces.collect::<Vec<_>>(),
        "sockets": look.rows.iter().map(|row| socket(row, places)).collect::<Vec<_>>(),
    });
    json_line(&document)
}

fn socket(row: &Row, places: &[Place]) -> Value {
    let (socket, lately) = (&row.socket, &row.lately);
    let micros = |span: Duration| span.as_micros() as u64;
    let info = serde_json::to_value(socket.info).unwrap_or(Value::Null);
    json!({
        "state": socket.state.name(),
        "local": socket.local.to_string(),
        "remote": socket.remote.to_string(),
        "cookie": socket.cookie,
        "inode": socket.inode,
        "uid": socket.uid,
        "namespace": places[row.place].namespace.inode,
        "owner": row.owner.as_ref().map(owner),
        "limit": row.limit.name(),
        "cause": row.limit.cause(),
        "words": row.limit.words(),
        "lately": {
            "span_us": lately.span.map(micros),
            "busy_us": micros(lately.busy),
            "peer_window_us": micros(lately.peer_window),
            "send_buffer_us": micros(lately.send_buffer),
            "bytes_acked": lately.bytes_acked,
            "bytes_received": lately.bytes_received,
            "segments_out": lately.segments_out,
            "segments_in": lately.segments_in,
            "retransmitted": lately.retransmitted,
        },
        "receive_queue": socket.receive_queue,
        "send_queue": socket.send_queue,
        "memory": {
            "receive_allocated": socket.memory.receive_allocated,
            "receive_max": socket.memory.receive_max,
            "send_queued": socket.memory.send_queued,
            "send_max": socket.memory.send_max,
            "backlog": socket.memory.backlog,
            "drops": socket.memory.drops,
        },
        "congestion": socket.congestion.name(),
        "options": row.options.as_ref().ok().map(options),
        "peer": row.peer.as_ref().map(|peer| json!({
            "owner": peer.owner.as_ref().map(owner),
            "receive_max": peer.receive_max,
            "receive_buffer_locked": peer.locked,
        })),
        "tcp_info": info,
    })
}

fn owner(owner: &Owner) -> Value {
    json!({
        "pid": owner.pid,
        "descriptor": owner.descriptor,
        "command": owner.command,
        "container": owner.container,
    })
}

fn options(options: &Options) -> Value {
    let mut all = Map::new();
    let mut add = |name: &str, value: Value| all.insert(name.to_owned(), value);
    add("TCP_NODELAY", json!(options.nodelay));
    add("TCP_CORK", json!(options.cork));
    add("TCP_QUICKACK", json!(options.quickack));
    add("SO_RCVBUF_locked", json!(options.receive_buffer_locked));
    add("SO_SNDBUF_locked", json!(options.send_buffer_locked));
    add("TCP_NOTSENT_LOWAT", json!(options.notsent_lowat));
    add("TCP_USER_TIMEOUT", json!(options.user_timeout_ms));
    add("TCP_CONGESTION", json!(options.congestion));
    Value::Object(all)
}
