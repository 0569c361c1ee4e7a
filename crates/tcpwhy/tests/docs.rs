//! Do the documents show what the binary prints, and are they consistent?
//!
//! Each `$` line in a `console` block is run by a shell in the repository's folder, and its output
//! must be below it, up to a line of `...` if the rest is left out. `BLESS=1 cargo test -p tcpwhy
//! --test docs` writes it there.

#[path = "../../report/tests/pieces/mod.rs"]
mod pieces;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use tcpwhy_core::Cause;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs");
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The output of a shell command, errors included.
fn printed(command: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tcpwhy")).parent().expect("a folder");
    let script = format!("export PATH='{}':$PATH TZ=UTC; unset COLUMNS NO_COLOR; {command}", bin.display());
    let output =
        Command::new("sh").args(["-c", &format!("{{ {script}\n}} 2>&1")]).current_dir(root()).output();
    let text = String::from_utf8(output.expect("a shell").stdout).expect("UTF-8");
    // Trailing spaces do not count.
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// A page with the current output of its commands; output that still matches stays as it is.
fn anew(page: &str, commands: &mut usize) -> String {
    let mut out = Vec::new();
    let mut lines = page.lines().peekable();
    let mut is_console = false;
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_console = line == "```console",
            Some(command) if is_console => {
                *commands += 1;
                let mut there = Vec::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
                    there.push(line);
                }
                let now = printed(command);
                let is_cut = there.last() == Some(&"...");
                let kept = if is_cut { there.len() - 1 } else { usize::MAX };
                out.extend(now.lines().take(kept).map(str::to_owned));
                if is_cut {
                    out.push("...".to_owned());
                }
            }
            _ => {}
        }
    }
    out.join("\n") + "\n"
}

/// Writes the current output into all pages, if asked to. Tests that look for something in them
/// wait for it.
fn bless() {
    static ONCE: Once = Once::new();
    if std::env::var_os("BLESS").is_some() {
        ONCE.call_once(|| {
            for path in pages() {
                let page = fs::read_to_string(&path).expect("a page");
                fs::write(&path, anew(&page, &mut 0)).expect("written");
            }
        });
    }
}

#[test]
fn the_documents_say_what_is_printed() {
    bless();
    let mut commands = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let now = anew(&page, &mut commands);
        let differs = page.lines().zip(now.lines()).find(|(there, now)| there != now);
        assert!(page == now, "{}: {differs:?}; BLESS=1 writes it anew", path.display());
    }
    assert!(commands >= 12, "{commands} commands");
}

/// The crates with messages for users: listed in docs/messages.md, in docs/sentences.md for the
/// answer, or in docs/causes.md, which has all fixes.
const SPEAKERS: [&str; 11] =
    ["fix", "host", "lab", "remedy", "report", "sandbox", "sockets", "tcpwhy", "twin", "view", "wire"];

/// Their files without messages: tests.
const SILENT: [&str; 2] = ["lab/src/test_support.rs", "/tests.rs"];

/// The source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Text in the sources that is no message: marks in files and headers, and what a script starts
/// programs with.
const NOT_SAID: [&str; 5] = [
    // A line of /proc/net/netstat.
    "TcpExt:",
    "Rust's descriptors",
    "<!-- tcpwhy lab all",
    "made by tcpwhy wireshark-profile",
    "PATH=$PATH:/usr/sbin;",
];

/// Two words are a message unless they are a unit, a header or an option. One word is a name (of a
/// cause, a column, a service, a key) or a unit, unless it ends in punctuation: then it is part of
/// a sentence.
fn is_of_words(piece: &str) -> bool {
    if !piece.contains(' ') {
        let word = piece.trim_end_matches([',', ':', ';', '.']);
        return word.len() > 1 && word != piece && word.chars().all(char::is_alphabetic);
    }

    let is_word = |word: &str| {
        let word = word.trim_end_matches([',', ':', ';']);
        word.starts_with(char::is_alphabetic)
            && word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'')
    };
    piece.split(' ').count() > 2 || piece.split(' ').all(is_word)
}

