#!/usr/bin/env python3
"""Does tcpwhy name the right cause on captures that it has never seen?

Two hosts on a path of the laboratory (`tcpwhy lab shell`), real programs at both, tcpdump at both. What the bill must say
follows from the case's configuration and from the programs' clocks; it is written down before the bill is read.

    exam.py [--out DIR] [--again] [CASE...]     record and judge; --again judges what was recorded before
    exam.py --partial [CASE...]                 judge parts of what was recorded before: nothing wrong may be claimed
"""

import argparse
import concurrent.futures
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import brokers  # noqa: E402, F401
import cases  # noqa: E402
import fixes  # noqa: E402, F401
import hellos  # noqa: E402, F401
import known  # noqa: E402
import more  # noqa: E402, F401
import murmurs  # noqa: E402, F401
import others  # noqa: E402, F401
import places  # noqa: E402, F401
import ciphers  # noqa: E402, F401
import programs  # noqa: E402, F401
import protocols  # noqa: E402, F401
import radio  # noqa: E402, F401
import readers  # noqa: E402, F401
import sealed  # noqa: E402, F401
import services  # noqa: E402, F401
import software  # noqa: E402, F401
import strangers  # noqa: E402, F401
import talkers  # noqa: E402, F401
import visitors  # noqa: E402, F401
import waits  # noqa: E402, F401
import whispers  # noqa: E402, F401
import worse  # noqa: E402
from peer import Peer  # noqa: E402

ENDS = {"near": "client", "far": "server"}
TOLERANCE_MS, TOLERANCE_SHARE = 2.0, 0.05
CASE_SECONDS = 90
# What a transfer over a link without a rate may be billed for bandwidth: the machine's own time for 3 MB.
LINK_MS = 60.0


def named(name):
    """A case, or with `+FIX` behind its name the case without its fault."""
    base, _, fixed = name.partition("+")
    return cases.repaired(cases.ALL[base]) if fixed else cases.ALL[base]


# One host of a case, inside its namespace.


def run_host(end, name):
    case = named(name)
    device = "lo" if case.path == "lo" else next(d for d in os.listdir("/sys/class/net") if d != "lo")
    if case.offload is False:
        for what in ("tso", "gso", "gro"):
            subprocess.run(["ethtool", "-K", device, what, "off"], stderr=subprocess.DEVNULL)
    for command in case.host_setup.get(end, []):
        subprocess.run(command.replace("DEV", device), shell=True, check=True)
    tap = start_tap(case, end, device) if end == "near" or case.path != "lo" else None
    program = case.near if end == "near" else case.far
    if callable(program):
        peer = Peer(f"{end}.json")
        try:
            program(peer)
        finally:
            peer.dump()
    else:
        with open(f"{end}.out", "w") as out, open(f"{end}.err", "w") as err:
            subprocess.run(program, shell=True, stdout=out, stderr=err)
    if end == "near":
        time.sleep(case.settle)
        tap.send_signal(signal.SIGINT)
        tap.wait()
    else:
        signal.pause()  # ends with the host


def start_tap(case, end, device):
    command = ["tcpdump", "-i", device, "-U", "--immediate-mode", "-B", "65536", "-w", f"{end}.pcap"]
    command += ["-s", str(case.snap), "-Z", "root"]
    tap = subprocess.Popen(command + shlex.split(case.tap.replace("DEV", device)), stderr=subprocess.PIPE, text=True)
    while "listening on" not in tap.stderr.readline():
        if tap.poll() is not None:
            sys.exit("tcpdump ended")
    return tap


# Recording.


def record(case, directory, program):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    try:
        if case.files:
            case.files(directory)
    except subprocess.CalledProcessError as failed:
        with open(f"{directory}/shell.err", "w") as err:
            err.write(f"{failed}\n")
        return False
    if case.path.startswith(("veth", "lo")):
        return record_veth(case, directory)
    here = f"{sys.executable} {HERE}/exam.py"
    command = [program, "lab", "shell", *shlex.split(case.path)]
    for end, settings in (("near", case.near_sysctl), ("far", case.far_sysctl)):
        for setting in settings:
            command += [f"--{end}-sysctl", setting]
    command += ["--congestion", case.congestion, "--far", f"{here} --host far {case.name}"]
    command += ["--", sys.executable, f"{HERE}/exam.py", "--host", "near", case.name]
    with open(f"{directory}/shell.err", "w") as err:
        run = {"cwd": directory, "stderr": err, "stdout": err, "start_new_session": True, "preexec_fn": before_others}
        ran = subprocess.Popen(command, **run)
        try:
            return ran.wait(timeout=CASE_SECONDS) == 0
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGTERM)
            ran.wait()
            return False


