//! What do the applications do on the two hosts, and what do they observe by their own clocks?
//!
//! A [`Script`] for each side is executed with plain blocking sockets ([`run`]). The logs are the
//! truth that captures of the same conversation are compared with.

mod agent;
mod counters;
mod log;
mod script;
mod settle;
mod stage;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use rustix::net::Shutdown;

use agent::{Agent, Role};
pub use counters::Counters;
pub use log::{AgentLog, ConnectionLog, Event, Op, Sample, now};
pub use script::{Amount, QuickAck, Script, ScriptError, Setting, Step, WriteCall};
pub use settle::settle;
pub use stage::{Here, Stage};

use crate::Error;

/// What both sides do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The side that connects.
    pub client: Script,
    /// The side that accepts.
    pub server: Script,
    /// The server's port; 0 for any free one.
    pub port: u16,
    /// Time limit of a single call: a script that deadlocks ends with an error.
    pub call_limit: StdDuration,
    /// How often the kernel's view of each socket is sampled; never if `None`.
    pub watch_every: Option<StdDuration>,
}

impl Workload {
    /// Both scripts, on the lab's usual port.
    pub const fn new(client: Script, server: Script) -> Self {
        Self { client, server, port: 8080, call_limit: StdDuration::from_mins(1), watch_every: None }
    }
}

/// The observations of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The server's address.
    pub server_address: SocketAddr,
    /// The client's log.
    pub client: AgentLog,
    /// The server's log.
    pub server: AgentLog,
    /// The counters of client's and server's kernels meanwhile. On one host both are the same.
    pub counters: [Counters; 2],
}

impl Run {
    /// Why a script ended early, if one did.
    pub fn failure(&self) -> Option<&str> {
        self.client.failure.as_deref().or(self.server.failure.as_deref())
    }
}

/// Executes a workload; returns when both scripts have ended.
///
/// # Errors
/// The sockets or threads could not be set up. Failures of the connection itself are in the logs.
pub fn run(workload: &Workload, client: &impl Stage, server: &impl Stage) -> Result<Run, Error> {
    prepare(workload, client, server, 0)?.run()
}

/// A workload whose server is already listening, so that captures can start before the first
/// packet.
pub struct Prepared<'a, C, S> {
    workload: &'a Workload,
    client: &'a C,
    server: &'a S,
    server_address: SocketAddr,
    agent: Agent,
    listener: std::os::fd::OwnedFd,
    before: [Counters; 2],
}

/// Opens the server's listening socket. If the workload's port is 0, `port` is used; if that is 0
/// too, a free one.
///
/// # Errors
/// As [`run`].
pub fn prepare<'a, C: Stage, S: Stage>(
    workload: &'a Workload,
    client: &'a C,
    server: &'a S,
    port: u16,
) -> Result<Prepared<'a, C, S>, Error> {
    let port = if workload.port == 0 { port } else { workload.port };
    let address = SocketAddr::new(server.address(), port);
    let (script, limit, watch) = (workload.server.clone(), workload.call_limit, workload.watch_every);
    let listening = server
        .enter(move || {
            let mut agent = Agent::new(Role::Server, address, limit, watch);
            let listener = agent.listen(&script)?;
            let address = agent.listens_on()?;
            Ok::<_, io::Error>((agent, listener, address))
        })
        .and_then(joined)
        .and_then(|result| result);
    let (agent, listener, server_address) = listening.map_err(Error::step(format!("listen on {address}")))?;
    let before = [counters_of(client)?, counters_of(server)?];
    Ok(Prepared { workload, client, server, server_address, agent, listener, before })
}

impl<C: Stage, S: Stage> Prepared<'_, C, S> {
    /// The server's address.
    pub const fn server_address(&self) -> SocketAddr {
        self.server_address
    }

    /// Executes both scripts.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(self) -> Result<Run, Error> {
        let (address, limit) = (self.server_address, self.workload.call_limit);
        let watch = self.workload.watch_every;
        let (agent, script) = (self.agent, self.workload.server.clone());
        let serving = self
            .server
            .enter(move || agent.run(&script))
            .map_err(Error::step("start the server's thread"))?;
        let script = self.workload.client.clone();
        let asking = self
            .client
            .enter(move || Agent::new(Role::Client, address, limit, watch).run(&script))
            .map_err(Error::step("start the client's thread"));
        let client = asking.and_then(|thread| joined(thread).map_err(Error::step("run the client")));
        // No more clients will connect: a server that waits for one stops waiting (accept returns
        // EINVAL).
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        let server = joined(serving).map_err(Error::step("run the server"))?;
        let client = client?;
        let after = [counters_of(self.client)?, counters_of(self.server)?];
        let counters = [0, 1].map(|side| counters::since(&self.before[side], &after[side]));
        Ok(Run { server_address: self.server_address, client, server, counters })
    }
}

fn counters_of(stage: &impl Stage) -> Result<Counters, Error> {
    let mut counters = Counters::new();
    for file in counters::FILES {
        let text = stage.proc_file(file).map_err(Error::step(format!("read {file}")))?;
        counters::parse(&text, &mut counters);
    }
    Ok(counters)
}

fn joined<T>(thread: JoinHandle<T>) -> io::Result<T> {
    thread.join().map_err(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests;
