#!/usr/bin/env python3
"""Which packet log fails, and which bills change, where a rule is taken out of the engine?

tools/rules.py [--check] [RULE ...]

Builds a copy of this tree that has the switches of tools/rules.txt in it, throws them one at a time, runs the tests of the
crate that it is in, and bills all recordings in corpus/. Writes docs/rules.md; with rules named (`R3 S1`, or words of what
comes of a switch), only their rows anew. --check only looks whether each switch finds its text, and no other takes it. Exits
with an error where one does not, or where a switch changes no test.
"""

import argparse
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import thresholds  # noqa: E402
from thresholds import ROOT, TREE, WORK  # noqa: E402

LIST = os.path.join(ROOT, "tools", "rules.txt")
PAGE = os.path.join(ROOT, "docs", "rules.md")
# What is built and run for a switch in a crate. The properties compare two paths of one engine, and a rule is taken out of both.
TESTS = {
    "core": ["-p", "tcpwhy-core", "--test", "engine", "--bench", "analysis"],
    "tcpwhy": ["-p", "tcpwhy", "--test", "both_ends", "--test", "on_the_way"],
}
ROOTS = {"core": ["crates/core/src/lib.rs"], "tcpwhy": ["crates/tcpwhy/src/lib.rs", "crates/tcpwhy/src/main.rs"]}
SWITCH = """
pub(crate) fn off(number: u32) -> bool {
    static OFF: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *OFF.get_or_init(|| std::env::var("RULE_OFF").ok().and_then(|off| off.parse().ok()).unwrap_or(0)) == number
}
"""
SHOWN = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only look whether each switch finds its text")
    parser.add_argument("rules", nargs="*", metavar="RULE")
    options = parser.parse_args()
    known = switches()
    lost = unplaced(known)
    if lost:
        sys.exit("no such text, more than once, or another switch takes it:\n  " + "\n  ".join(lost))
    if options.check:
        return
    rows = measured()
    wanted = [at for at in known if not options.rules or any(of == at["rule"] or " " in of and of in at["off"] for of in options.rules)]
    prepare(known)
    for crate in TESTS:
        mine = [at for at in wanted if crate_of(at) == crate]
        if not mine:
            continue
        programs = build(crate)
        failed, before = outcome(crate, programs, 0)
        if failed:
            sys.exit("these fail without any change: " + ", ".join(failed))
        for at in mine:
            rows[key(at)] = row(at, before, outcome(crate, programs, at["number"]))
            print(rows[key(at)], flush=True)
            write(known, rows)
    write(known, rows)
    silent = [key(at) for at in wanted if " | none | " in rows[key(at)]]
    if silent:
        sys.exit("no test fails without:\n  " + "\n  ".join(silent))


def switches():
    """Every switch of the list: its rule, what that says, its file, what comes of it, and the text before and behind."""
    known, rule, said = [], "", ""
    for line in open(LIST, encoding="utf-8"):
        line = line.rstrip("\n")
        if match := re.fullmatch(r"rule (\w+): (.*)", line):
            rule, said = match.groups()
        elif match := re.fullmatch(r"off (\S+): (.*)", line):
            known.append({"rule": rule, "said": said, "file": match[1], "off": match[2], "-": "", "+": ""})
        elif line[:1] in ("-", "+"):
            known[-1][line[0]] += line[1:] + "\n"
    for number, at in enumerate(known, 1):
        at["number"] = number
        at["+"] = re.sub(r"\bOFF\b", f"crate::off({number})", at["+"])
    return known


def unplaced(known):
    """The switches that do not find their text once all those before them in the list are in their places."""
    texts, lost = {}, []
    for at in known:
        path = os.path.join(ROOT, at["file"])
        if path not in texts:
            with open(path, encoding="utf-8") as file:
                texts[path] = file.read()
        if at["-"] and texts[path].count(at["-"]) == 1:
            texts[path] = texts[path].replace(at["-"], at["+"])
        else:
            lost.append(f"{at['rule']}: {at['file']}: {at['off']}")
    return lost


def crate_of(at):
    return at["file"].split("/")[1]


def key(at):
    return f"{at['rule']} {at['off']}"