def before_others():
    """What is recorded comes before what else the machine does."""
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write("-20")
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
    except OSError:
        pass  # a kernel without groups, or not root


def record_veth(case, directory):
    """Two namespaces and a pair of interfaces, with a token bucket at the far one where the path names a rate; `lo` is one
    namespace and its loopback, `veth6` speaks IPv6."""
    here = f"{sys.executable} {HERE}/exam.py"
    names = {end: f"exam-{end}-{os.getpid()}" for end in ENDS}
    kind, _, rate = case.path.partition(" ")
    environment = dict(os.environ)
    if kind == "lo":
        names["far"] = names["near"]
    if kind == "veth6":
        environment["EXAM_FAR"] = "fd77::2"

    def ip(text):
        subprocess.run(f"ip {text}", shell=True, check=True)

    far = None
    try:
        for name in sorted(set(names.values())):
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
        if kind == "lo":
            ip(f"-n {names['far']} addr add 10.77.0.2/32 dev lo")
        else:
            ip(f"link add near0 netns {names['near']} type veth peer name far0 netns {names['far']}")
        for end, number in (("near", 1), ("far", 2)) if kind != "lo" else ():
            ip(f"-n {names[end]} addr add 10.77.0.{number}/24 dev {end}0")
            ip(f"-n {names[end]} addr add fd77::{number}/64 dev {end}0 nodad")
            ip(f"-n {names[end]} link set {end}0 up")
            route = f"10.77.0.0/24 dev {end}0 proto kernel scope link src 10.77.0.{number} congctl {case.congestion}"
            ip(f"-n {names[end]} route change {route}")
            ip(f"-n {names[end]} -6 route change fd77::/64 dev {end}0 proto kernel metric 256 congctl {case.congestion}")
        for end, name in names.items():
            for setting in getattr(case, f"{end}_sysctl"):
                ip(f"netns exec {name} sysctl -qw '{setting}'")
        if rate:
            ip(f"netns exec {names['far']} tc qdisc add dev far0 root tbf {rate}")
        with open(f"{directory}/shell.err", "w") as err:
            run = {"cwd": directory, "stderr": err, "stdout": err, "shell": True, "start_new_session": True, "preexec_fn": before_others}
            run["env"] = environment
            far = subprocess.Popen(f"exec ip netns exec {names['far']} {here} --host far {case.name}", **run)
            listens = f"ip netns exec {names['far']} ss -Hltn"
            while not subprocess.run(listens, shell=True, capture_output=True).stdout:
                if far.poll() is not None:
                    return False
                time.sleep(0.02)
            near = f"timeout {CASE_SECONDS} ip netns exec {names['near']} {here} --host near {case.name}"
            return subprocess.run(near, **run).returncode == 0
    finally:
        if far:
            far.terminate()
        for name in set(names.values()):
            pids = subprocess.run(f"ip netns pids {name}", shell=True, capture_output=True, text=True).stdout.split()
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(f"ip netns del {name}", shell=True)


