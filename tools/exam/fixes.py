"""Which cases of the other files have an intervention: the remedy's name, and what it changes.

The same run with that one thing changed shows what the fix saves; the exam prints it beside what the report promised.
"""

import places  # noqa: F401
from cases import ALL, BULK, answers, asks, chunks, download, idles, split_request, tuned_server, upload
from services import HEAD_AND_BODY, REQUESTS, logged, scripts

LOSSLESS = {"path": "--delay 10ms"}
BUFFERED = HEAD_AND_BODY.replace("    protocol_version", "    wbufsize = -1\n    protocol_version")
FIXES = {
    "split-request": ("nodelay", {"near": split_request(0, True)}),
    "split-request-no-timestamps": ("one-write", {"near": asks(6, 250, 300)}),
    "wire-split-request": ("nodelay", {"near": split_request(0, True, 10)}),
    "lo-split-request": ("nodelay", {"near": split_request(0, True, 8)}),
    "chunks-at-once-nagle": ("nodelay", {"far": chunks(3, 400, 0, True)}),
    "cork-forgotten": ("uncork", {"far": chunks(2, 350, 0, True)}),
    "request-paused-70": ("write-without-pause", {"near": split_request(0, True)}),
    "lost-request": ("find-drops", LOSSLESS),
    "lost-request-twice": ("find-drops", LOSSLESS),
    "lost-reply-twice": ("find-drops", LOSSLESS),
    "lost-syn-twice": ("find-syn-drops", LOSSLESS),
    "lost-middle": ("find-drops", {"path": "--delay 20ms"}),
    "lost-tail-probe": ("find-drops", {"path": "--delay 20ms"}),
    "loss-1-percent": ("find-drops", {"path": "--delay 15ms --rate 50mbit"}),
    "burst-loss": ("find-drops", {"path": "--delay 10ms --rate 30mbit --queue 100k"}),
    "reader-sleeps-1500ms": ("read-promptly", {"near": download(BULK)}),
    "slow-reader-cubic": ("read-promptly", {"near": download(BULK)}),
    "rcvbuf-32k": ("no-rcvbuf", {"near": download(600_000)}),
    "rmem-small": ("raise-tcp-rmem", {"near_sysctl": []}),
    "unscaled": ("window-scaling", {"near_sysctl": []}),
    "sndbuf-16k": ("no-sndbuf", {"far": lambda p: tuned_server(p, 300_000)}),
    "paced-10m": ("pacing-rate", {"far": lambda p: tuned_server(p, BULK)}),
    "idle-download": ("slow-start-after-idle-off", {"far_sysctl": ["net.ipv4.tcp_slow_start_after_idle=0"]}),
    "idle-upload": ("slow-start-after-idle-off", {"near_sysctl": ["net.ipv4.tcp_slow_start_after_idle=0"]}),
    "nginx-initial-window-2": ("initcwnd", {"host_setup": {}}),
    "python-head-and-body": ("one-write", {"files": scripts(client=REQUESTS, server=BUFFERED)}),
    "nginx-slow-backend": ("profile-server", {"near": ALL["nginx-slow-backend"].near.replace("/slow", "/small.txt")}),
}
for name, (fix, changed) in FIXES.items():
    ALL[name].fix, ALL[name].changed = fix, changed
for name in ("reader-sleeps-1500ms", "slow-reader-cubic"):
    ALL[name].clock = lambda t: t.arrived()
ALL["python-head-and-body"].clock = lambda t: logged(t, "near.out", "exchange")