def prepare(known):
    """A copy of the tree with a place for each switch, all of them out; RULE_OFF throws the one of that number."""
    thresholds.prepare()
    for folder in ("corpus", "docs", "scenarios"):  # read by tests, and built in
        link = os.path.join(TREE, folder)
        if not os.path.islink(link):
            os.symlink(os.path.join(ROOT, folder), link)
    texts = {}
    for at in known:
        path = os.path.join(TREE, at["file"])
        if path not in texts:
            with open(path, encoding="utf-8") as file:
                texts[path] = file.read()
        assert texts[path].count(at["-"]) == 1, at
        texts[path] = texts[path].replace(at["-"], at["+"])
    for root in [root for crate in TESTS for root in ROOTS[crate]]:
        path = os.path.join(TREE, root)
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read() + SWITCH
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def environment(number):
    return {**os.environ, "CARGO_TARGET_DIR": os.path.join(WORK, "target"), "RUSTFLAGS": "--cap-lints allow", "PROPTEST_CASES": "16", "RULE_OFF": str(number)}


def build(crate):
    cargo = ["cargo", "test", "-q", "--locked", "--profile", "mutants", *TESTS[crate]]
    built = subprocess.run([*cargo, "--no-run", "--message-format=json"], cwd=TREE, env=environment(0), stdout=subprocess.PIPE, text=True, check=True)
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    return [(at["target"]["name"], at["executable"]) for at in artifacts if at.get("executable") and "bin" not in at["target"]["kind"]]


def outcome(crate, programs, number):
    """The tests that fail with a switch thrown, and the bill of every exchange of the recordings."""
    failed, bills = [], {}
    for name, program in programs:
        if name == "analysis":
            captures = [thresholds.plain_name(capture) for capture in thresholds.walk_captures(os.path.join(ROOT, "corpus"))]
            for bill in subprocess.check_output([program, "bills", *captures], env=environment(number), text=True).splitlines():
                exchange, *lines = bill.split("\t")
                bills[exchange] = lines
            continue
        folder = os.path.join(TREE, "crates", crate)
        ran = subprocess.run([program, "--skip", "properties"], cwd=folder, env=environment(number), capture_output=True, text=True, check=False)
        failed += re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", ran.stdout, re.M)
    return sorted(failed), bills


def row(at, before, now):
    failed, after = now
    names = [f"`{name}`" for name in failed[:SHOWN]]
    tests = f"{len(failed)}: {', '.join(names)}{', ...' if len(failed) > SHOWN else ''}" if failed else "none"
    if not before:
        return f"| {at['rule']} | {at['off']} | {tests} | - | - |"
    exchanges = before.keys() | after.keys()
    changed = [name for name in exchanges if before.get(name) != after.get(name)]
    # Of these: spent most on something else.
    most = [name for name in changed if largest(before.get(name)) != largest(after.get(name))]
    return f"| {at['rule']} | {at['off']} | {tests} | {len(changed)} | {len(most)} |"


def largest(lines):
    return lines[0].split()[:2] if lines else None


def measured():
    """The rows that the page has."""
    rows = {}
    if os.path.exists(PAGE):
        for line in open(PAGE, encoding="utf-8"):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if len(cells) == 5 and re.fullmatch(r"[A-Z]\d+", cells[0]):
                rows[f"{cells[0]} {cells[1]}"] = line.rstrip("\n")
    return rows


def write(known, rows):
    said = {at["rule"]: at["said"] for at in known}
    text = HEAD + "".join(f"- **{rule}** {what}.\n" for rule, what in said.items())
    text += "\n| Rule | Without it | Tests that fail | Bills that change | another cause most |\n|---|---|---|---:|---:|\n"
    text += "".join(rows.get(key(at), f"| {at['rule']} | {at['off']} | not measured | - | - |") + "\n" for at in known)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


HEAD = """# Rules taken out

What everyday traffic needs beyond the mechanisms themselves: rules about the path (R), about senders (S) and about captures (C). `make rules`
takes each out of the engine, by one switch of `tools/rules.txt` at a time, runs the engine's tests and bills all recordings in `corpus/` again
(`make rules RULES="R3 S1"` for some). Each ought to make a packet log fail; where none does, it says `none`. The recordings are mostly of the laboratory, which has few of
these cases: a rule that changes none of their bills was found on others' traffic, and its packet log preserves that case.

"""

if __name__ == "__main__":
    main()
