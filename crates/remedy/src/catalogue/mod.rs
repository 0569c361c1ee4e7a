//! Which fixes are there, and how is each applied in C, Java, Go, Python, Node, Rust, nginx and on the host?
//!
//! Each fix is here once, whatever causes call for it; `advise` says which cause calls for which
//! fix on which side.

pub mod application;
pub mod congestion;
pub mod connection;
pub mod path;
pub mod windows;
pub mod writes;

use std::fmt;

use tcpwhy_core::Side;

/// A change that a user can make.
#[derive(Debug, PartialEq, Eq)]
pub struct Fix {
    /// Stable kebab-case name: `one-write`, `nodelay`, ...
    pub id: &'static str,
    /// The change in one sentence, as an instruction. `{side}` and `{peer}` stand for the side that
    /// applies it and the other.
    pub what: &'static str,
    /// What it costs, or when it is the wrong fix.
    pub caveat: Option<&'static str>,
    /// Instructions for each language and server.
    pub how: &'static [How],
}

/// How one language, server or host applies a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// The language or server.
    pub stack: Stack,
    /// Only for this side (nginx as a server and nginx as a proxy's client differ); `None` for both.
    pub only: Option<Side>,
    /// What to write or set.
    pub text: &'static str,
}

/// The language, server or host that instructions are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// C and C++ on the socket calls.
    C,
    /// Java and the JVM.
    Java,
    /// Go.
    Go,
    /// Python.
    Python,
    /// Node.js.
    Node,
    /// Rust.
    Rust,
    /// nginx configuration.
    Nginx,
    /// Apache httpd configuration.
    Apache,
    /// HAProxy configuration.
    Haproxy,
    /// Redis configuration.
    Redis,
    /// PostgreSQL and its poolers.
    Postgres,
    /// The host itself: sysctl, ip route, ethtool.
    Linux,
    /// The host itself, if it runs Windows.
    Windows,
}

impl Stack {
    /// Every stack.
    pub const ALL: [Self; 13] = [
        Self::C,
        Self::Java,
        Self::Go,
        Self::Python,
        Self::Node,
        Self::Rust,
        Self::Nginx,
        Self::Apache,
        Self::Haproxy,
        Self::Redis,
        Self::Postgres,
        Self::Linux,
        Self::Windows,
    ];

    /// The displayed name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Java => "Java",
            Self::Go => "Go",
            Self::Python => "Python",
            Self::Node => "Node",
            Self::Rust => "Rust",
            Self::Nginx => "nginx",
            Self::Apache => "Apache",
            Self::Haproxy => "HAProxy",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
            Self::Linux => "Linux",
            Self::Windows => "Windows",
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// For both sides.
const fn how(stack: Stack, text: &'static str) -> How {
    How { stack, only: None, text }
}

/// For a client, including a proxy towards its upstream.
const fn client(stack: Stack, text: &'static str) -> How {
    How { stack, only: Some(Side::Client), text }
}

/// For a server.
const fn server(stack: Stack, text: &'static str) -> How {
    How { stack, only: Some(Side::Server), text }
}
