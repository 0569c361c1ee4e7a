#!/usr/bin/env python3
"""How fast are generated captures analysed, side by side with whatever else is installed? Prints Markdown.

tools/bench.py [--packets SHAPE=N ...] [--runs N] [--captures DIR] [--base BINARY]
tools/bench.py --growth [MOST] [--runs N]

All programs read the same files, warm, in turns, so that what else the machine does falls on all of them alike. Those
that take seconds for a million packets get a shorter capture of the same shape; everything is quoted per packet.

--growth measures how the processor's time grows, with up to MOST packets (10 million) and from a thousand connections to a million, and what the
shapes cost that fill one bounded structure each. The generator writes into tcpwhy's standard input; the time is that of tcpwhy alone, on one thread.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "target")
PACKETS = {"rpc": 4_000_000, "rpc-200k": 4_000_000, "bulk": 3_000_000, "bulk-full": 1_000_000, "churn": 3_000_000}
# The same shape with more connections open at once.
CONNECTIONS = {"rpc-200k": 200_000}
GROWTH = ["rpc", "bulk", "churn"]
# What ARCHITECTURE.md says is bounded, and the shape of tcpwhy-gen that fills it.
BOUNDED = {
    "flights": "segments that nobody acknowledges",
    "resent": "... any of which is sent again",
    "transit": "acknowledgements in transit",
    "gaps": "holes in the sequence space",
    "backwards": "holes that are filled from their ends",
    "sack": "blocks of SACK",
    "pipeline": "questions under way",
    "exchanges": "exchanges of one connection",
    "syn-flood": "the table of connections",
    "open": "open connections with all that one may keep",
    "servers": "the table of servers",
    "ports": "connections between two hosts",
    "finished": "finished connections",
}
SHORTENED = {"tcptrace": 500_000, "tshark": 200_000}

# Name, program, arguments; FILE stands for the capture.
PROGRAMS = [
    ("tcpwhy, 1 thread", "tcpwhy", ["read", "--threads", "1", "FILE"]),
    ("tcpwhy, 2 threads", "tcpwhy", ["read", "--threads", "2", "FILE"]),
    ("cat", "cat", ["FILE"]),
    ("tcpdump -w /dev/null", "tcpdump", ["-r", "FILE", "-w", "/dev/null"]),
    ("capinfos", "capinfos", ["FILE"]),
    ("tcptrace -n", "tcptrace", ["-n", "FILE"]),
    ("tshark -z conv,tcp", "tshark", ["-q", "-n", "-z", "conv,tcp", "-r", "FILE"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", action="append", default=[], metavar="SHAPE=N", help="0 leaves a shape out")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--base", metavar="BINARY", help="an earlier tcpwhy, run beside this one")
    parser.add_argument("--captures", default=os.path.join(TARGET, "bench"), metavar="DIR")
    parser.add_argument("--growth", nargs="?", type=int, const=10_000_000, metavar="MOST")
    options = parser.parse_args()
    if options.growth:
        growth(options.growth, options.runs)
        return
    packets = dict(PACKETS)
    for asked in options.packets:
        shape, _, count = asked.partition("=")
        if shape not in packets or not count.isdigit():
            parser.error(f"--packets {asked}: SHAPE=N, where SHAPE is one of {', '.join(packets)}")
        packets[shape] = int(count)
    os.makedirs(options.captures, exist_ok=True)
    if options.base:
        PROGRAMS[2:2] = [(f"base, {n} thread{'s' * (n > 1)}", options.base, ["read", "--threads", str(n), "FILE"]) for n in (1, 2)]
    print_machine()
    for shape, count in packets.items():
        if count:
            measure(shape, count, options)


def growth(most, runs):
    """How the time of a packet grows with the packets of a capture and with its connections, and what the worst packets cost."""
    print_machine()
    sizes = [size for size in (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000) if size <= most]
    print("\n| packets | " + " | ".join(GROWTH) + " |\n|---:|" + "---:|" * len(GROWTH))
    for size in sizes:
        row = [piped(shape, size, [], [], runs)[0] for shape in GROWTH]
        print(f"| {size:,} | " + " | ".join(f"{ns:,.0f}" for ns in row) + " |", flush=True)
    print("\n| connections at once (rpc) | packets | ns/packet | peak MB |\n|---:|---:|---:|---:|")
    for open_at_once in (1_000, 10_000, 100_000, 1_000_000):
        size = min(max(2_000_000, 8 * open_at_once), most)
        ns, peak = piped("rpc", size, ["--connections", str(open_at_once)], ["--memory", "8GB"], runs)
        print(f"| {open_at_once:,} | {size:,} | {ns:,.0f} | {peak / 1024:,.0f} |", flush=True)
    print("\n| what is filled | ns/packet | peak MB |\n|---|---:|---:|")
    for shape, fills in BOUNDED.items():
        ns, peak = piped(shape, 1_000_000, [], [], runs)
        print(f"| {fills} (`{shape}`) | {ns:,.0f} | {peak / 1024:,.0f} |", flush=True)


def piped(shape, packets, generating, reading, runs):
    """The processor's time for a packet in ns, and the most memory in KiB; medians."""
    results = []
    for _ in range(runs):
        with subprocess.Popen([find("tcpwhy-gen"), shape, "--packets", str(packets), *generating], stdout=subprocess.PIPE) as generator:
            _, cpu, peak = run_once([find("tcpwhy"), "read", "--threads", "1", *reading, "-"], generator.stdout)
        results.append((cpu * 1e9 / packets, peak))
    return [statistics.median(column) for column in zip(*results)]


