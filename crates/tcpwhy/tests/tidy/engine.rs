//! Is the engine laid out as ARCHITECTURE.md says? Its rooms, the header of each rule, and the lengths of
//! functions.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, code_lines, none, root, rust_files};

/// Rooms of the engine, lowest first: a file uses its own and those before it (ARCHITECTURE: rooms).
const ROOMS: [&str; 11] = [
    "words",
    "conduct",
    "estimate",
    "flow",
    "bill",
    "rules",
    "tally",
    "connection",
    "epoch",
    "analysis",
    "lib",
];

/// What every rule states, in this order, before its code begins.
const SAYS: [&str; 4] = ["Proof: ", "Refuted by: ", "Source: ", "Seen from: "];

/// Files among the rules that are no rules: the input of rules, and their results.
const NO_RULES: [&str; 5] = ["mod", "pair", "sender_model", "verdict", "wait"];

/// Files outside the rules that make charges, and why.
const CHARGES: [(&str, &str); 5] = [
    ("bill/revise.rs", "what changes a charge"),
    ("bill/usual.rs", "a usual reply's two lines, as the rules had them"),
    ("bill/early.rs", "what was the link's once its rate has shown"),
    ("bill/split.rs", "the place of none"),
    ("connection/usual.rs", "what the rules say of usual segments, which do not come to them"),
];

/// Lines of code that a function of the engine may have: one screen is read in one go.
const FUNCTION_LINES_MAX: usize = 60;

/// Lines that a file of the engine may have, including comments and tests.
const FILE_LINES_MAX: usize = 500;

/// Files that may have more, and why.
const LONG_FILES: [(&str, &str); 2] = [
    (
        "bill/exchange.rs",
        "apart, an exchange and its two paths miss the instruction cache a tenth more often on rpc",
    ),
    ("epoch/shard.rs", "the way of a group from its table to the ledger, read in one go"),
];

/// Functions that may have more, and why.
const LONG_FUNCTIONS: [(&str, &str); 1] =
    [("flow/packed.rs::comes_back_as_it_was", "a test: its table of segments")];

#[test]
fn rooms_of_the_engine_use_those_below_them() {
    let files = engine_files();
    let mut wrong = Vec::new();
    for file in &files {
        let Some(place) = ROOMS.iter().position(|room| *room == room_of(&file.name)) else {
            wrong.push(format!("{}: say in ROOMS and in ARCHITECTURE where its room stands", file.name));
            continue;
        };
        for named in named_files(file, &files) {
            let (from, to) = (room_of(&file.name), room_of(&named.file));
            // Nothing in the bill knows how the ends behaved.
            if !ROOMS[..=place].contains(&to) || (to == "conduct" && !["conduct", "lib"].contains(&from)) {
                wrong.push(format!(
                    "{}:{}: `{}` is in {to}, which {from} must not use: move down what both need, or \
                     this up (ROOMS)",
                    file.name, named.line, named.path
                ));
            }
        }
    }
    none(&wrong);
}

#[test]
fn files_of_the_engine_form_no_circle() {
    let files = engine_files();
    let uses: BTreeMap<String, BTreeSet<String>> = files
        .iter()
        .map(|file| (file.name.clone(), named_files(file, &files).into_iter().map(|named| named.file)))
        .map(|(name, named)| (name, named.collect()))
        .collect();
    let wrong: Vec<String> = circles(&uses)
        .into_iter()
        .map(|circle| {
            let names = circle.join(" uses ");
            format!("{names}: a circle; put what both need into a file below both")
        })
        .collect();
    none(&wrong);
}

#[test]
fn every_rule_opens_with_its_proof_and_its_source() {
    let mut wrong = Vec::new();
    for file in engine_files() {
        let Some(rule) = file.name.strip_prefix(ENGINE).and_then(|name| name.strip_prefix("rules/")) else {
            continue;
        };
        if NO_RULES.contains(&rule.trim_end_matches(".rs")) {
            continue;
        }
        let mut doc = file.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        for says in SAYS {
            if !doc.any(|line| line.starts_with(says)) {
                wrong.push(format!("{}: open with {} in this order", file.name, SAYS.join("..., ")));
                break;
            }
        }
    }
    none(&wrong);
}

