#!/usr/bin/env python3
"""Does tcpwhy name the right cause on captures that it has never seen?

Two hosts on a path of the laboratory (`tcpwhy lab shell`), real programs at both, tcpdump at both. What the bill must say
follows from the case's configuration and from the programs' clocks; it is written down before the bill is read.

    exam.py [--out DIR] [--again] [CASE...]     record and judge; --again judges what was recorded before
    exam.py --partial [CASE...]                 judge parts of what was recorded before: nothing wrong may be claimed
"""

import argparse
import glob
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import cases  # noqa: E402
import places  # noqa: E402, F401
import programs  # noqa: E402, F401
import services  # noqa: E402, F401
from peer import Peer  # noqa: E402

ENDS = {"near": "client", "far": "server"}
TOLERANCE_MS, TOLERANCE_SHARE = 2.0, 0.05
CASE_SECONDS = 90
# What a transfer over a link without a rate may be billed for bandwidth: the machine's own time for 3 MB.
LINK_MS = 60.0


# One host of a case, inside its namespace.


def run_host(end, name):
    case = cases.ALL[name]
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
    command += ["-s", "128", "-Z", "root"]
    tap = subprocess.Popen(command + shlex.split(case.tap.replace("DEV", device)), stderr=subprocess.PIPE, text=True)
    while "listening on" not in tap.stderr.readline():
        if tap.poll() is not None:
            sys.exit("tcpdump ended")
    return tap


# Recording.


def record(case, directory, program):
    os.makedirs(directory, exist_ok=True)
    for old in glob.glob(f"{directory}/*"):
        if os.path.isfile(old):
            os.remove(old)
    if case.files:
        case.files(directory)
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

    def text(self, name):
        with open(f"{self.directory}/{name}") as file:
            return file.read()

    def spans(self, end, op):
        return [1e3 * (e["end"] - e["start"]) for e in self.log[end] if e["op"] == op]

    def sum(self, end, op):
        return sum(self.spans(end, op))

    def at(self, end, op, n=0, edge="start"):
        return 1e3 * [e for e in self.log[end] if e["op"] == op][n][edge]


# Judging.


def bill(program, capture):
    ran = subprocess.run([program, "read", "--json", capture], capture_output=True, text=True)
    if ran.returncode != 0 or not ran.stdout:
        return None
    lines, elapsed = {}, 0.0
    for connection in json.loads(ran.stdout)["connections"]:
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


# What may come out of a part of a recording: less, or less certain.
FREE = ("unexplained@", "handshake@", "round-trip@")
PARTS = {
    "client-only": "tcpdump -r IN -w OUT 'dst port 7000'",
    "server-only": "tcpdump -r IN -w OUT 'src port 7000'",
    "1-percent-missing": f"{sys.executable} {HERE}/missing.py IN OUT",
    "midway": "editcap IN OUT 1-12",
    "cut-off": "head -c $(($(stat -c %s IN) * 3 / 5)) IN > OUT",
    "without-options": "editcap -s 54 IN OUT",
}


def judge_part(expected, lines, elapsed):
    """What a bill of a part of the recording claims as certain or likely that cannot be right."""
    tolerance = max(TOLERANCE_MS, TOLERANCE_SHARE * elapsed)
    claimed = {k: amount(sure) - sure.get("possible", 0.0) for k, sure in lines.items()}
    wrong = []
    for term, ms in [*expected.items(), *((term, None) for term in FREE)]:
        billed = sum(claimed.pop(k) for k in mine(term, claimed))
        if ms == "rest-bandwidth":
            claimed = {k: max(0.0, ms - LINK_MS) if k[0] == "bandwidth" else ms for k, ms in claimed.items()}
        high = ms[1] if isinstance(ms, tuple) else ms if isinstance(ms, (int, float)) else elapsed
        if billed > high + tolerance and f"{term.split('@')[0]}@" not in FREE:
            wrong.append(f"{term} {billed:.1f} for {high:.1f} at most")
    wrong += [f"{cause}@{side} {ms:.1f}" for (cause, side), ms in claimed.items() if ms > tolerance]
    return wrong


def examine_parts(case, directory, program):
    truth = Truth(directory)
    try:
        expected = expectation(case, truth)
    except Exception:
        return []
    results = []
    for end in ENDS:
        whole = bill(program, f"{directory}/{end}.pcap")
        if end in case.skip or whole is None:
            continue
        for name, edit in PARTS.items():
            found = bill(program, view(f"{directory}/{end}.pcap", edit))
            if found is not None:
                results.append((f"{end}:{name}", judge_part(expected, found[0], whole[1]), expected, found[0]))
    return results


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
        for label, path in views:
            found = bill(program, path)
            if found is None:
                results.append((label, ["cannot be read"], {}, 0.0))
                continue
            lines, elapsed = found
            results.append((label, judge(expected, lines, elapsed), lines, elapsed))
    return [(label, wrong, expected, lines) for label, wrong, lines, _ in results]


def view(capture, edit):
    """The same recording as another tool would have taken it."""
    path = capture.replace(".pcap", f".{zlib.crc32(edit.encode())}.pcap")
    subprocess.run(edit.replace("IN", capture).replace("OUT", path), shell=True, check=False, stderr=subprocess.DEVNULL)
    return path


def show(values):
    return ", ".join(f"{k} {v:.1f}" if isinstance(v, (int, float)) else f"{k} {v}" for k, v in values.items())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default=f"{ROOT}/target/exam")
    options.add_argument("--again", action="store_true", help="judge what was recorded before")
    options.add_argument("--partial", action="store_true", help="judge parts of what was recorded before")
    options.add_argument("--program", default=f"{ROOT}/target/release/tcpwhy")
    options.add_argument("--recorder", help="the program that makes the path, where it is another one")
    options.add_argument("--congestion", help="for all cases, instead of their own: bbr is what some kernels begin with")
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
    right = total = 0
    for case in chosen:
        directory = f"{options.out}/{case.name}"
        if not (options.again or options.partial) and not record(case, directory, options.recorder or options.program):
            print(f"{case.name:32} not recorded, see {directory}/shell.err", flush=True)
            continue
        results = (examine_parts if options.partial else examine)(case, directory, options.program)
        for label, wrong, expected, lines in results:
            total += 1
            right += not wrong
            if options.partial and not wrong:
                continue
            print(f"{case.name:32} {label:14} {'right' if not wrong else 'WRONG  ' + '; '.join(wrong)}", flush=True)
            if wrong or options.bills:
                print(f"{'':12} expected {show(expected)}")
                print(f"{'':12} billed   {show({f'{c}@{s}': amount(sure) for (c, s), sure in lines.items() if amount(sure) >= 0.05})}")
    print(f"{right} of {total} right")
    return 0 if right == total else 3


if __name__ == "__main__":
    sys.exit(main())
