//! Do the documents say what the binary prints, and do they hang together?
//!
//! What stands behind `$` in a block of `console` is run by a shell in the repository's folder, and what it prints has to stand below
//! it, up to a line of `...` where the rest is left out. `BLESS=1 cargo test -p tcpwhy --test docs` writes it there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// What a shell prints, errors included.
fn printed(command: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tcpwhy")).parent().expect("a folder");
    let script = format!("export PATH='{}':$PATH TZ=UTC; unset COLUMNS NO_COLOR; {command}", bin.display());
    let output =
        Command::new("sh").args(["-c", &format!("{{ {script}\n}} 2>&1")]).current_dir(root()).output();
    let text = String::from_utf8(output.expect("a shell").stdout).expect("UTF-8");
    // Spaces at the ends of lines are nobody's.
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// A page with its commands' output as it is now; nothing is printed anew below what still holds.
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

#[test]
fn the_documents_say_what_is_printed() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut commands = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let now = anew(&page, &mut commands);
        if bless {
            fs::write(&path, now).expect("written");
        } else {
            let differs = page.lines().zip(now.lines()).find(|(there, now)| there != now);
            assert!(page == now, "{}: {differs:?}; BLESS=1 writes it anew", path.display());
        }
    }
    assert!(commands >= 12, "{commands} commands");
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
    for path in pages().into_iter().chain([root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")]) {
        let page = fs::read_to_string(&path).expect("a page");
        let folder = path.parent().expect("a folder");
        for link in links(&page) {
            assert!(folder.join(&link).exists(), "{}: {link} is not there", path.display());
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
    // The Rust that it names is the one that is needed.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let needed = manifest.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next());
    assert!(readme.contains(&format!("Rust {} or newer", needed.expect("a version"))));
}