class Truth:
    """What the programs' own clocks say, in milliseconds."""

    def __init__(self, directory):
        self.directory = directory
        self.log = {end: self._load(end) for end in ENDS}

    def _load(self, end):
        path = f"{self.directory}/{end}.json"
        return json.load(open(path)) if os.path.exists(path) else []

    @property
    def fixed(self):
        """Of the same case without its fault."""
        return Truth(f"{self.directory}+fixed")

    def text(self, name):
        with open(f"{self.directory}/{name}") as file:
            return file.read()

    def spans(self, end, op):
        return [1e3 * (e["end"] - e["start"]) for e in self.log[end] if e["op"] == op]

    def sum(self, end, op):
        return sum(self.spans(end, op))

    def waited(self):
        """What the near program waited for: its exchanges and connects, or what curl's clock or its own says of them."""
        if self.log["near"]:
            return self.sum("near", "exchange") + self.sum("near", "connect")
        total = 0.0
        for line in self.text("near.out").splitlines():
            if line.startswith("{"):
                total += 1e3 * json.loads(line)["time_total"]
            elif line.startswith("ask "):
                start, end = map(int, line.split()[1:3])
                total += (end - start) / 1e6
        return total

    def arrived(self):
        """From the first packet to the last with payload, at the near end: what a program reads later has arrived all the same."""
        with open(f"{self.directory}/near.pcap", "rb") as file:
            data = file.read()
        times, at, link = [], 24, struct.unpack("<I", data[20:24])[0]
        while at + 16 <= len(data):
            seconds, fraction, size, _ = struct.unpack("<IIII", data[at : at + 16])
            ip = data[at + 16 + {1: 14, 101: 0}[link] : at + 16 + size]
            payload = int.from_bytes(ip[2:4], "big") - 20 - (ip[32] >> 4) * 4
            if payload > 0 or not times:
                times.append(1e3 * seconds + fraction / 1e3)
            at += 16 + size
        return times[-1] - times[0]

    def asked(self):
        """Start and end of each wait, in milliseconds since the epoch."""
        if self.log["near"]:
            return [(1e3 * e["start"], 1e3 * e["end"]) for e in self.log["near"] if e["op"] == "exchange"]
        lines = [line.split() for line in self.text("near.out").splitlines() if line.startswith("ask ")]
        return [(int(line[1]) / 1e6, int(line[2]) / 1e6) for line in lines]

    def at(self, end, op, n=0, edge="start"):
        return 1e3 * [e for e in self.log[end] if e["op"] == op][n][edge]


# Judging.


def report(program, capture):
    ran = subprocess.run([program, "read", "--json", capture], capture_output=True, text=True)
    return json.loads(ran.stdout) if ran.returncode == 0 and ran.stdout else None


def bill(program, capture):
    read = report(program, capture)
    if read is None:
        return None
    lines, elapsed = {}, 0.0
    for connection in read["connections"]:
        for exchange in connection["exchanges"]:
            elapsed += exchange["elapsed_ns"] / 1e6
            for line in exchange["bill"]:
                sure = lines.setdefault((line["cause"], line["side"]), {})
                sure[line["confidence"]] = sure.get(line["confidence"], 0.0) + line["ns"] / 1e6
    return lines, elapsed


def amount(sure):
    return sum(sure.values())


def mine(term, lines):
    """The lines of a bill that a term of the expectation is about."""
    causes, _, side = term.partition("@")
    return [k for k in lines if k[0] in causes.split("|") and (not side or k[1] == side)]


def judge(expected, lines, elapsed):
    """What is wrong with a bill, as text; nothing where it is right."""
    tolerance = max(TOLERANCE_MS, TOLERANCE_SHARE * elapsed)
    left, wrong = dict(lines), []
    known = sum(ms for ms in expected.values() if isinstance(ms, (int, float)))
    for term, ms in expected.items():
        billed = sum(amount(left.pop(k)) for k in mine(term, left))
        low, high = (0, elapsed) if ms is None else (ms, ms)
        if ms in ("rest", "rest-bandwidth"):
            low = high = elapsed - known
        if ms == "rest-bandwidth":
            low -= min(LINK_MS, sum(amount(left.pop(k)) for k in mine("bandwidth@", left)))
        if callable(ms):
            ms = ms(elapsed)
        if isinstance(ms, tuple):
            low, high = ms
        if not low - tolerance <= billed <= high + tolerance:
            wrong.append(f"{term} {billed:.1f} for {low:.1f}" + (f"..{high:.1f}" if high != low else ""))
    for (cause, side), sure in sorted(left.items(), key=lambda item: -amount(item[1])):
        if amount(sure) > tolerance:
            wrong.append(f"{cause}@{side} {amount(sure):.1f} ({'/'.join(sorted(sure))})")
    rest = sum(map(amount, left.values()))
    if not wrong and rest > tolerance:
        wrong.append(f"{rest:.1f} over causes that play no part")
    return wrong


# BBR spaces what another sender's window holds back, and no idle time restarts it (tcp_slow_start_after_idle_check asks for
# cong_control, include/net/tcp.h): what its own doing is called is one of these. Side, program and path stay as they are.
BBR_HOLDS = ("slow-start", "slow-start-after-idle", "congestion-window", "pacing")


