#!/bin/sh
# An hour of `tcpwhy live` under load: is its memory flat, and is what it says in the end what `read` says of the saved file? As root; in a
# network namespace of its own. Lists of `json` are the beginning of those of `read --json`.
# usage: tools/live/hour.sh [SECONDS [REQUESTS A SECOND [lines|json]]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${TCPWHY_BENCH_INSIDE:-}" ]; then
    TCPWHY_BENCH_INSIDE=1 exec unshare --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
seconds=${1:-3600}
rate=${2:-2000}
form=${3:-lines}
tcpwhy=${TCPWHY:-$here/../../target/release/tcpwhy}
ip link set lo up
place=$(mktemp -d)
trap 'rm -r "$place"' EXIT
python3 "$here/load.py" 8080 "$rate" $((seconds + 10)) >"$place/load" &
load=$!
sleep 2
"$tcpwhy" live -i lo --$form --for "${seconds}s" --every 1s --write "$place/live.pcapng" port 8080 >"$place/said" 2>"$place/err" &
live=$!
sleep 2
# Resident memory of both processes, kB, and processor time, ticks, each minute or so.
step=$((seconds / 60 > 0 ? seconds / 60 : 1))
while kill -0 "$live" 2>/dev/null; do
    reader=$(pgrep -P "$live" -f 'read -' | head -1 || true)
    for pid in $live $reader; do
        rss=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null || true)
        ticks=$(awk '{ print $14 + $15 }' "/proc/$pid/stat" 2>/dev/null || true)
        if [ -n "$rss" ]; then echo "$pid $rss $ticks" >>"$place/memory"; fi
    done
    sleep "$step"
done
wait "$live" || echo "live: exit code $?"
wait "$load" || true
if [ "$form" = json ]; then
    "$tcpwhy" read --json "$place/live.pcapng" >"$place/read"
else
    "$tcpwhy" read "$place/live.pcapng" --filter 'port 8080' >"$place/read"
fi
echo "$seconds s of live, load: $(cat "$place/load"); $(uname -sr), $(nproc) processors; file $(wc -c <"$place/live.pcapng") B"
cat "$place/err"
python3 "$here/hour.py" "$place" "$live" "$seconds"