#[test]
fn what_bills_is_a_rule() {
    let mut wrong = Vec::new();
    for file in engine_files() {
        let inside = &file.name[ENGINE.len()..];
        let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let makes = code_lines(code).any(|(_, line)| line.contains("Charge::new("));
        let tests = inside.ends_with("/tests.rs");
        let may = tests || inside.starts_with("rules/") || CHARGES.iter().any(|(name, _)| *name == inside);
        if makes && !may {
            wrong.push(format!("{}: makes charges: give that a file in rules, with its proof", file.name));
        }
    }
    none(&wrong);
}

#[test]
fn files_of_the_engine_are_short() {
    let mut wrong = Vec::new();
    for file in engine_files() {
        let lines = file.text.lines().count();
        let excused = LONG_FILES.iter().any(|(name, _)| *name == &file.name[ENGINE.len()..]);
        if excused != (lines > FILE_LINES_MAX) {
            wrong.push(format!(
                "{}: {lines} lines; give its second mechanism a file, or see LONG_FILES",
                file.name
            ));
        }
    }
    none(&wrong);
}

#[test]
fn functions_of_the_engine_fit_a_screen() {
    let mut wrong = Vec::new();
    let mut excused: BTreeSet<&str> = LONG_FUNCTIONS.iter().map(|(name, _)| *name).collect();
    for file in engine_files() {
        for (line, name, lines) in functions(&file.text) {
            let known = format!("{}::{name}", &file.name[ENGINE.len()..]);
            if lines > FUNCTION_LINES_MAX && !excused.remove(known.as_str()) {
                wrong.push(format!("{}:{line}: {name} has {lines} lines; give its parts names", file.name));
            }
        }
    }
    wrong.extend(excused.iter().map(|name| format!("{name} is short again; take it off LONG_FUNCTIONS")));
    none(&wrong);
}

/// ARCHITECTURE.md shows which room uses which; `BLESS=1` redraws it.
#[test]
fn the_picture_of_the_rooms_is_drawn_from_the_code() {
    let files = engine_files();
    let mut uses = BTreeSet::new();
    for file in &files {
        let from = room_of(&file.name);
        let of = named_files(file, &files).into_iter().map(|named| room_of(&named.file).to_owned());
        uses.extend(of.filter(|to| to != from && ROOMS.contains(&from)).map(|to| (place(from), place(&to))));
    }
    let drawn = picture(&uses);
    let path = root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("```mermaid\n").expect("ARCHITECTURE.md has a picture");
    let (shown, behind) = rest.split_once("```\n").expect("the picture ends");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}```mermaid\n{drawn}```\n{behind}")).unwrap();
    } else {
        assert_eq!(shown, drawn, "BLESS=1 cargo test -p tcpwhy --test tidy draws it anew");
    }
}

/// Each stop of a segment's walk is where ARCHITECTURE.md says: a row of the table, with a file and what
/// happens there in the first and second pair of backquotes.
#[test]
fn the_walk_of_a_segment_leads_through_files_that_there_are() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let walk =
        text.split("\n## ").find(|part| part.starts_with("The walk of one segment")).unwrap_or_default();
    let stops: Vec<&str> =
        walk.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")).collect();
    let mut wrong = Vec::new();
    for stop in &stops {
        let named: Vec<&str> = stop.split('`').skip(1).step_by(2).collect();
        let code = std::fs::read_to_string(root().join("crates").join(named[0])).unwrap_or_default();
        let what = named.get(1).map_or("", |name| name.rsplit("::").next().unwrap_or_default());
        if ["fn", "struct", "enum"].iter().all(|kind| !code.contains(&format!("{kind} {what}"))) {
            wrong.push(format!("{}: no {what} there: say where it is now", named[0]));
        }
    }
    assert!((8..=12).contains(&stops.len()), "a walk of {} stops", stops.len());
    none(&wrong);
}