def by_bbr(expected):
    """The same expectation of a BBR sender: terms about a congestion window at one side are one term."""
    result, joined = {}, {}
    for term, ms in expected.items():
        causes, _, side = term.partition("@")
        names = causes.split("|")
        if not set(names) & set(BBR_HOLDS):
            result[term] = ms
            continue
        if isinstance(ms, tuple):
            ms = (ms[0], 2 * ms[1])  # a window that opens again is filled at a pace
        before, names_before = joined.get(side, (0, []))
        joined[side] = (both(before, ms), list(dict.fromkeys([*names_before, *names, *BBR_HOLDS])))
    return result | {f"{'|'.join(names)}@{side}": ms for side, (ms, names) in joined.items()}


def both(one, other):
    """What two terms come to together."""
    for ms in (one, other):
        if ms is None or isinstance(ms, str):
            return ms
    low, high = (map(sum, zip(*(ms if isinstance(ms, tuple) else (ms, ms) for ms in (one, other)))))
    return low if low == high else (low, high)


def expectation(case, truth):
    return by_bbr(case.expect(truth)) if case.congestion == "bbr" else case.expect(truth)


def examine_parts(case, directory, program, ways):
    """What parts of a recording, and what strangers make of one, are billed for: way, verdict and what it is about."""
    truth = Truth(directory)
    try:
        expected = expectation(case, truth)
    except Exception:
        return
    for end in ENDS:
        capture = f"{directory}/{end}.pcap"
        whole = bill(program, capture)
        if end in case.skip or whole is None:
            continue
        for way in ways:
            with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
                found = bill(program, file.name) if worse.write(capture, file.name, way) else None
            if found is not None:
                right = not judge(expected, *found)
                slack = worse.TICKS.get(way, 0.0)
                yield end, way, *worse.verdict(expected, found[0], whole[0], whole[1], slack, LINK_MS, right)


def show_parts(chosen, options):
    """The table of `--partial`, and each claim that cannot be right."""
    ways = options.ways.split(",") if options.ways else list(worse.WAYS)
    counts = {}

    def read(case):
        return case, list(examine_parts(case, f"{options.out}/{case.name}", options.program, ways))

    with concurrent.futures.ThreadPoolExecutor(8) as readers_of_parts:
        for case, rows in readers_of_parts.map(read, chosen):
            for end, way, verdict, about in rows:
                counts[way, verdict] = counts.get((way, verdict), 0) + 1
                if verdict in worse.VERDICTS[3:] or options.bills:
                    print(f"{case.name:32} {end:4} {way:24} {verdict.upper()}  {'; '.join(about)}", flush=True)
    text = "\n".join(worse.table(counts))
    print(text)
    if options.write:
        worse.write_table(options.write, text)
    sure = sum(n for (_, verdict), n in counts.items() if verdict in ("wrong likely", "wrong certain"))
    return 3 if sure else 0


def examine(case, directory, program):
    truth = Truth(directory)
    try:
        expected = expectation(case, truth)
    except Exception as error:  # a recording that failed has no truth
        return [("both", [f"no truth: {error!r}"], {}, {})]
    results = []
    for end in ENDS:
        if end in case.skip:
            continue
        capture = f"{directory}/{end}.pcap"
        views = [(end, capture)] + [(f"{end}:{name}", view(capture, edit)) for name, edit in case.views.items()]
        if case.each and end in case.each_at:
            read = report(program, capture)
            results.append((f"{end}:each", judge_each(case.each(truth), read, case.rtt) if read else ["cannot be read"], {}, {}))
        for label, path in views:
            found = bill(program, path)
            if found is None:
                results.append((label, ["cannot be read"], {}, 0.0))
                continue
            lines, elapsed = found
            judged = lines
            if case.guess:
                judged = {k: {level: ms for level, ms in sure.items() if level != "possible"} for k, sure in lines.items()}
            results.append((label, judge(expected, judged, elapsed), lines, elapsed))
    return [(label, wrong, expected, lines) for label, wrong, lines, _ in results]


