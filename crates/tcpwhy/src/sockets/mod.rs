//! `tcpwhy sockets`: what limits the connections of this machine now, and who owns them?

mod args;
#[cfg(target_os = "linux")]
mod calm;
#[cfg(target_os = "linux")]
mod facts;
#[cfg(target_os = "linux")]
mod gather;
#[cfg(target_os = "linux")]
mod json;
mod ss;
#[cfg(target_os = "linux")]
mod text;

pub(crate) use args::SocketsArgs;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &SocketsArgs) -> anyhow::Result<u8> {
    anyhow::bail!("`sockets` needs Linux; `tcpwhy read` analyses captures anywhere")
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use std::time::{Duration, Instant};

    use anyhow::Context as _;
    use tcpwhy_sockets::namespace::Namespace;
    use tcpwhy_sockets::{State, States};

    use super::args::{SocketsArgs, StateName};
    use super::gather::{Place, Wanted, Who, look};
    use super::{json, text};
    use crate::output::{self, complain, complain_in_lines};
    use crate::{ANALYSED, WRONG_USAGE};

    /// Looks, waits, looks again, and reports.
    pub(crate) fn run(args: &SocketsArgs) -> anyhow::Result<u8> {
        if let Some(own) = args.facts {
            super::facts::run(own, args.facts_of.as_deref())?;
            return Ok(ANALYSED);
        }
        let (filter, named) = match args.filter() {
            Ok(filter) => filter,
            Err(why) => {
                complain_in_lines(&why);
                return Ok(WRONG_USAGE);
            }
        };
        let of = args.pid.map(Who::Pid).or_else(|| args.process.clone().map(Who::Named));
        if let Some(Who::Pid(pid)) = of {
            anyhow::ensure!(
                std::path::Path::new(&format!("/proc/{pid}")).exists(),
                "there is no process {pid}"
            );
        }
        let idle = args.all || args.listen;
        let top = if args.all { usize::MAX } else { args.top.get() };
        let wanted = Wanted { states: states(args, &named), filter, of, idle, top, lately: !args.once };
        let mut places = places(args)?;
        let looks = match args.lasting {
            Some(lasting) => (lasting.as_nanos() / args.every.as_nanos().max(1)).max(1),
            None => 1,
        };
        let begun = now();
        if !args.once {
            for place in &mut places {
                place.note(&wanted, Duration::ZERO, looks == 1)?;
            }
        }
        for number in 1..=looks {
            if !args.once {
                // Scheduled by the clock, so that the time of a look does not add up.
                let due = args.every.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
            let at = begun.elapsed();
            let look = look(&mut places, &wanted, at, number < looks)?;
            let said = if args.json {
                json::look(&look, &places, at, args)?
            } else {
                text::look(&look, &places, at, args)
            };
            output::print_by_page(&said, looks == 1 && !args.json)?;
        }
        Ok(ANALYSED)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what happens between two looks is told by the time between them"
    )]
    fn now() -> Instant {
        Instant::now()
    }

    fn states(args: &SocketsArgs, named: &[StateName]) -> States {
        if args.listen {
            return States::LISTENING;
        }
        let of = |name: &StateName| {
            States::only(match name {
                StateName::Established => State::Established,
                StateName::SynSent => State::SynSent,
                StateName::SynRecv => State::SynReceived,
                StateName::FinWait1 => State::FinWait1,
                StateName::FinWait2 => State::FinWait2,
                StateName::TimeWait => State::TimeWait,
                StateName::CloseWait => State::CloseWait,
                StateName::LastAck => State::LastAck,
                StateName::Closing => State::Closing,
                StateName::Listening => State::Listen,
            })
        };
        args.state.iter().chain(named).map(of).reduce(|all, one| all | one).unwrap_or(States::CONNECTED)
    }

    /// The requested namespaces, opened. With a pid, the one that the process is in.
    fn places(args: &SocketsArgs) -> anyhow::Result<Vec<Place>> {
        let one = |namespace: std::io::Result<Namespace>, whose: &str| {
            let opened = namespace.and_then(Place::open);
            opened.with_context(|| format!("cannot look into the network namespace of {whose} (root can)"))
        };
        if let Some(whose) = &args.netns {
            let namespace = match whose.parse() {
                Ok(pid) => Namespace::of_process(pid),
                Err(_) => Ok(Namespace::named(whose)
                    .with_context(|| format!("`ip netns` knows no namespace {whose}"))?),
            };
            return Ok(vec![one(namespace, whose)?]);
        }
        if let Some(pid) = args.pid {
            return Ok(vec![one(Namespace::of_process(pid), &format!("process {pid}"))?]);
        }
        if !args.all_netns {
            return Ok(vec![one(Namespace::own(), "this process")?]);
        }
        let mut places = Vec::new();
        for namespace in Namespace::all() {
            let number = namespace.inode;
            match Place::open(namespace) {
                Ok(place) => places.push(place),
                Err(error) => {
                    complain(&format!("warning: cannot look into network namespace {number}: {error}"));
                }
            }
        }
        anyhow::ensure!(!places.is_empty(), "no network namespace can be examined");
        Ok(places)
    }
}
