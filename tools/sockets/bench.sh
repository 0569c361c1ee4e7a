#!/bin/sh
# What does one look at 50,000 loopback connections (100,000 sockets) cost, beside `ss -tinm`? As root; in a network namespace of its own.
# usage: tools/sockets/bench.sh [CONNECTIONS [RUNS]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${TCPWHY_BENCH_INSIDE:-}" ]; then
    TCPWHY_BENCH_INSIDE=1 exec unshare --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
connections=${1:-50000}
runs=${2:-5}
tcpwhy=${TCPWHY:-$here/../../target/release/tcpwhy}
ip link set lo up
sysctl -qw net.ipv4.ip_local_port_range="1024 65000"
place=$(mktemp -d)
trap 'rm -r "$place"' EXIT
mkfifo "$place/hold"
exec 9<>"$place/hold"
python3 "$here/connections.py" "$connections" <"$place/hold" >"$place/ready" &
until grep -q ready "$place/ready"; do sleep 0.2; done
run() { # NAME COMMAND...
    name=$1
    shift
    /usr/bin/time -o "$place/time" -f "%U %S %M" "$@" >/dev/null
    read -r user system kilobytes <"$place/time"
    printf '%-32s %s %s %s\n' "$name" "$user" "$system" "$kilobytes" >>"$place/all"
}
for _ in $(seq "$runs"); do
    run "ss -tinm" ss -tinm
    run "tcpwhy sockets --once" "$tcpwhy" sockets --once
    run "tcpwhy sockets" "$tcpwhy" sockets
done
# Ten connections come and go each second: the second look has to walk all sockets then.
python3 "$here/connections.py" churn &
churn=$!
sleep 0.5
for _ in $(seq "$runs"); do
    run "tcpwhy sockets, others connect" "$tcpwhy" sockets
done
kill "$churn"
echo "median of $runs runs, $connections connections, $(uname -sr), $(nproc) processors"
python3 - "$place/all" <<'P'
import collections, statistics, sys
runs = collections.defaultdict(list)
for line in open(sys.argv[1]):
    name, (user, system, kilobytes) = line[:32].strip(), line[32:].split()
    runs[name].append((float(user) + float(system), int(kilobytes)))
whole = statistics.median(time for time, _ in runs["ss -tinm"])
print(f"{'':32} {'CPU s':>6} {'of ss':>6} {'MB':>6}")
for name, all in runs.items():
    time, memory = (statistics.median(one) for one in zip(*all))
    print(f"{name:32} {time:6.2f} {time / whole:6.2f} {memory / 1000:6.1f}")
P
