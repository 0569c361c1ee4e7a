#!/usr/bin/env python3
"""What does tcpwhy say today of lines that were once judged by hand?

tools/judged.py DIRECTORY [--program FILE] [--all]

tools/judged.jsonl has `likely` and `certain` lines over other people's captures, drawn by cause, each with its verdict (right,
too-certain, wrong) and what the packets show. DIRECTORY holds the captures, under whatever names: they are known by their SHA-256
(`tools/public-captures.sh DIRECTORY LIST` fetches those of a list, tools/public-captures-41.txt and those before it). For each cause: how many of the lines are still
likely or certain, and how many of these are right; --all lists those that are not.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
RANK = {"otherwise": 0, "possible": 0, "likely": 1, "certain": 2}


def captures(directory):
    for where, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                yield hashlib.file_digest(file, "sha256").hexdigest(), path


def report(program, path):
    return json.loads(subprocess.run([program, "read", "--json", path], capture_output=True).stdout or "{}")


def said(document, judged):
    """The confidence with which a line is said today, of the same time within 2 ms or a tenth."""
    for connection in document.get("connections", []):
        if [connection["client"], connection["server"]] != [judged["client"], judged["server"]]:
            continue
        for exchange in connection["exchanges"]:
            begins, ends = exchange["packets"]
            if begins > judged["packets"][1] or ends < judged["packets"][0]:
                continue
            for line in exchange["bill"]:
                same = [line["cause"], line["side"]] == [judged["cause"], judged["side"]]
                if same and abs(line["ns"] / 1e6 - judged["ms"]) <= max(2, judged["ms"] / 10):
                    return line.get("confidence", "certain")
    return "otherwise"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--program", default=f"{ROOT}/target/release/tcpwhy")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    with open(f"{ROOT}/tools/judged.jsonl") as file:
        lines = [json.loads(line) for line in file]
    wanted = {line["sha256"] for line in lines}
    found = {digest: path for digest, path in captures(arguments.directory) if digest in wanted}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        reports = dict(zip(found, pool.map(lambda path: report(arguments.program, path), found.values())))
    counts, before = collections.defaultdict(collections.Counter), collections.Counter()
    for line in lines:
        before[line["verdict"]] += 1
        if line["sha256"] not in reports:
            counts[line["cause"]]["not here"] += 1
            continue
        now = said(reports[line["sha256"]], line)
        verdict = line["verdict"] if RANK[now] else now
        # A line that was too certain is right once it claims less.
        verdict = "right" if verdict == "too-certain" and RANK[now] < RANK[line["confidence"]] else verdict
        counts[line["cause"]][verdict] += 1
        if arguments.all and verdict in ("wrong", "too-certain"):
            print(f"{verdict}: {line['path']} {line['packets']} {line['cause']} {line['ms']} ms, {now}: {line['truth']}")
    names = ["right", "too-certain", "wrong", "possible", "otherwise", "not here"]
    total = sum(counts.values(), collections.Counter())
    print(f"{'when judged':22}" + "".join(f"{before[name]:>12}" for name in names[:3]))
    print(f"{'today':22}" + "".join(f"{name:>12}" for name in names))
    for cause, count in [*sorted(counts.items()), ("all", total)]:
        print(f"{cause:22}" + "".join(f"{count[name]:>12}" for name in names))


if __name__ == "__main__":
    main()
