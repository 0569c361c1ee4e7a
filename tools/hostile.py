#!/usr/bin/env python3
"""What do captures that were made to fall over cost? Writes the table of docs/robustness.md.

    tools/hostile.py [--packets N] [--shapes a,b] [--threads 1,2,3,8] [--write]

Each shape of tcpwhy-gen is piped into `tcpwhy read --json -` with each number of threads, read as a file, and, for those that take most,
as twenty compressed files at once. Memory is wait4's ru_maxrss. The exponent compares processor time with that of half as many
packets. Fails where one takes more than --memory says, panics, has a bill that does not sum up, or differs in a byte.
"""
import argparse
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RELEASE = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")
MEMORY_MB = 512
NOTHING = 5  # the exit code where there is no TCP in it
BEGIN, END = "<!-- hostile: tools/hostile.py --write -->\n", "<!-- hostile: end -->\n"


def shapes():
    """Names and what each aims at, as tcpwhy-gen has them."""
    source = open(os.path.join(ROOT, "crates/gen/src/hostile.rs")).read()
    found = re.findall(r'((?:    /// .*\n)+)    \w+ = "([a-z0-9-]+)",', source)
    return {name: " ".join(re.findall(r"/// (.*)", doc)).split(": ")[0] for doc, name in found}


# Waits for a program and says what it took. A process of its own does that: a peak counts from that of whoever starts the program.
LAUNCHER = """
import os, subprocess, sys
program = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(program.pid, 0)
os.write(int(sys.argv[1]), f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss} {usage.ru_utime + usage.ru_stime}".encode())
"""


class Run:
    """A run that has ended: what it took, and what it wrote."""

    def __init__(self, arguments, shape=None, packets=0):
        generator = None
        if shape:
            command = [os.path.join(RELEASE, "tcpwhy-gen"), shape, "--packets", str(packets)]
            generator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as took:
            to = took.fileno()
            reader = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(to), os.path.join(RELEASE, "tcpwhy"), "read", "--json", "--memory", f"{MEMORY_MB}MB", *arguments],
                stdin=generator.stdout if generator else subprocess.DEVNULL,
                stdout=text,
                stderr=said,
                pass_fds=[to],
            )
            if generator:
                generator.stdout.close()
            reader.wait()
            if generator:
                generator.wait()
            for file in (said, text, took):
                file.seek(0)
            self.said = said.read().decode(errors="replace")
            self.digest = hashlib.file_digest(text, "sha256").digest()
            text.seek(0)
            self.text = text.read(1 << 20).decode(errors="replace")
            code, kilobytes, seconds = took.read().split()
        self.code, self.mb, self.seconds = int(code), int(kilobytes) * 1024 / 1e6, float(seconds)

    def wrong(self):
        """What must not be, in words."""
        if self.code not in (0, NOTHING):
            return f"exit code {self.code}: {self.said[-300:]}"
        if "panicked" in self.said:
            return "panics"
        if self.mb > MEMORY_MB:
            return f"{self.mb:.0f} MB"
        if self.text:
            # Both stand before the lists.
            elapsed = int(re.search(r'\n  "elapsed_ns": (\d+)', self.text)[1])
            bill = json.JSONDecoder().raw_decode(self.text.split('\n  "bill": ', 1)[1])[0]
            billed = sum(line["ns"] for line in bill)
            # Sums saturate at 292 years.
            if billed != elapsed and elapsed < (1 << 63) - 1:
                return f"bills {billed} of {elapsed} ns"
        return ""


def measured(name, packets, threads):
    """A line of the table, and what was wrong."""
    runs = {count: Run(["--threads", str(count), "-"], name, packets) for count in threads}
    half = Run(["--threads", "1", "-"], name, packets // 2)
    wrong = [f"{name}, {count} threads: {run.wrong()}" for count, run in runs.items() if run.wrong()]
    same = len({run.digest for run in runs.values()}) == 1
    if not same:
        wrong.append(f"{name}: bytes differ")
    first = runs[threads[0]]
    exponent = math.log2(max(first.seconds, 0.01) / max(half.seconds, 0.01))
    most = max(run.mb for run in runs.values())
    slowest = max(run.seconds for run in runs.values())
    shown = " | ".join(f"{run.mb:.0f}" for run in runs.values())
    line = f"{shown} | {slowest:.1f} | {exponent:.1f} | {'yes' if same else 'NO'}"
    return line, most, wrong


def as_files(name, packets, threads):
    """The same as a file, and twenty times compressed, at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pcap")
        subprocess.run([os.path.join(RELEASE, "tcpwhy-gen"), name, "--packets", str(packets), path], check=True)
        plain = Run(["--threads", str(threads), path])
        packed = os.path.join(folder, "x.pcap.zst")
        subprocess.run(["zstd", "-q", "--rm", path, "-o", packed], check=True)
        links = [os.path.join(folder, f"{i}.pcap.zst") for i in range(20)]
        for link in links:
            os.link(packed, link)
        many = Run(["--threads", str(threads), *links])
        wrong = [f"{name}, {what}: {run.wrong()}" for what, run in (("file", plain), ("20 files", many)) if run.wrong()]
        return plain.mb, many.mb, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=10_000_000)
    parser.add_argument("--shapes")
    parser.add_argument("--threads", default="1,2,3,8")
    parser.add_argument("--files", type=int, default=6, help="so many of the largest are read as files too")
    parser.add_argument("--write", action="store_true", help="the table in docs/robustness.md")
    args = parser.parse_args()
    threads = [int(count) for count in args.threads.split(",")]
    known = shapes()
    names = args.shapes.split(",") if args.shapes else list(known)
    lines = [f"{args.packets:,} packets each; MB by wait4 and seconds of processor time, on {os.cpu_count()} cores.", ""]
    columns = " | ".join(f"{count} threads" if count > 1 else "1 thread" for count in threads)
    lines += [f"| shape | what | {columns} | seconds | exponent | same bytes |", "|---|---|" + "---:|" * (len(threads) + 2) + "---|"]
    wrong, largest = [], []
    for name in names:
        line, most, more = measured(name, args.packets, threads)
        lines.append(f"| `{name}` | {known[name]} | {line} |")
        print(lines[-1], *more, sep="\n", flush=True)
        wrong += more
        largest.append((most, name))
    lines += ["", "The largest at 8 threads as a file, and as twenty files of zstd at the same time:", ""]
    lines += ["| shape | file, MB | twenty files, MB |", "|---|---:|---:|"]
    for _, name in sorted(largest, reverse=True)[: args.files]:
        plain, many, more = as_files(name, args.packets // 10, 8)
        lines.append(f"| `{name}` | {plain:.0f} | {many:.0f} |")
        print(lines[-1], *more, sep="\n", flush=True)
        wrong += more
    if args.write:
        path = os.path.join(ROOT, "docs/robustness.md")
        text = open(path).read()
        before, rest = text.split(BEGIN)
        with open(path, "w") as file:
            file.write(before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + rest.split(END)[1])
    print(*(wrong or ["nothing wrong"]), sep="\n")
    sys.exit(bool(wrong))


main()
