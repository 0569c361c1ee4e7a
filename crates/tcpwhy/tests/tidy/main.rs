//! Are the house rules kept? The ones clippy cannot check: sizes of files, purity of crates,
//! direction of dependencies; `engine.rs` has those of the engine.
//!
//! Each rule names its replacement in its message. Exceptions are in the lists here, each with its
//! reason.

mod engine;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A longer file contains a second mechanism.
const LINES_MAX: usize = 600;
/// Files that may be longer, and why.
const LONG_FILES: [(&str, &str); 0] = [];

/// Crates that are functions of their input: no clock, no environment, no files, no varying order.
const PURE: [&str; 8] = ["wire", "heads", "core", "twin", "remedy", "report", "page", "view"];

/// Which crates of the workspace each crate may use (ARCHITECTURE: the flow of data).
const MAY_USE: [(&str, &[&str]); 17] = [
    ("ahead", &[]),
    ("wire", &["ahead"]),
    ("heads", &[]),
    ("core", &["ahead", "wire", "heads"]),
    ("twin", &["wire"]),
    ("remedy", &["wire", "core", "twin"]),
    ("report", &["wire", "core", "remedy"]),
    ("page", &["wire", "core", "remedy", "report"]),
    ("view", &["wire", "core", "remedy", "report"]),
    ("host", &["wire"]),
    ("gen", &["wire"]),
    ("sandbox", &[]),
    ("sockets", &["host"]),
    ("fix", &["host", "sockets"]),
    ("lab", &["wire", "twin", "host"]),
    (
        "tcpwhy",
        &[
            "ahead", "wire", "core", "twin", "remedy", "report", "page", "view", "host", "lab", "sandbox",
            "sockets", "fix",
        ],
    ),
    ("python", &["wire", "core", "twin", "remedy", "report"]),
];

/// What a pure crate must not mention, and what to do instead.
const IMPURE: [(&str, &str); 7] = [
    ("Instant::now", "take the time as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("std::env", "take it as an option"),
    ("std::fs", "take bytes; the binary opens files"),
    ("std::thread", "leave threads to the binary"),
    ("thread_rng", "take a seed"),
    ("RandomState", "use a BTreeMap, or never walk the map"),
];

#[test]
fn files_have_one_mechanism() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let lines = file.text.lines().count();
        let excused = LONG_FILES.iter().any(|(path, _)| *path == file.name);
        if lines > LINES_MAX && !excused {
            wrong.push(format!(
                "{}: {lines} lines; look for the second mechanism in it and give it a file of its own",
                file.name
            ));
        }
        if lines <= LINES_MAX && excused {
            wrong.push(format!("{}: is short again; take it off LONG_FILES", file.name));
        }
    }
    none(&wrong);
}

#[test]
fn modules_open_with_the_question_they_answer() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let doc: Vec<&str> =
            file.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
        let paragraph = doc.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
        let says_something = paragraph.split_whitespace().count() >= 3
            && (paragraph.contains('?') || paragraph.ends_with(['.', ':']));
        if !says_something {
            wrong.push(format!("{}: open with `//!` and the question that the file answers", file.name));
        }
    }
    none(&wrong);
}

#[test]
fn nothing_is_left_for_later() {
    // In two pieces, so that this file does not match.
    let unfinished = [["todo", "!("], ["unimplemented", "!("], ["dbg", "!("], ["TO", "DO:"], ["FIX", "ME"]];
    let mut wrong = Vec::new();
    for file in rust_files() {
        for marker in unfinished.map(|parts| parts.concat()) {
            for (at, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains(&marker)) {
                wrong.push(format!("{}:{}: {marker} finish it, or take it out", file.name, at + 1));
            }
        }
    }
    none(&wrong);
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let places = [["/ho", "me/"], ["/Us", "ers/"], ["/wo", "rk/"], ["/ro", "ot/"], ["C:\\Us", "ers"]];
    let mut wrong = Vec::new();
    for file in text_files() {
        for place in places.map(|parts| parts.concat()) {
            for (at, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains(&place)) {
                wrong.push(format!("{}:{}: {place} name it relative to the repository", file.name, at + 1));
            }
        }
    }
    none(&wrong);
}

#[test]
fn pure_crates_are_pure() {
    let mut wrong = Vec::new();
    for file in rust_files() {
        let Some(krate) = crate_of(&file.name).filter(|krate| PURE.contains(krate)) else { continue };
        if !file.name.contains("/src/") {
            continue; // tests may read files
        }
        if file.name.ends_with("/src/lib.rs") && !file.text.contains("#![forbid(unsafe_code)]") {
            wrong.push(format!("{}: a pure crate forbids unsafe code: #![forbid(unsafe_code)]", file.name));
        }
        for (at, line) in code_lines(&file.text) {
            for (impure, instead) in IMPURE {
                if line.contains(impure) {
                    wrong.push(format!("{}:{at}: {impure} in {krate}: {instead}", file.name));
                }
            }
        }
        for (at, name) in walks_over_hash_maps(&file.text) {
            wrong.push(format!(
                "{}:{at}: walks over the hash map `{name}`, whose order varies: use a BTreeMap, or sort",
                file.name
            ));
        }
    }
    none(&wrong);
}