def view(capture, edit):
    """The same recording as another tool would have taken it."""
    path = capture.replace(".pcap", f".{zlib.crc32(edit.encode())}.pcap")
    subprocess.run(edit.replace("IN", capture).replace("OUT", path), shell=True, check=False, stderr=subprocess.DEVNULL)
    return path


# Each wait of the asker against the bill's exchanges.


def judge_each(waits, read, rtt):
    """What is wrong with single exchanges: each of the asker's waits is one of the bill, to within 1 ms or 2 %; what nobody
    waited for takes no longer than its own way."""
    billed = [
        (e["start_ns"] / 1e6, (e["start_ns"] + e["elapsed_ns"]) / 1e6, e)
        for connection in read["connections"]
        for e in connection["exchanges"]
        if e["kind"] != "setup"
    ]
    if waits:
        # What comes before and behind is the program's own beginning and end.
        first, last = min(w[0] for w in waits), max(w[1] for w in waits)
        billed = [b for b in billed if first - 5 <= b[0] <= last]
    wrong, answered = [], sorted((b for b in billed if b[2]["kind"] != "one-way"), key=lambda b: (b[0], b[2]["n"]))
    in_order = dict(zip(sorted(waits), answered)) if len(answered) == len(waits) else {}
    for start, end in waits:
        if not billed:
            wrong.append(f"a wait of {end - start:.1f} is not billed")
            continue
        pair = in_order.get((start, end)) or min(billed, key=lambda b: abs(b[0] - start) + abs(b[1] - end))
        billed.remove(pair)
        took = pair[1] - pair[0]
        if abs(took - (end - start)) > max(1.0, 0.02 * (end - start)):
            wrong.append(f"{took:.1f} billed for a wait of {end - start:.1f}, exchange {pair[2]['n']}")
    wrong += [f"{end - start:.1f} billed that nobody waited for, {e['kind']} {e['n']}" for start, end, e in billed if end - start > rtt + TOLERANCE_MS]
    return [f"{len(wrong)} exchanges: {wrong[0]}"] if wrong else []


# What fixes promise, and what they saved.


def promise(read, fixes):
    """What the report says that fixes would save together, in milliseconds: least and most. Nothing where it does not say it of each that
    is for more than a tenth of what these are for."""
    least = most = unsaid = 0.0
    for finding in read["findings"]:
        for remedy in finding["remedies"]:
            if remedy["id"] not in fixes.split("|"):
                continue
            if remedy["saves_ns"] is None:
                unsaid += finding["ns"] / 1e6
                continue
            most += remedy["saves_ns"] / 1e6
            least += remedy["saves_ns"] / 1e6 if remedy["saves_kind"] == "estimate" else remedy.get("saves_least_ns", 0) / 1e6
    return (least, most) if most > 0 and unsaid <= (most + unsaid) / 10 else None


def savings(case, out, program):
    """A row for each end: promised and gained, in milliseconds."""
    directory = f"{out}/{case.name}"
    try:
        before, after = (case.clock(Truth(f"{directory}{fixed}")) for fixed in ("", "+fixed"))
    except Exception as error:
        return [(case, "both", None, f"no truth: {error!r}")]
    rows = []
    for end in ENDS:
        if end not in case.skip:
            read = report(program, f"{directory}/{end}.pcap")
            rows.append((case, end, promise(read, case.fix) if read else None, before - after))
    return rows


def kept(promised, gained, share):
    """Whether what was gained is within a share (or 10 ms) of what was promised."""
    slack = max(10.0, share * max(abs(gained), promised[1]))
    return promised[0] - slack <= gained <= promised[1] + slack


def show_savings(rows):
    told = [(promised, gained) for _, _, promised, gained in rows if promised and isinstance(gained, float)]
    print(f"\n{'case':32} {'end':6} {'fix':28} {'promised ms':>17} {'gained ms':>10}")
    for case, end, promised, gained in rows:
        said = "-" if promised is None else f"{promised[1]:.1f}" if promised[0] == promised[1] else f"{promised[0]:.1f} to {promised[1]:.1f}"
        gain = f"{gained:10.1f}" if isinstance(gained, float) else gained
        off = " off" if promised and isinstance(gained, float) and not kept(promised, gained, 0.3) else ""
        print(f"{case.name:32} {end:6} {case.fix:28} {said:>17} {gain}{off}")
    print("\n".join(sums_of_savings(rows)))