/// Settings that are written and read back, in scenarios and in files of /etc/sysctl.d: a one-word
/// name at the start, or after the value before.
fn is_setting(piece: &str) -> bool {
    let is_in_name = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.');
    piece.split('"').any(|part| {
        let mut words = part.split_whitespace().skip_while(|word| word.starts_with('['));
        words.next().is_some_and(|name| name.bytes().all(is_in_name)) && words.next() == Some("=")
    })
}

#[test]
fn every_other_sentence_is_listed_with_an_example() {
    bless();
    let words = |text: &str| text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    // The help, and the output of `lab accuracy` and `lab draws`, are separate pages.
    let pages = ["messages", "sentences", "causes", "help", "accuracy", "draws", "wireshark"];
    let listed: String = pages
        .iter()
        .map(|page| words(&fs::read_to_string(root().join(format!("docs/{page}.md"))).expect("a page")))
        .collect();
    let (mut missing, mut said) = (Vec::new(), 0);
    for source in SPEAKERS.iter().flat_map(|name| sources(&root().join("crates").join(name).join("src"))) {
        let name = source.to_string_lossy().into_owned();
        if SILENT.iter().any(|what| name.contains(what)) {
            continue;
        }
        for piece in pieces::pieces(&fs::read_to_string(&source).expect("the source"), 1) {
            // Heads of tables are no sentences.
            let is_said = is_of_words(&piece)
                && !piece.starts_with('|')
                && !is_setting(&piece)
                && !NOT_SAID.iter().any(|what| piece.starts_with(what));
            said += usize::from(is_said);
            if is_said && !listed.contains(&piece.to_lowercase()) {
                missing.push(format!("{name}: {piece}"));
            }
        }
    }
    assert!(said > 800, "{said} pieces of sentences");
    assert!(
        missing.is_empty(),
        "printed somewhere and not listed (answers: BLESS=1 cargo test -p tcpwhy-report --test sentences; fixes: docs/causes.md; all \
         others by hand in docs/messages.md):\n{}",
        missing.join("\n")
    );
}

#[test]
fn every_cause_is_explained() {
    bless();
    let page = fs::read_to_string(root().join("docs/causes.md")).expect("the page");
    let missing: Vec<_> = Cause::ALL
        .into_iter()
        .filter(|cause| !page.lines().any(|line| line == format!("$ tcpwhy explain {}", cause.name())))
        .collect();
    assert!(
        missing.is_empty(),
        "no `$ tcpwhy explain NAME` in docs/causes.md of {missing:?}; BLESS=1 fills it in"
    );
}

/// Commands outside of console blocks, of all pages: `tcpwhy read FILE --html report.html`.
fn commands_elsewhere(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if !is_console {
            let in_text = line.split('`').skip(1).step_by(2).map(str::trim);
            let indented = line.strip_prefix("    ").map(|line| line.trim_start_matches("$ ").trim());
            let all = in_text
                .chain(indented)
                .filter(|text| text.starts_with("tcpwhy ") || text.contains("| tcpwhy "));
            commands.extend(all.map(|text| text[text.find("tcpwhy ").unwrap_or(0)..].to_owned()));
        }
    }
    commands
}

