//! Does the screen of `tcpwhy live` work on a real terminal? Driven through tmux: keys in, screen
//! content out.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tcpwhy_lab::Pair;

use crate::lab::{App, beside, skip, tcpwhy, text, thrice};

/// A separate terminal.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// Starts a command in it.
    fn start(folder: &Path, command: &str, columns: u16, lines: u16) -> Self {
        let socket = folder.join("tmux").to_str().expect("a plain name").to_owned();
        let tmux = Self { socket };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let path = folder.to_str().expect("a plain name");
        // The commands after it keep the terminal open when the command has ended.
        let command = format!("{command}; echo ended: $?; sleep 60");
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-c",
            path,
            "-x",
            &columns,
            "-y",
            &lines,
            &command,
        ]);
        tmux
    }

    fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket]).args(words).env("TERM", "xterm-256color");
        let output = command.output().expect("tmux starts");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", "0"], keys].concat());
    }

    fn seen(&self) -> String {
        self.run(&["capture-pane", "-p", "-t", "0"])
    }

    /// Waits until the screen is as wanted; returns it.
    #[track_caller]
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        for _ in 0..200 {
            let seen = self.seen();
            if wanted(&seen) {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what} is not seen:\n{}", self.seen());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}

fn has(words: &'static str) -> impl Fn(&str) -> bool {
    move |seen| seen.contains(words)
}

#[test]
fn a_person_resizes_searches_opens_pauses_saves_and_quits() {
    let name = "a_person_resizes_searches_opens_pauses_saves_and_quits";
    if Command::new("tmux").arg("-V").output().is_err() {
        skip(name, "tmux is not installed");
        return;
    }
    thrice(|| {
        let Some(lab) = beside(name) else { return };
        let _server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(3);
        let folder = tempfile::tempdir().expect("a folder");
        let bin = env!("CARGO_BIN_EXE_tcpwhy");
        let command = format!("{bin} live --pid {} --every 500ms", client.pid());
        let tmux = Tmux::start(folder.path(), &command, 140, 30);

        let seen = tmux.wait("the stall", has("nagle-delayed-ack"));
        assert!(seen.contains("client of 10.77.0.2:8080") && seen.contains("none dropped"), "{seen}");
        let seen = tmux.wait("whose it is", has("TCP_NODELAY is off at pid"));
        let fix = format!("try: tcpwhy fix nodelay --pid {} --port 8080", client.pid());
        assert!(seen.contains(&fix), "{seen}");
        show("findings", &seen);

        tmux.run(&["resize-window", "-t", "0", "-x", "60", "-y", "12"]);
        let seen =
            tmux.wait("the small screen", |seen| !seen.contains("confidence") && seen.contains("share"));
        assert!(seen.lines().all(|line| line.chars().count() <= 60), "{seen}");
        tmux.run(&["resize-window", "-t", "0", "-x", "140", "-y", "30"]);
        tmux.wait("the large screen again", has("confidence"));

        tmux.keys(&["/", "nagle", "Enter", "e"]);
        let seen = tmux.wait("the explanation", has("## Mechanism"));
        show("explanation", &seen);
        tmux.keys(&["Escape"]);
        tmux.wait("the findings", has("by time in all"));
        tmux.keys(&["/", "no such thing", "Enter"]);
        tmux.wait("that there is nothing", has("nothing here has \"no such thing\""));
        tmux.keys(&["f", "think", "Enter"]);
        tmux.wait("the filter", has("findings with \"think\""));
        tmux.keys(&["Escape"]);

        tmux.keys(&["Enter"]);
        let seen = tmux.wait("the connections", has("connections to 10.77.0.2:8080 in the last"));
        assert!(seen.contains("10.77.0.1:") && seen.contains("nagle-delayed-ack 9"), "{seen}");
        show("connections", &seen);
        tmux.keys(&["Enter"]);
        let seen = tmux.wait("the ladder", has("packets of the last"));
        assert!(seen.contains("nagle-delayed-ack") && seen.contains("released by #"), "{seen}");
        show("packets", &seen);
        tmux.keys(&["Escape"]);
        tmux.wait("the connections again", has("connections to 10.77.0.2:8080"));
        tmux.keys(&["Escape"]);
        tmux.wait("the findings", has("by time in all"));
        tmux.keys(&["p"]);
        let paused = tmux.wait("the pause", has("paused"));
        std::thread::sleep(Duration::from_millis(1_200));
        assert_eq!(tmux.seen(), paused);
        tmux.keys(&["p"]);
        tmux.wait("the end of the pause", |seen| !seen.contains("paused"));

        tmux.keys(&["s"]);
        tmux.wait("the file's name", has("saved the last"));
        tmux.keys(&["q"]);
        let seen = tmux.wait("the end", has("ended: 0"));
        assert!(seen.contains("Sockets of this machine:") && seen.contains("tcpwhy fix nodelay"), "{seen}");

        let saved: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "pcapng"))
            .collect();
        assert_eq!(saved.len(), 1, "{saved:?}");
        let read = tcpwhy(&["read", "--json", saved[0].to_str().expect("a plain name")]);
        let read: Value = serde_json::from_slice(&read.stdout).expect("a document");
        assert_eq!(read["findings"][0]["cause"], "nagle-delayed-ack", "{read:#}");
        assert_eq!(read["capture"]["truncated"], false);
    });
}

/// Prints a screen for use in the documents: `SCREENS=1`.
#[expect(clippy::disallowed_methods, reason = "who writes documents asks for it")]
fn show(name: &str, seen: &str) {
    if std::env::var("SCREENS").is_ok() {
        println!("-- {name}\n{seen}");
    }
}
