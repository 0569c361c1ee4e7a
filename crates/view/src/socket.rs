//! What does the socket show about a cause? Combines what packets show with the options and owners
//! of this machine's sockets.

use serde::{Deserialize, Serialize};
use tcpwhy_report::quantity::count;

use crate::answer::{Answer, Finding};

/// A socket of this machine with one of the requested endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// This end.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The process that holds it.
    pub pid: Option<u32>,
    /// The command's name.
    pub command: Option<String>,
    /// TCP_NODELAY
    pub nodelay: Option<bool>,
    /// TCP_CORK
    pub cork: Option<bool>,
    /// SO_RCVBUF was set.
    pub receive_locked: Option<bool>,
    /// SO_SNDBUF was set.
    pub send_locked: Option<bool>,
    /// Receive buffer limit, bytes.
    pub receive_max: u32,
    /// Send buffer limit, bytes.
    pub send_max: u32,
}

/// What a socket adds to a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// `SO_RCVBUF is locked to 65,536 B by pid 4242 (java)`
    pub words: String,
    /// The process.
    pub pid: u32,
    /// The command that changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Fact {
    /// As one line.
    pub fn told(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}: {fix}", self.words),
            None => self.words.clone(),
        }
    }
}

impl Answer {
    /// Adds to each finding what the sockets show about it.
    pub fn join(&mut self, sockets: &[Socket]) {
        for finding in &mut self.findings {
            finding.socket = fact(finding, sockets);
        }
    }
}

/// The relevant facts about the socket at the side that can change the cause; preferably a socket
/// with the option in question set wrongly.
fn fact(finding: &Finding, sockets: &[Socket]) -> Option<Fact> {
    let of_side = |socket: &&Socket| match finding.side.as_str() {
        "server" => socket.local == finding.endpoint,
        "client" => socket.remote == finding.endpoint,
        _ => false,
    };
    let theirs = || sockets.iter().filter(of_side).filter(|socket| socket.pid.is_some());
    let is_culprit = |socket: &&Socket| culprit(finding, socket).is_some();
    let socket = theirs().find(is_culprit).or_else(|| theirs().next())?;
    let (pid, command) = (socket.pid?, socket.command.as_deref().unwrap_or("?"));
    let who = format!("pid {pid} ({command})");
    let port = finding.endpoint.rsplit(':').next().unwrap_or_default();
    let fix = |name: &str| Some(format!("tcpwhy fix {name} --pid {pid} --port {port}"));
    let (words, fix) = match culprit(finding, socket) {
        Some(Culprit::NoDelay) => (format!("TCP_NODELAY is off at {who}"), fix("nodelay")),
        Some(Culprit::Cork) => (format!("TCP_CORK is set by {who}"), fix("uncork")),
        Some(Culprit::ReceiveBuffer) => (
            format!("locked to {} B (SO_RCVBUF) by {who}", count(socket.receive_max.into())),
            fix("unlock-rcvbuf"),
        ),
        Some(Culprit::SendBuffer) => (
            format!("locked to {} B (SO_SNDBUF) by {who}", count(socket.send_max.into())),
            fix("unlock-sndbuf"),
        ),
        Some(Culprit::Idle) => (who, fix("no-restart-after-idle")),
        None => match finding.cause.as_str() {
            "receive-window" if socket.receive_locked == Some(false) => {
                (format!("SO_RCVBUF is not set by {who}: the buffer grows up to tcp_rmem"), None)
            }
            "send-buffer" if socket.send_locked == Some(false) => {
                (format!("SO_SNDBUF is not set by {who}: the buffer grows up to tcp_wmem"), None)
            }
            "nagle-delayed-ack" | "nagle" if socket.nodelay == Some(true) => {
                (format!("TCP_NODELAY is now on at {who}"), None)
            }
            _ => (who, None),
        },
    };
    Some(Fact { words, pid, fix })
}

/// The option that a socket has set wrongly.
enum Culprit {
    NoDelay,
    Cork,
    ReceiveBuffer,
    SendBuffer,
    /// A setting of its network namespace.
    Idle,
}

fn culprit(finding: &Finding, socket: &Socket) -> Option<Culprit> {
    match finding.cause.as_str() {
        "nagle-delayed-ack" | "nagle" if socket.nodelay == Some(false) => Some(Culprit::NoDelay),
        "cork" if socket.cork == Some(true) => Some(Culprit::Cork),
        "receive-window" if socket.receive_locked == Some(true) => Some(Culprit::ReceiveBuffer),
        "send-buffer" if socket.send_locked == Some(true) => Some(Culprit::SendBuffer),
        "slow-start-after-idle" => Some(Culprit::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cause: &str, side: &str) -> Finding {
        Finding {
            cause: cause.to_owned(),
            side: side.to_owned(),
            endpoint: "10.0.0.5:8080".to_owned(),
            ..Finding::default()
        }
    }

    fn java() -> Socket {
        Socket {
            local: "10.0.0.9:51000".to_owned(),
            remote: "10.0.0.5:8080".to_owned(),
            pid: Some(4242),
            command: Some("java".to_owned()),
            nodelay: Some(false),
            receive_locked: Some(true),
            receive_max: 65_536,
            ..Socket::default()
        }
    }

    #[test]
    fn a_cause_is_joined_with_the_option_and_its_owner() {
        let fact = fact(&finding("receive-window", "client"), &[java()]).expect("a fact");
        assert_eq!(
            fact.told(),
            "locked to 65,536 B (SO_RCVBUF) by pid 4242 (java): tcpwhy fix unlock-rcvbuf --pid 4242 --port 8080"
        );
        let fact = super::fact(&finding("nagle-delayed-ack", "client"), &[java()]).expect("a fact");
        assert_eq!(fact.words, "TCP_NODELAY is off at pid 4242 (java)");
    }

    #[test]
    fn the_other_ends_sockets_and_those_without_an_owner_say_nothing() {
        assert_eq!(fact(&finding("receive-window", "server"), &[java()]), None);
        assert_eq!(fact(&finding("loss", "path"), &[java()]), None);
        assert_eq!(fact(&finding("receive-window", "client"), &[Socket { pid: None, ..java() }]), None);
    }

    #[test]
    fn of_several_sockets_the_one_with_the_wrong_option_is_told() {
        let free = Socket { pid: Some(1), receive_locked: Some(false), ..java() };
        let fact = fact(&finding("receive-window", "client"), &[free.clone(), java()]).expect("a fact");
        assert_eq!(fact.pid, 4242);
        let fact = super::fact(&finding("receive-window", "client"), &[free]).expect("a fact");
        assert!(fact.words.starts_with("SO_RCVBUF is not set by pid 1"), "{fact:?}");
        assert_eq!(fact.fix, None);
    }
}