def measure(shape, count, options):
    programs = [(name, path, program, arguments) for name, program, arguments in PROGRAMS if (path := find(program))]
    captures = {n: capture(shape, n, options.captures) for n in {min(count, SHORTENED.get(p, count)) for _, _, p, _ in programs}}
    results = {name: [] for name, *_ in programs}
    for run in range(options.runs + 1):
        for name, path, program, arguments in programs:
            file = captures[min(count, SHORTENED.get(program, count))]
            result = run_once([path] + [file if word == "FILE" else word for word in arguments])
            if run > 0:  # the first one warms the page cache
                results[name].append(result)
    print(f"\n### {shape}: {count:,} packets, {os.path.getsize(captures[count]) / 1e6:,.0f} MB\n")
    print("| | packets | wall s | CPU s | M packets/s | ns/packet | MB/s | peak MB | times as long as tcpwhy |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    own = None
    for name, _, program, _ in programs:
        n = min(count, SHORTENED.get(program, count))
        wall, cpu, peak = (statistics.median(column) for column in zip(*results[name]))
        ns = wall * 1e9 / n
        own = own or ns
        speed = os.path.getsize(captures[n]) / 1e6 / wall
        print(
            f"| {name} | {n:,} | {wall:.3f} | {cpu:.3f} | {n / wall / 1e6:.2f} | {ns:,.0f} "
            f"| {speed:,.0f} | {peak / 1024:.0f} | {ns / own:.2f} |",
            flush=True,
        )


def capture(shape, packets, directory):
    """A capture of the fixed seed, generated where it is not there yet."""
    file = os.path.join(directory, f"{shape}-{packets}.pcap")
    if not os.path.exists(file):
        command = [find("tcpwhy-gen"), shape.removesuffix("-200k"), "--packets", str(packets)]
        if shape in CONNECTIONS:
            command += ["--connections", str(CONNECTIONS[shape])]
        subprocess.run([*command, file + ".part"], check=True)
        os.rename(file + ".part", file)
    return file


def run_once(command, stdin=None):
    """Wall and processor time in seconds, and the most memory in KiB, of one run."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while True:
        # The kernel's own account of a child counts what its parent held when it forked.
        peak = max(peak, high_water_mark(child.pid))
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.002)
    wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, peak


def high_water_mark(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return next((int(line.split()[1]) for line in status if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def find(program):
    """Ours are those of this tree, unless a path is given; `make bench` names what `make install` installs."""
    if os.path.sep in program:
        return program
    if program == "tcpwhy" and "TCPWHY" in os.environ:
        return os.environ["TCPWHY"]
    if program.startswith("tcpwhy"):
        path = os.path.join(TARGET, "release", program)
        if not os.path.exists(path):
            sys.exit(f"{program} is not built: cargo build --release -p tcpwhy -p tcpwhy-gen")
        return path
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/bin")


def print_machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        model = next((line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    print(f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}; ", end="")
    print(f"warm page cache, medians. Not installed: {', '.join(missing()) or 'none'}.")


def missing():
    return [program for _, program, _ in PROGRAMS if not program.startswith("tcpwhy") and not find(program)]


if __name__ == "__main__":
    main()