/// docs/thresholds.md lists every named threshold with its value; `make thresholds` rewrites it.
#[test]
fn every_threshold_is_listed_with_its_value() {
    let page = std::fs::read_to_string(root().join("docs/thresholds.md")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in engine_files() {
        let inside = &file.name[ENGINE.len()..];
        if !["words/limits.rs", "rules/", "bill/", "connection/"].iter().any(|room| inside.starts_with(room))
        {
            continue;
        }
        for (name, value) in times(&file.text) {
            count += 1;
            if !page.contains(&format!("| `{name}` | `{inside}` | {value} |")) {
                wrong.push(format!("{}: {name} is {value}: `make thresholds` lists it", file.name));
            }
        }
    }
    assert!(count > 40, "{count} thresholds are not all");
    none(&wrong);
}

/// The text of each switch in tools/rules.txt occurs exactly once in its file, and docs/rules.md has a row
/// for it; `make rules` rewrites that page.
#[test]
fn every_rule_can_be_taken_out() {
    let list = std::fs::read_to_string(root().join("tools/rules.txt")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let mut wrong = Vec::new();
    let mut switched = BTreeMap::new();
    let switches: Vec<&str> = list.split("\noff ").skip(1).collect();
    for switch in &switches {
        let (head, lines) = switch.split_once('\n').unwrap();
        let (file, what) = head.split_once(": ").unwrap();
        let marked = |mark: char| -> String {
            lines.split_inclusive('\n').filter_map(|line| line.strip_prefix(mark)).collect()
        };
        let (text, instead) = (marked('-'), marked('+'));
        // As `make rules` inserts them, one after the other: two of them cannot change one line.
        let read = || std::fs::read_to_string(root().join(file)).unwrap_or_default();
        let code = switched.entry(file).or_insert_with(read);
        if text.is_empty() || code.matches(&text).count() != 1 {
            wrong.push(format!("tools/rules.txt: {file} does not have this just once: {}", text.trim()));
        }
        *code = code.replace(&text, &instead);
        if !page.contains(&format!(" | {what} | ")) {
            wrong.push(format!("docs/rules.md: no row for \"{what}\": `make rules` writes it"));
        }
    }
    assert!(switches.len() > 40, "{} switches are not all", switches.len());
    none(&wrong);
}

#[test]
fn what_is_said_of_the_engine_is_found() {
    let file = |name: &str, text: &str| File { name: format!("{ENGINE}{name}.rs"), text: text.to_owned() };
    let files = [
        file("lib", "mod rules;\npub use words::cause::Cause;"),
        file("words/mod", "pub mod cause;"),
        file("words/cause", "//! See [`crate::rules::cork`].\npub enum Cause {}"),
        file("rules/mod", "mod cork;\nmod wait;\nuse wait::Wait;\nfn ask() {\n    cork::judge();\n}"),
        file(
            "rules/cork",
            "use super::{\n    super::words::cause::Cause,\n    wait::{self, Wait},\n};\nuse std::fmt;",
        ),
        file("rules/wait", "fn a() -> crate::Cause {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n}"),
    ];
    let named = |n: usize| {
        let short = |named: Named| format!("{} {}", named.line, &named.file[ENGINE.len()..]);
        named_files(&files[n], &files).into_iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(named(0), ["2 words/cause.rs"]);
    assert!(named(1).is_empty() && named(2).is_empty());
    assert_eq!(named(3), ["3 rules/wait.rs", "5 rules/cork.rs"]);
    assert_eq!(named(4), ["1 words/cause.rs", "1 rules/wait.rs", "1 rules/wait.rs"]);
    assert_eq!(named(5), ["1 lib.rs"]);
    let uses = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
    for (from, to) in uses {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    assert_eq!(circles(&graph), [["b", "c", "b"]]);
    let code = "impl A {\n    fn a() -> u8 {\n        // why\n\n        1\n    }\n\n    const fn b() {}\n}\nfn c(\n    d: u8,\n) {\n}";
    assert_eq!(
        times(
            "const A: Duration = Duration::from_millis(1_500);\npub(crate) const B: Duration = Duration::from_secs(1);\n    const C: Duration = Duration::from_secs(2);"
        ),
        [("A".to_owned(), "1,500 ms".to_owned()), ("B".to_owned(), "1 s".to_owned())]
    );
    assert_eq!(functions(code), [(2, "a", 3), (8, "b", 1), (10, "c", 4)]);
}

/// The named times of a file, as `8 ms`.
fn times(text: &str) -> Vec<(String, String)> {
    let units = [("nanos", "ns"), ("micros", "µs"), ("millis", "ms"), ("secs", "s")];
    let time = |line: &str| {
        let (unit, rest) = line.split_once('(')?;
        let unit = units.iter().find(|(name, _)| *name == unit)?.1;
        let number: u64 = rest.strip_suffix(");")?.replace('_', "").parse().ok()?;
        let thousands = if number < 1_000 { String::new() } else { format!("{},", number / 1_000) };
        let digits = if number < 1_000 { format!("{number}") } else { format!("{:03}", number % 1_000) };
        Some(format!("{thousands}{digits} {unit}"))
    };
    let named = |line: &str| {
        let (_, rest) = line.split_once("const ")?;
        let (name, value) = rest.split_once(": Duration = Duration::from_")?;
        Some((name.to_owned(), time(value)?))
    };
    text.lines().filter(|line| !line.starts_with(' ')).filter_map(named).collect()
}

/// A room's position in the drawing: the lowest rooms come first in `ROOMS`.
fn place(room: &str) -> usize {
    ROOMS.iter().position(|known| *known == room).unwrap_or_default()
}

/// The rooms as a Mermaid graph. All of them use `words`, so that is not drawn.
fn picture(uses: &BTreeSet<(usize, usize)>) -> String {
    let drawn = |(from, to): &(usize, usize)| {
        let (from, to) = (ROOMS[*from], ROOMS[*to]);
        let is_drawn = from != "lib" && (to != "words" || from == "conduct");
        is_drawn.then(|| format!("    {from} --> {to}\n"))
    };
    std::iter::once("flowchart TD\n".to_owned()).chain(uses.iter().rev().filter_map(drawn)).collect()
}

/// Each function, where it begins, and its lines of code: rustfmt closes it at the depth at which it began.
fn functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((before, rest)) = line.split_once("fn ") else { continue };
        let words = before.trim_start().split(' ').filter(|word| !word.is_empty());
        if words.into_iter().any(|word| !["pub", "pub(crate)", "pub(super)", "const"].contains(&word)) {
            continue;
        }
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let depth = &line[..line.len() - line.trim_start().len()];
        let closes = |line: &&str| **line == format!("{depth}}}");
        let one_line = line.trim_end().ends_with(['}', ';']);
        let len = if one_line { 0 } else { lines[at..].iter().position(closes).unwrap_or(0) };
        let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        functions.push((at + 1, name, lines[at..=at + len].iter().filter(is_code).count()));
    }
    functions
}

/// Where the engine's source is.
const ENGINE: &str = "crates/core/src/";

fn engine_files() -> Vec<File> {
    rust_files().into_iter().filter(|file| file.name.starts_with(ENGINE)).collect()
}

/// `rules` of `crates/core/src/rules/nagle.rs`, `lib` of `crates/core/src/lib.rs`.
fn room_of(name: &str) -> &str {
    let inside = name.strip_prefix(ENGINE).unwrap_or(name);
    inside.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// `["rules", "nagle"]` of `crates/core/src/rules/nagle.rs`, `["rules"]` of its `mod.rs`, nothing of `lib.rs`.
fn module_of(name: &str) -> Vec<&str> {
    let inside = name.strip_prefix(ENGINE).unwrap_or(name).trim_end_matches(".rs");
    let mut module: Vec<&str> = inside.split('/').collect();
    if module.last().is_some_and(|last| *last == "mod" || *last == "lib") {
        module.pop();
    }
    module
}

/// Another file of the crate, named by a path.
struct Named {
    line: usize,
    path: String,
    file: String,
}

/// The other files that a file names outside comments and tests, by paths from the crate, from its own place,
/// or to its own modules.
fn named_files(file: &File, files: &[File]) -> Vec<Named> {
    let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = code_lines(code).map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    let modules: BTreeMap<Vec<&str>, &str> =
        files.iter().map(|file| (module_of(&file.name), file.name.as_str())).collect();
    let here = module_of(&file.name);
    let mut named = Vec::new();
    for (line, path) in paths(&code) {
        let mut parts: Vec<&str> = path.split("::").collect();
        let mut base = here.clone();
        match parts[0] {
            "crate" => base.clear(),
            "super" | "self" => {}
            child if modules.contains_key(&[&here[..], &[child]].concat()) => parts.insert(0, "self"),
            _ => continue,
        }
        for part in parts {
            match part {
                "crate" | "self" => {}
                "super" => drop(base.pop()),
                part => base.push(part),
            }
        }
        // The longest beginning of the path that is a module.
        let module = (0..=base.len()).rev().find_map(|len| modules.get(&base[..len]));
        if let Some(other) = module.filter(|other| **other != file.name) {
            named.push(Named { line, path: path.clone(), file: (*other).to_owned() });
        }
    }
    named
}

/// Every path of two or more parts, and each of a `use`, with its line.
fn paths(code: &str) -> Vec<(usize, String)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let line_of = |at: usize| code[..at].matches('\n').count() + 1;
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find(is_name).map(|found| at + found) {
        let is_part = |c: char| is_name(c) || c == ':';
        let mut end = code[start..].find(|c| !is_part(c)).map_or(code.len(), |len| start + len);
        let word = &code[start..end];
        if word == "use" {
            let tree_end = code[end..].find(';').map_or(code.len(), |len| end + len);
            let tree: String = code[end..tree_end].split_whitespace().collect();
            paths.extend(leaves(&tree).into_iter().map(|path| (line_of(start), path)));
            end = tree_end;
        } else if let Some((_, rest)) = word.split_once("::")
            && !rest.is_empty()
        {
            paths.push((line_of(start), word.trim_end_matches(':').to_owned()));
        }
        at = end;
    }
    paths
}

/// `a::b` and `a::c::d` of `a::{b,c::{d}}`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((before, inside)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[from..]);
    let full =
        |part: &str| leaves(part).into_iter().map(|leaf| format!("{before}{leaf}")).collect::<Vec<_>>();
    parts.into_iter().filter(|part| !part.is_empty()).flat_map(full).collect()
}

/// Circles in the uses, each from a file back to itself.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    fn walk(
        name: &str,
        uses: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        circles: &mut Vec<Vec<String>>,
    ) {
        if let Some(from) = way.iter().position(|before| before == name) {
            circles.push(way[from..].iter().cloned().chain([name.to_owned()]).collect());
            return;
        }
        if done.contains(name) {
            return;
        }
        way.push(name.to_owned());
        for used in uses.get(name).into_iter().flatten() {
            walk(used, uses, way, done, circles);
        }
        way.pop();
        done.insert(name.to_owned());
    }
    let (mut done, mut circles) = (BTreeSet::new(), Vec::new());
    for name in uses.keys() {
        walk(name, uses, &mut Vec::new(), &mut done, &mut circles);
    }
    circles
}
