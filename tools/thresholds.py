#!/usr/bin/env python3
"""How far may a threshold of the engine be moved before a recording or a packet log comes out differently?

tools/thresholds.py [--table] [--factors 0.5,2,...] [NAME ...]

Lists every named threshold of the rules and of what bills by them in docs/thresholds.md: its value, what it is, where it
comes from. With names (or `all`) it moves each of them up and down, one at a time, in a copy of this tree, until a packet
log of the engine's tests fails or an exchange of a recording in corpus/ is spent on something else than before, and notes
the range. That takes a build and a run of the tests for each step. --table only writes the list anew.
"""

import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WORK = os.path.join(ROOT, "target", "thresholds")
TREE = os.path.join(WORK, "tree")
PAGE = os.path.join(ROOT, "docs", "thresholds.md")
ENGINE = "crates/core/src"
ROOMS = ["words/limits.rs", "rules", "bill", "connection"]
UNITS = {"nanos": 1, "micros": 1_000, "millis": 1_000_000, "secs": 1_000_000_000}
# `const NAME: TYPE = VALUE;` with its comment before it. Bounds of memory (usize) are no thresholds.
CONST = re.compile(r"((?:^///[^\n]*\n)*)^(?:pub(?:\(\w+\))? )?const ([A-Z_]+): (Duration|i64|u64|u32|u16|u8) = ([^;{}|\[\]]+);", re.M)
TIME = re.compile(r"Duration::from_(\w+)\(([\d_]+)\)$")
FACTORS = "0.8,0.5,0.25,1.25,2,4"
# Numbers that a protocol's or this program's own format fixes.
FIXED = {"SETTINGS_ACK", "WINDOW_UPDATE", "PING", "FRAME_LENGTHS", "COARSE_NS", "NO_DETAIL", "UNNUMBERED", "UNLISTED", "PACKET"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="write the list anew, measure nothing")
    parser.add_argument("--factors", default=FACTORS, help="by how much, away from 1 (%(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = thresholds(ROOT)
    ranges = measured()
    if options.names and not options.table:
        factors = [float(factor) for factor in options.factors.split(",")]
        wanted = [at for at in known if options.names == ["all"] or at["name"] in options.names]
        if len(wanted) < len(set(options.names)) and options.names != ["all"]:
            sys.exit("no such threshold: " + " ".join(set(options.names) - {at["name"] for at in wanted}))
        prepare()
        before = verdict()
        if before is None:
            sys.exit("the tests fail without any change")
        for at in wanted:
            ranges[key(at)] = measure(at, factors, before)
            print(f"{at['name']} ({at['file']}): {ranges[key(at)]}", flush=True)
            write(known, ranges)
    write(known, ranges)


def thresholds(root):
    """Every named threshold, in the order of the files."""
    found = []
    for room in ROOMS:
        path = os.path.join(root, ENGINE, room)
        files = [path] if path.endswith(".rs") else sorted(walk(path))
        for file in files:
            text = open(file, encoding="utf-8").read()
            for doc, name, kind, value in CONST.findall(text):
                if name in FIXED or "bit()" in value or "usize" in kind or not re.search(r"\d", value):
                    continue
                doc = " ".join(line[3:].strip() for line in doc.splitlines())
                relative = os.path.relpath(file, os.path.join(root, ENGINE)).replace(os.sep, "/")
                found.append({"file": relative, "name": name, "kind": kind, "value": value.strip(), "doc": doc})
    return found


def walk(folder):
    for path, _, names in os.walk(folder):
        yield from (os.path.join(path, name) for name in names if name.endswith(".rs"))


def key(at):
    return f"{at['file']} {at['name']}"


def shown(at):
    """`8 ms` of `Duration::from_millis(8)`."""
    match = TIME.match(at["value"])
    if not match:
        return at["value"].replace("_", ",")
    units = {"nanos": "ns", "micros": "µs", "millis": "ms", "secs": "s"}
    return f"{int(match[2].replace('_', '')):,} {units[match[1]]}"


def moved(at, factor):
    """The value times a factor, as source, or nothing where that is the same number."""
    match = TIME.match(at["value"])
    if match:
        return f"Duration::from_nanos({round(int(match[2].replace('_', '')) * UNITS[match[1]] * factor)})"
    if not re.fullmatch(r"[\d_]+", at["value"]):
        return None
    before = int(at["value"].replace("_", ""))
    now = max(1, round(before * factor))
    return str(now) if now != before else None


def prepare():
    """A copy of the sources, and the recordings without their compression."""
    os.makedirs(WORK, exist_ok=True)
    files = subprocess.check_output(["git", "-C", ROOT, "ls-files", "Cargo.*", "crates", "rustfmt.toml", "clippy.toml"], text=True).split()
    for file in files:
        copy(os.path.join(ROOT, file), os.path.join(TREE, file))
    for capture in walk_captures(os.path.join(ROOT, "corpus")):
        plain = plain_name(capture)
        if not os.path.exists(plain):
            subprocess.run(["zstd", "-q", "-d", "-f", capture, "-o", plain], check=True)


def walk_captures(folder):
    for path, _, names in sorted(os.walk(folder)):
        yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(".zst"))


