#!/bin/sh
# What does `tcpwhy live` cost, and what does it do to the traffic that it watches? Request and reply over loopback as fast as they go
# (redis-benchmark, 20 connections), without and with it. As root; in a network namespace of its own.
# usage: tools/live/bench.sh [REQUESTS [RUNS]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${TCPWHY_BENCH_INSIDE:-}" ]; then
    TCPWHY_BENCH_INSIDE=1 exec unshare --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
requests=${1:-300000}
runs=${2:-5}
tcpwhy=${TCPWHY:-$here/../../target/release/tcpwhy}
ip link set lo up
place=$(mktemp -d)
trap 'rm -r "$place"' EXIT
redis-server --port 6379 --save "" --appendonly no --logfile "" --dir "$place" >/dev/null &
until redis-cli -p 6379 ping >/dev/null 2>&1; do sleep 0.1; done
load() { redis-benchmark -p 6379 -t ping_mbulk -n "$requests" -c 20 --csv | tail -1 >>"$place/$1"; }
# Loopback: what is received is what passes.
segments() { awk '/^Tcp: [0-9]/ { print $11 }' /proc/net/snmp; }
load warm
for _ in $(seq "$runs"); do
    load without
    /usr/bin/time -a -o "$place/cpu" -f "%e %U %S %M" "$tcpwhy" live -i lo --json port 6379 >"$place/said" 2>"$place/err" &
    sleep 0.7
    before=$(segments)
    load with
    echo "$(($(segments) - before))" >>"$place/passed"
    # The one that was started, below time(1).
    kill -INT "$(pgrep -P $! | head -1)"
    wait $! || true
    cat "$place/err" >>"$place/lost"
    grep -v tcpwhy.live/1 "$place/said" | python3 -c 'import json, sys; print(json.load(sys.stdin)["capture"]["packets"])' >>"$place/read"
done
echo "median of $runs runs of $requests requests, $(uname -sr), $(nproc) processors"
python3 - "$place" <<'P'
import csv, json, re, statistics, sys
place = sys.argv[1]
def rows(name):
    return [[float(value) for value in row[1:]] for row in csv.reader(open(f"{place}/{name}"))]
# rps, avg, min, p50, p95, p99, max in ms.
for name in ("without", "with"):
    all = rows(name)
    middle = [statistics.median(column) for column in zip(*all)]
    print(f"{name:8} {middle[0]:9.0f} requests/s  p50 {middle[3]:.3f} ms  p99 {middle[5]:.3f} ms")
times = [[float(value) for value in line.split()] for line in open(f"{place}/cpu")]
elapsed, user, system, memory = (statistics.median(column) for column in zip(*times))
print(f"live     {(user + system) / elapsed:.2f} processors of its two processes together, {memory / 1000:.0f} MB")
lost = [int(number.replace(",", "")) for number in re.findall(r"no room for ([\d,]+)", open(f"{place}/lost").read())]
passed, read = ([int(line) for line in open(f"{place}/{name}")] for name in ("passed", "read"))
print(f"packets  {sum(passed)} passed by the kernel's count, {sum(read)} read, {sum(lost)} found no room in the ring")
P