def sums_of_savings(rows):
    told = [(promised, gained) for _, _, promised, gained in rows if promised and isinstance(gained, float)]
    points = sorted(abs(p[1] - g) / max(abs(g), p[1], 1.0) for p, g in told if p[0] == p[1])
    if points:
        close = sum(kept(p, g, 0.3) for p, g in told if p[0] == p[1])
        yield f"{len(points)} promises of one figure: median error {100 * points[len(points) // 2]:.1f} %, {close} within 30 % or 10 ms"
    intervals = [kept(p, g, 0.3) for p, g in told if p[0] != p[1]]
    if intervals:
        yield f"{len(intervals)} promises of an interval: {sum(intervals)} hold, within 30 % or 10 ms"
    silent = sum(promised is None for _, _, promised, _ in rows)
    yield f"{sum(kept(p, g, 0.3) for p, g in told)} of {len(told)} within 30 % or 10 ms; {silent} without a promise"


def pairs(judged):
    """The cases that have a bill at both ends, those whose bills differ (a cause by more than 2 ms or 5 % of the time), and those of
    them that do not where what an end calls possible may have been any cause."""
    bills = {(name, label): lines for name, label, _, lines in judged if label in ENDS}
    both = [name for name, label in bills if label == "near" and (name, "far") in bills and name not in known.AT_ONE_END]
    differ, open_to_doubt = {}, []
    for name in both:
        near, far = ({k: amount(sure) for k, sure in bills[name, end].items()} for end in ENDS)
        slack = max(TOLERANCE_MS, TOLERANCE_SHARE * max(sum(near.values()), sum(far.values())))
        causes = sorted(near.keys() | far.keys())
        gaps = [(k, near.get(k, 0.0), far.get(k, 0.0)) for k in causes]
        gaps = [f"{cause}@{side} {one:.1f} and {other:.1f}" for (cause, side), one, other in gaps if abs(one - other) > slack]
        if gaps:
            differ[name] = "; ".join(gaps)
            ranges = [could_be(bills[name, end], causes) for end in ENDS]
            if all(a[0] <= b[1] + slack and b[0] <= a[1] + slack for a, b in zip(*ranges)):
                open_to_doubt.append(name)
    return both, differ, open_to_doubt


def could_be(lines, causes):
    """Least and most of each cause, where what is possible may have been any of them."""
    possible = sum(sure.get("possible", 0.0) for sure in lines.values())
    surely = [amount(lines.get(k, {})) - lines.get(k, {}).get("possible", 0.0) for k in causes]
    return [(ms, ms + possible) for ms in surely]


def write_results(page, judged, rows, right, total, count):
    with open(page, encoding="utf-8") as file:
        text = file.read().split("\n## Results\n")[0].rstrip("\n")
    both, differ, doubted = pairs(judged)
    agree = len(both) - len(differ)
    text += f"\n\n## Results\n\nWritten by `exam.py --write docs/exam.md`. {count} cases: {right} of {total} bills and rows of waits right"
    text += f" ({100 * right / max(total, 1):.1f} %);\nof {len(both)} cases that both ends see, the bills of {agree} agree ({100 * agree / max(len(both), 1):.1f} %)"
    text += f", and {agree + len(doubted)} ({100 * (agree + len(doubted)) / max(len(both), 1):.1f} %) counting differences no larger than what an end marks as possible as agreement.\n"
    text += "What fixes promise, and what they saved:\n\n"
    text += "".join(f"- {line}.\n" for line in sums_of_savings(rows)) + "\n"
    text += "What is wrong, and why:\n\n| case | where | what | why |\n|---|---|---|---|\n"
    for name, label, wrong, _ in judged:
        if wrong:
            why = next((why for start, why in known.WHY.items() if name.startswith(start)), "-")
            text += f"| {name} | {label} | {'; '.join(wrong).replace('|', ' or ')} | {why} |\n"
    text += "\nWhere the bills of both ends differ (near and far, ms), and why:\n\n| case | what | why |\n|---|---|---|\n"
    text += "".join(f"| {name} | {what} | {known.DIFFER.get(name, '-')} |\n" for name, what in differ.items())
    text += "\nThese cases are not compared, because one end cannot see the cause:\n\n" + "".join(f"- {name}: {why}.\n" for name, why in known.AT_ONE_END.items())
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)