def plain_name(capture):
    name = os.path.relpath(capture, os.path.join(ROOT, "corpus")).replace(os.sep, "-")
    return os.path.join(WORK, name.removesuffix(".zst"))


def copy(source, target):
    """Only what differs, so that nothing is built twice."""
    if not os.path.isfile(source):
        return
    data = open(source, "rb").read()
    if os.path.exists(target) and open(target, "rb").read() == data:
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(data)


def measure(at, factors, before):
    """How far it may be moved either way, as far as was tried."""
    ends = []
    for direction in ([f for f in factors if f < 1], [f for f in factors if f > 1]):
        good, stopped = 1.0, None
        for factor in sorted(direction, key=lambda f: abs(f - 1)):
            value = moved(at, factor)
            if value is None:
                continue
            now = with_value(at, value)
            if now != before:
                stopped = factor
                break
            good = factor
        ends.append((good, stopped))
    (low, below), (high, above) = ends
    said = [f"{low:g}" if below is None else f"{low:g} (not {below:g})"]
    said.append(f"{high:g}" if above is None else f"{high:g} (not {above:g})")
    return " to ".join(said)


def with_value(at, value):
    path = os.path.join(TREE, ENGINE, at["file"])
    text = open(path, encoding="utf-8").read()
    declared = f"const {at['name']}: {at['kind']} = "
    changed = text.replace(f"{declared}{at['value']};", f"{declared}{value};")
    assert changed != text, at
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        return verdict()
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def verdict():
    """What the recordings' exchanges were spent on, or nothing where a packet log fails."""
    environment = {**os.environ, "CARGO_TARGET_DIR": os.path.join(WORK, "target"), "RUSTFLAGS": "--cap-lints allow"}
    cargo = ["cargo", "test", "-q", "--locked", "--profile", "mutants", "-p", "tcpwhy-core", "--test", "engine", "--bench", "analysis"]
    built = subprocess.run([*cargo, "--no-run", "--message-format=json"], cwd=TREE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    programs = {}
    for line in built.stdout.splitlines():
        artifact = json.loads(line)
        if artifact.get("executable"):
            programs[artifact["target"]["name"]] = artifact["executable"]
    # The properties compare two paths of one engine: a threshold moves in both.
    folder = os.path.join(TREE, "crates", "core")
    tests = subprocess.run([programs["engine"], "-q", "--skip", "properties"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if tests.returncode:
        return None
    captures = [plain_name(capture) for capture in walk_captures(os.path.join(ROOT, "corpus"))]
    return subprocess.check_output([programs["analysis"], "largest", *captures], text=True)


def measured():
    """The ranges that the page has."""
    ranges = {}
    if os.path.exists(PAGE):
        for line in open(PAGE, encoding="utf-8"):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if len(cells) == 5 and cells[0].startswith("`"):
                ranges[f"{cells[1].strip('`')} {cells[0].strip('`')}"] = cells[3]
    return {of: said for of, said in ranges.items() if said != "-"}


def write(known, ranges):
    rows = ["| Threshold | Where | Value | May be times | What it is, and where it comes from |", "|---|---|---|---|---|"]
    for at in known:
        doc = re.sub(r"(?<=\d) us\b", " µs", at["doc"].replace("|", "/"))
        rows.append(f"| `{at['name']}` | `{at['file']}` | {shown(at)} | {ranges.get(key(at), '-')} | {doc} |")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(HEAD + "\n".join(rows) + "\n")


HEAD = """# Thresholds

Every named threshold of the engine's rules and of what bills by them (`crates/core/src/words/limits.rs`, `rules`, `bill`, `connection`),
written by `make thresholds` from the sources; a test looks that none is missing and that no value has changed.

`May be times` says how far one alone can be moved with nothing changed: all packet logs of the engine's tests pass, and every
exchange of every recording in `corpus/` is spent most on the same cause at the same side. `0.5 to 2 (not 4)` was right at half and at
twice its value, and wrong at four times; further than 0.25 and 4 is not tried. `-` is not measured: `make thresholds THRESHOLDS=NAME` does.
A wide range says that no recording needs the value to be exact, not that any other would be as right elsewhere. Without a name are
only halves (most of a wait, of a flight), and how many ticks or timers something lasts.

"""

if __name__ == "__main__":
    main()
