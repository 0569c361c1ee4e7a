#!/usr/bin/env python3
"""Does this tree draw up the same bills as the version before it, byte for byte?

tools/golden.py [--base REVISION] [--binary FILE] [CAPTURE OR DIRECTORY ...]

Builds the revision (1b09470 unless another is given) beside this tree, reads every capture of the corpus, captures of
every generated shape, and whatever else is given, with both, and compares: each bill, side, confidence, packet and
detail. Each capture is read on one thread, on two, and with its first connection packet by packet. Sentences and the
words of remedies are left out (WORDS): they may change by themselves. What the revision said is kept in target/golden.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
KEPT = os.path.join(ROOT, "target", "golden")
WAYS = [["--threads", "1"], ["--threads", "2"], ["--threads", "1", "--connection", "1", "--verbose"]]
WORDS = {"tcpwhy", "answer", "what", "how", "why", "path"}
# Points in time as text stand beside the numbers since then.
TIME = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d")
SHAPES = {"rpc": 300_000, "bulk": 200_000, "bulk-full": 100_000, "churn": 200_000} | dict.fromkeys(
    ["syn-flood", "servers", "open", "flights", "one-byte", "gaps", "sack", "windows", "clock", "vlan", "extensions"], 40_000
)
ENDINGS = (".pcap", ".pcapng", ".cap", ".dump", ".dmp", ".pcap.gz", ".pcapng.zst", ".dump.gz", ".dmp.gz", ".pcap.zst")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="1b09470", metavar="REVISION")
    parser.add_argument("--binary", metavar="FILE", help="compare this one instead of building the tree")
    parser.add_argument("captures", nargs="*", metavar="CAPTURE OR DIRECTORY")
    options = parser.parse_args()
    os.makedirs(KEPT, exist_ok=True)
    base = build_base(options.base)
    binary = options.binary or build(ROOT)
    captures = sorted(set(find([os.path.join(ROOT, "corpus"), *options.captures]))) + generated(base)
    known_path = os.path.join(KEPT, f"{options.base}.json")
    known = json.load(open(known_path, encoding="utf-8")) if os.path.exists(known_path) else {}
    different, compared = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for key, expected, actual in pool.map(lambda job: compare(job, base, binary, known), jobs(captures)):
            known[key] = expected
            compared += 1
            if expected != actual:
                different.append(key)
                print(f"different: {key}", flush=True)
    with open(known_path, "w", encoding="utf-8") as file:
        json.dump(known, file)
    print(f"{len(captures)} captures, {compared} readings, {len(different)} different from {options.base}")
    sys.exit(bool(different))


def jobs(captures):
    return [(capture, way) for capture in captures for way in WAYS]


def compare(job, base, binary, known):
    capture, way = job
    key = f"{capture} {os.path.getsize(capture)} {' '.join(way)}"
    return key, known.get(key) or said(base, capture, way), said(binary, capture, way)


def said(binary, capture, way):
    """A digest of what a binary says of a capture, and its exit code."""
    command = [binary, "read", "--json", *way, capture]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        text = json.dumps(without_words(json.loads(result.stdout)))
    except ValueError:
        text = result.stdout.decode(errors="replace")
    return f"{result.returncode} {hashlib.sha256(text.encode()).hexdigest()}"


def without_words(value):
    if isinstance(value, dict):
        return {name: without_words(of) for name, of in value.items() if not is_word(name, of)}
    if isinstance(value, list):
        return [without_words(of) for of in value]
    return value


def is_word(name, value):
    return name in WORDS or isinstance(value, str) and TIME.match(value)


def find(places):
    for place in places:
        if os.path.isfile(place):
            yield place
        for folder, _, names in os.walk(place):
            yield from (os.path.join(folder, name) for name in names if name.endswith(ENDINGS))


def generated(base):
    """Captures of every shape, made by the base's generator: the same for both."""
    captures = []
    for shape, packets in SHAPES.items():
        capture = os.path.join(KEPT, f"{shape}-{packets}.pcap")
        if not os.path.exists(capture):
            generator = os.path.join(os.path.dirname(base), "tcpwhy-gen")
            subprocess.run([generator, shape, "--packets", str(packets), capture], check=True, stderr=subprocess.DEVNULL)
        captures.append(capture)
    return captures


def build_base(revision):
    tree = os.path.join(KEPT, revision)
    binary = os.path.join(tree, "target", "release", "tcpwhy")
    if not os.path.exists(binary):
        if not os.path.exists(tree):
            subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, revision], check=True)
        build(tree)
    return binary


def build(tree):
    command = ["cargo", "build", "--locked", "--release", "-p", "tcpwhy", "-p", "tcpwhy-gen"]
    subprocess.run(command, cwd=tree, check=True)
    return os.path.join(tree, "target", "release", "tcpwhy")


if __name__ == "__main__":
    main()