def show(values, elapsed=0.0):
    """Amounts and bounds, in milliseconds; those that follow from the elapsed time, for this one."""
    words = []
    for term, ms in values.items():
        ms = ms(elapsed) if callable(ms) else ms
        bounds = ms if isinstance(ms, tuple) else (ms,)
        words.append(f"{term} " + "..".join(f"{bound:.1f}" if isinstance(bound, (int, float)) else str(bound) for bound in bounds))
    return ", ".join(words)


def keep(case, directory, out):
    """Writes a recording small, with the asker's clock beside it, for the tests of every day (corpus/talks)."""
    place = f"{out}/{case.name}"
    os.makedirs(place, exist_ok=True)
    for end, name in (("near", "client"), ("far", "server")):
        shorter = f"{directory}/{name}.pcapng"
        subprocess.run(["editcap", "-F", "pcapng", f"{directory}/{end}.pcap", shorter], check=True)
        subprocess.run(["zstd", "-q", "-f", "-19", "--rm", shorter, "-o", f"{place}/{name}.pcapng.zst"], check=True)
    with open(f"{place}/clock.txt", "w") as file:
        if case.each is None:
            file.write("unsettled\n")
        else:
            file.writelines(f"ask {start * 1e6:.0f} {end * 1e6:.0f}\n" for start, end in case.each(Truth(directory)))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default=f"{ROOT}/target/exam")
    options.add_argument("--again", action="store_true", help="judge what was recorded before")
    options.add_argument("--partial", action="store_true", help="judge parts of what was recorded before, and what strangers make of it")
    options.add_argument("--ways", help="only these of worse.py, with commas between")
    options.add_argument("--program", default=f"{ROOT}/target/release/tcpwhy")
    options.add_argument("--recorder", help="the program that makes the path, where it is another one")
    options.add_argument("--congestion", help="for all cases, instead of their own: bbr is what some kernels begin with")
    options.add_argument("--keep", help="write what is right at both ends to this directory (corpus/talks)")
    options.add_argument("--write", metavar="FILE", help="write the results behind the text of this page (docs/exam.md)")
    options.add_argument("--host", choices=ENDS, help=argparse.SUPPRESS)
    options.add_argument("--bills", action="store_true", help="show the bills of the right ones as well")
    options.add_argument("cases", nargs="*")
    options = options.parse_args()
    if options.congestion:
        for case in cases.ALL.values():
            case.congestion = options.congestion
    if options.host:
        return run_host(options.host, options.cases[0])
    chosen = [c for c in cases.ALL.values() if not options.cases or any(c.name.startswith(n) for n in options.cases)]
    if options.partial:
        return show_parts(chosen, options)
    right = total = 0
    rows, judged = [], []
    for case in chosen:
        directory = f"{options.out}/{case.name}"
        if not options.again and not record(case, directory, options.recorder or options.program):
            print(f"{case.name:32} not recorded, see {directory}/shell.err", flush=True)
            continue
        if case.fix:
            fixed = named(f"{case.name}+fixed")
            if options.again or record(fixed, f"{options.out}/{fixed.name}", options.recorder or options.program):
                rows += savings(case, options.out, options.program)
        results = examine(case, directory, options.program)
        if options.keep and not any(wrong for _, wrong, _, _ in results):
            keep(case, directory, options.keep)
        for label, wrong, expected, lines in results:
            total += 1
            right += not wrong
            print(f"{case.name:32} {label:14} {'right' if not wrong else 'WRONG  ' + '; '.join(wrong)}", flush=True)
            if expected and (wrong or options.bills):
                print(f"{'':12} expected {show(expected, sum(map(amount, lines.values())))}")
                print(f"{'':12} billed   {show({f'{c}@{s}': amount(sure) for (c, s), sure in lines.items() if amount(sure) >= 0.05})}")
            if wrong or label in ENDS:
                judged.append((case.name, label, wrong, lines))
    if rows:
        show_savings(rows)
    print(f"{right} of {total} right")
    if options.write:
        write_results(options.write, judged, rows, right, total, len(chosen))
    return 0 if right == total else 3


if __name__ == "__main__":
    sys.exit(main())
