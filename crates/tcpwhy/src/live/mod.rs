//! `tcpwhy live`: where does the time of current traffic go?
//!
//! This process opens the interface, gives up its rights, and passes on packets without looking
//! into them; another one, which runs the same code as `read`, reads them in its sandbox. So the
//! final answer is what `read` says of the file. The reader's interim answers come back and are
//! shown in lines, as JSON or on a screen. A third process keeps the rights to query sockets, and
//! has nothing to do with packets.

mod args;
#[cfg(target_os = "linux")]
pub(crate) mod facts;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
pub(crate) mod owned;
#[cfg(target_os = "linux")]
mod recent;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod screen;
#[cfg(target_os = "linux")]
pub(crate) mod so_far;
#[cfg(target_os = "linux")]
mod terminal;

pub(crate) use args::LiveArgs;
#[cfg(target_os = "linux")]
pub(crate) use recent::Recent;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &LiveArgs) -> anyhow::Result<u8> {
    anyhow::bail!("live capture needs Linux: record with tcpdump, and `tcpwhy read` the file")
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;
#[cfg(target_os = "linux")]
use linux::{Session, made_anew};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{IsTerminal as _, Write as _};
    use std::path::Path;
    use std::process::Stdio;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, RecvTimeoutError};
    use std::time::{Duration, Instant};

    use anyhow::Context as _;
    use tcpwhy_host::capture::{End, Filter as Kernel, Options};
    use tcpwhy_lab::Folder;
    use tcpwhy_report::Style;
    use tcpwhy_report::escape::{json_line, visible};
    use tcpwhy_report::quantity::counted;
    use tcpwhy_sockets::namespace::Namespace;
    use tcpwhy_view::{Answer, lines};
    use tcpwhy_wire::Filter;

    use super::args::LiveArgs;
    use super::facts::Facts;
    use super::owned::{Owned, Whose};
    use super::recent::Recent;
    use super::relay::{Said, listen};
    use super::screen;
    use crate::feed::{Copies, Feed, give_up_rights};
    use crate::output::{complain, complain_in_lines, print};
    use crate::{NOT_ANALYSED, WRONG_USAGE};

    /// Pause between two checks for a reason to stop.
    const STEP: Duration = Duration::from_millis(20);

    pub(crate) fn run(args: &LiveArgs) -> anyhow::Result<u8> {
        let text = args.filter.join(" ");
        if !text.trim().is_empty()
            && let Err(error) = text.parse::<Filter>()
        {
            complain_in_lines(&format!("the filter cannot be read:\n{error}"));
            return Ok(WRONG_USAGE);
        }
        let interface = args.interface.join(",");
        let whose = Whose::of(args);
        let pids = whose.as_ref().map_or(Ok(Vec::new()), Whose::pids_at_start)?;
        let namespace = namespace(args, pids.first())?;
        let mut filter = kernel(&args.filter);
        if let Some(whose) = &whose {
            let mut owned = Owned::open(&namespace)?;
            owned.look(&pids)?;
            if owned.ends().is_empty() {
                complain(&format!(
                    "{whose} has no TCP socket yet: connections that it opens will be captured"
                ));
            }
            filter.one_of = Some(owned.ends());
        }
        let options = Options {
            filter: filter.clone(),
            snaplen: args.snaplen,
            ring_bytes: args.ring,
            comment: format!("tcpwhy live -i {interface} {}", args.filter.join(" ")),
            ..Options::new(interface.as_str())
        };
        let file = args.write.as_deref().map(made_anew).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let is_screen =
            !args.json && !args.lines && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        let recent = is_screen.then(|| Recent::new(args.keep));
        let copies = Copies { file, recent: recent.clone() };
        let is_asked = whose.is_some() || !args.no_sockets;
        let mut facts =
            is_asked.then(|| Facts::start(&namespace, whose.as_ref(), !args.no_sockets)).flatten();
        let mut feed = Feed::start(options, &namespace, &words(args, text.trim()), copies, Stdio::piped())?;
        drop(namespace);
        give_up_rights()?;
        if let Some(facts) = &mut facts {
            let narrow = feed.narrow();
            facts.listen(move |ends| {
                let ends = ends.into_iter().map(|(host, port)| End { host, port }).collect();
                narrow.set(Kernel { one_of: Some(ends), ..filter.clone() });
            })?;
        }
        let said = listen(feed.reader.stdout.take().context("the reader has no output")?)?;
        let mut session = Session { args, said, facts, feed: &feed, stop: &stop, last: None, begun: now() };
        let rest = match recent {
            Some(recent) => {
                let about = about(&interface, args, whose.as_ref());
                screen::run(&mut session, about, &recent)?
            }
            None => session.tell()?,
        };
        let Session { said, last, facts, .. } = session;
        let (stats, mut reader) = feed.stop();
        finish(args, &rest, &said, last.as_ref())?;
        drop(facts);
        let code = reader.wait()?.code();
        let stats = stats.context("the capture failed")?;
        if stats.dropped + stats.unread > 0 {
            let lost = counted(stats.dropped + stats.unread, "packet");
            complain(&format!(
                "the kernel's buffer was full: {lost} missing; use a larger --ring or a narrower filter"
            ));
        }
        if let Some(why) = stats.interrupted {
            complain(&format!("{interface}: {why}"));
        }
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_ANALYSED))
    }

    /// A running session, until the user ends it.
    pub(crate) struct Session<'a> {
        pub(crate) args: &'a LiveArgs,
        pub(crate) said: Receiver<Said>,
        pub(crate) facts: Option<Facts>,
        feed: &'a Feed,
        stop: &'a AtomicBool,
        last: Option<Answer>,
        begun: Instant,
    }

    impl Session<'_> {
        /// Whether it ends, whatever the reader says.
        pub(crate) fn ends(&self) -> bool {
            let is_over = self.args.lasting.is_some_and(|lasting| self.begun.elapsed() >= lasting);
            is_over || self.stop.load(Ordering::Relaxed) || self.feed.has_ended()
        }

        /// Adds what others know: the kernel's count of drops in the ring, and sockets' own data.
        pub(crate) fn complete(&mut self, mut answer: Answer) -> Answer {
            answer.dropped = self.feed.counts().dropped();
            if let Some(facts) = &mut self.facts {
                facts.join(&mut answer);
            }
            self.last = Some(answer.clone());
            answer
        }

        /// Prints lines, for people or programs, until the end. Returns what the reader may already
        /// have said of its final answer.
        fn tell(&mut self) -> anyhow::Result<Vec<u8>> {
            let style = Style { color: self.args.color.is_on(), ..Style::default() };
            loop {
                if self.ends() {
                    return Ok(Vec::new());
                }
                match self.said.recv_timeout(STEP) {
                    Ok(Said::Answer(answer)) => {
                        let answer = self.complete(*answer);
                        print(&told(&answer, self.args, style)?)?;
                    }
                    Ok(Said::Rest(rest)) => return Ok(rest),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
                }
            }
        }
    }

    fn told(answer: &Answer, args: &LiveArgs, style: Style) -> anyhow::Result<String> {
        Ok(if args.json { json_line(answer)? } else { lines(answer, style) })
    }

    /// Prints the whole answer, as the reader gives it, followed by what sockets say about the
    /// findings.
    fn finish(
        args: &LiveArgs,
        rest: &[u8],
        said: &Receiver<Said>,
        last: Option<&Answer>,
    ) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(rest)?;
        for said in said {
            // Interim answers that were not read in time are obsolete.
            if let Said::Rest(rest) = said {
                stdout.write_all(&rest)?;
            }
        }
        let facts: Vec<String> = last
            .iter()
            .flat_map(|last| &last.findings)
            .filter_map(|finding| {
                let fact = finding.socket.as_ref()?;
                let mut told = format!(
                    "  {}, {} of {}: {}\n",
                    visible(&finding.cause),
                    visible(&finding.side),
                    visible(&finding.endpoint),
                    visible(&fact.words)
                );
                if let Some(fix) = &fact.fix {
                    told += &["      ", &visible(fix), "\n"].concat();
                }
                Some(told)
            })
            .collect();
        if !args.json && !facts.is_empty() {
            let told = format!("Sockets of this machine:\n{}", facts.concat());
            stdout.write_all(told.as_bytes())?;
        }
        Ok(stdout.flush()?)
    }

    /// The network namespace to capture in.
    fn namespace(args: &LiveArgs, pid: Option<&u32>) -> anyhow::Result<Namespace> {
        match (pid, &args.netns) {
            (Some(pid), _) => Namespace::of_process(*pid)
                .with_context(|| format!("cannot look into process {pid} (root can)")),
            (None, Some(name)) => {
                Namespace::named(name).with_context(|| format!("`ip netns` knows no namespace {name}"))
            }
            (None, None) => Ok(Namespace::own()?),
        }
    }

    /// What is captured, for the screen's first line.
    fn about(interface: &str, args: &LiveArgs, whose: Option<&Whose>) -> String {
        let narrowed = [whose.map(Whose::to_string), Some(args.filter.join(" "))];
        let narrowed = narrowed.into_iter().flatten().filter(|part| !part.is_empty());
        std::iter::once(interface.to_owned()).chain(narrowed).collect::<Vec<_>>().join(", ")
    }

    /// A file for captured packets: created anew, like the laboratory's recordings, so that nobody
    /// else can decide what is overwritten. Devices and pipes are written to.
    pub(crate) fn made_anew(path: &Path) -> anyhow::Result<File> {
        let made = || {
            let there = path.symlink_metadata().map(|there| there.file_type());
            if there.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink()) {
                return File::options().write(true).open(path);
            }
            let name =
                path.file_name().and_then(|name| name.to_str()).ok_or(std::io::ErrorKind::InvalidFilename)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Folder::make(folder.unwrap_or(Path::new(".")))?.create(name)
        };
        made().with_context(|| format!("cannot write {}", path.display()))
    }

    /// The reader's command line.
    fn words(args: &LiveArgs, filter: &str) -> Vec<String> {
        let every = format!("{}ms", args.every.as_millis().max(1));
        let captured = args
            .write
            .as_ref()
            .map_or_else(|| args.interface.join(", "), |file| file.to_string_lossy().into_owned());
        let mut words = ["read", "-", "--every", &every, "--live", &captured].map(str::to_owned).to_vec();
        if args.write.is_some() {
            words.extend(["--kept".to_owned(), captured]);
        }
        if args.json {
            words.push("--json".to_owned());
        }
        if !filter.is_empty() {
            words.extend(["--filter".to_owned(), filter.to_owned()]);
        }
        // It writes into a pipe, and does not see the terminal.
        words.extend(["--color", if args.color.is_on() { "always" } else { "never" }].map(str::to_owned));
        if let Some((width, _)) = terminal_size::terminal_size_of(std::io::stdout()) {
            words.extend(["--width".to_owned(), width.0.clamp(40, 200).to_string()]);
        }
        words
    }

    /// The part of a filter that the kernel can apply: a port, a host, or both. It passes more than
    /// the whole filter, never less.
    fn kernel(words: &[String]) -> Kernel {
        let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
        let words = words.strip_prefix(&["tcp"]).unwrap_or(&words);
        let words = words.strip_prefix(&["and"]).unwrap_or(words);
        let (port, host) = (|text: &str| text.parse().ok(), |text: &str| text.parse().ok());
        match *words {
            ["port", number] => Kernel { port: port(number), ..Kernel::default() },
            ["host", address] => Kernel { host: host(address), ..Kernel::default() },
            ["port", number, "and", "host", address] | ["host", address, "and", "port", number] => {
                Kernel { port: port(number), host: host(address), ..Kernel::default() }
            }
            _ => Kernel::default(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "how long to capture is a matter of the clock")]
    fn now() -> Instant {
        Instant::now()
    }
}