/// Commands that cannot be run in a test can still be checked: the command exists and has the
/// options.
#[test]
fn commands_outside_of_frames_have_the_options_that_they_show() {
    bless();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in pages() {
        for command in commands_elsewhere(&fs::read_to_string(&path).expect("a page")) {
            // Anything after a second program, a comment or another command is not ours.
            let ours =
                command.split("   ").next().unwrap_or_default().split(" -- ").next().unwrap_or_default();
            let ours = ours.split(['|', ';', '>']).next().unwrap_or_default();
            let words: Vec<&str> = ours.split_whitespace().skip(1).collect();
            let Some(name) =
                words.first().filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
            else {
                continue;
            };
            let is_shell = words.starts_with(&["lab", "shell"]);
            let of = if is_shell { "lab shell".to_owned() } else { (*name).to_owned() };
            let help = helps.entry(of.clone()).or_insert_with(|| match of.as_str() {
                "lab" => ["", " all", " accuracy", " draws", " corpus", " real"]
                    .iter()
                    .fold(String::new(), |all, form| all + &printed(&format!("tcpwhy lab{form} --help"))),
                of => printed(&format!("tcpwhy {of} --help")),
            });
            if help.contains("unrecognized subcommand") {
                wrong.push(format!("{}: no such command: {command}", path.display()));
            }
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split(['=', ',', ')', '.']).next().unwrap_or_default();
                seen += 1;
                if !help.contains(option) {
                    wrong.push(format!("{}: {option} is no option of {of}: {command}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "{seen} options");
}

/// Targets of links in Markdown, without those to other sites and within the page.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for part in page.split("](").skip(1) {
        let target = part.split(')').next().unwrap_or_default();
        let target = target.split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") {
            links.push(target.to_owned());
        }
    }
    links
}

#[test]
fn links_lead_somewhere_and_the_summary_has_every_page() {
    bless();
    for path in pages().into_iter().chain([root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")]) {
        let page = fs::read_to_string(&path).expect("a page");
        let folder = path.parent().expect("a folder");
        // The site that `make book` builds has only the pages, not the repository around them.
        let is_on_the_site = folder.ends_with("docs");
        for link in links(&page) {
            assert!(folder.join(&link).exists(), "{}: {link} is not there", path.display());
            assert!(!(is_on_the_site && link.starts_with("..")), "{}: {link} leaves docs", path.display());
        }
    }
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("SUMMARY.md");
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let names = pages().into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let there: BTreeSet<String> = names.filter(|name| name != "SUMMARY.md" && name != "README.md").collect();
    assert_eq!(listed, there);
}

#[test]
fn every_command_has_a_page_and_readme_is_short() {
    bless();
    let help = printed("tcpwhy help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names: Vec<&str> =
        commands.filter_map(|line| line.split(' ').next()).filter(|n| !n.is_empty()).collect();
    assert!(names.len() >= 8, "{help}");
    let pages: String = pages().iter().map(|page| fs::read_to_string(page).expect("a page")).collect();
    for name in names.iter().filter(|name| **name != "help") {
        let heading = format!("`tcpwhy {name}`");
        assert!(
            pages.lines().any(|line| line.starts_with('#') && line.contains(&heading)),
            "{name} has no page"
        );
    }
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    assert!(readme.lines().count() <= 110, "a screen and a half");
    // The Rust version it names is the one needed.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let needed = manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next());
    assert!(readme.contains(&format!("Rust {} or newer", needed.expect("a version"))));
}

/// The subcommands of a command, as its help lists them.
fn commands_of(command: &str) -> Vec<String> {
    let help = printed(&format!("{command} --help"));
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    named.filter(|name| !name.is_empty() && *name != "help").map(|name| format!("{command} {name}")).collect()
}

/// The help in the page is compared like every other example.
#[test]
fn the_help_of_every_command_is_listed() {
    bless();
    let page = fs::read_to_string(root().join("docs/help.md")).expect("docs/help.md");
    let mut left = vec!["tcpwhy".to_owned()];
    let mut seen = 0;
    while let Some(command) = left.pop() {
        let example = format!("$ {command} --help");
        let whole = page.lines().skip_while(|line| *line != example).take_while(|line| *line != "```");
        assert!(whole.clone().count() > 3, "{command} is missing in docs/help.md");
        assert!(whole.clone().all(|line| line != "..."), "{command} is cut in docs/help.md");
        left.extend(commands_of(&command));
        seen += 1;
    }
    assert!(seen >= 18, "{seen} commands");
}