#[test]
fn dependencies_point_one_way() {
    let mut wrong = Vec::new();
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.into_iter().collect();
    for (krate, manifest) in manifests() {
        let Some(allowed) = allowed.get(krate.as_str()) else {
            wrong.push(format!("crates/{krate}: say in MAY_USE and in ARCHITECTURE what it may use"));
            continue;
        };
        for used in uses(&manifest) {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("crates/{krate} must not use {used}: see MAY_USE for the direction"));
            }
        }
    }
    none(&wrong);
}

#[test]
fn the_rules_find_what_they_are_for() {
    let walk = "struct A { table: HashMap<u8, u8> }\nfn f(a: &A) {\n    for (k, v) in &a.table {}\n    a.table.keys()\n}";
    assert_eq!(walks_over_hash_maps(walk), [(3, "table".to_owned()), (4, "table".to_owned())]);
    assert!(walks_over_hash_maps("let seen: HashSet<u8> = x;\nseen.contains(&1);").is_empty());
    let manifest = "[package]\n[dependencies]\ntcpwhy-wire.workspace = true\nserde = \"1\"\n[dev-dependencies]\ntcpwhy-lab.workspace = true\n";
    assert_eq!(uses(manifest), BTreeSet::from(["wire".to_owned()]));
    let code: Vec<_> =
        code_lines("//! Instant::now\nlet a = 1; // SystemTime\n").map(|(_, line)| line).collect();
    assert_eq!(code, ["", "let a = 1; "]);
}

struct File {
    /// Relative to the workspace, with forward slashes.
    name: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All text files of the project.
fn text_files() -> Vec<File> {
    let mut files = Vec::new();
    collect(&root(), &root(), &mut files);
    assert!(files.len() > 30, "the workspace is not where it is looked for: {}", root().display());
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

fn rust_files() -> Vec<File> {
    let is_rust = |file: &File| Path::new(&file.name).extension().is_some_and(|end| end == "rs");
    text_files().into_iter().filter(is_rust).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if ["target", ".git", "tcpwhy-demo", "corpus", "artifacts", "node_modules"].contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            files.push(File { name, text });
        }
    }
}

/// `core` of `crates/core/src/cause.rs`.
fn crate_of(name: &str) -> Option<&str> {
    name.strip_prefix("crates/")?.split('/').next()
}

/// Lines with their numbers, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
}

/// Places that iterate over a name declared as a hash map or set.
fn walks_over_hash_maps(text: &str) -> Vec<(usize, String)> {
    let mut names = BTreeSet::new();
    for (_, line) in code_lines(text) {
        for kind in ["HashMap<", "HashSet<", "HashMap::", "HashSet::"] {
            let Some((before, _)) = line.split_once(kind) else { continue };
            let before = before.trim_end().trim_end_matches([':', '=', ' ', '&']);
            let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if !name.is_empty() && !["use", "collections", "mut"].contains(&name) {
                names.insert(name.to_owned());
            }
        }
    }
    let mut walks = Vec::new();
    for (at, line) in code_lines(text) {
        for name in &names {
            let walked = ["iter", "iter_mut", "into_iter", "keys", "values", "values_mut", "drain", "retain"]
                .iter()
                .any(|walk| line.contains(&format!("{name}.{walk}(")));
            let looped = line.contains("for ")
                && [" in ", " in &", " in &mut "].iter().any(|how| {
                    line.split_once(how).is_some_and(|(_, rest)| {
                        let over = rest.trim_start_matches(['&', ' ']).trim_start_matches("mut ");
                        let over = over.split([' ', '{']).next().unwrap_or_default();
                        over == name || over.ends_with(&format!(".{name}"))
                    })
                });
            if walked || looped {
                walks.push((at, name.clone()));
            }
        }
    }
    walks
}

/// Crates and their manifests.
fn manifests() -> Vec<(String, String)> {
    let of_a_crate = |file: File| {
        let krate = file.name.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?.to_owned();
        (!krate.contains('/')).then_some((krate, file.text))
    };
    text_files().into_iter().filter_map(of_a_crate).collect()
}

/// The workspace's own crates among a manifest's dependencies; tests may use any.
fn uses(manifest: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            counts = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
            if counts && let Some((_, name)) = line.trim_end_matches(']').split_once("dependencies.tcpwhy-") {
                used.insert(name.to_owned());
            }
        } else if counts && let Some(rest) = line.strip_prefix("tcpwhy-") {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            used.insert(name);
        }
    }
    used
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
