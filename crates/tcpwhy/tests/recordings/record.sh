#!/bin/sh
# Records the conversations of talk.py between two network namespaces of this machine's kernel:
#
#     record.sh DIRECTORY
#
# makes NAME.ethernet.pcap (nanoseconds, on the client's interface), NAME.sll.pcap and NAME.sll2.pcap (on all of its
# interfaces) for each. Needs root, iproute2, tcpdump and python3. Nothing is left behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
client=tcpwhy-rec-c-$$
server=tcpwhy-rec-s-$$

clean_up() {
    ip netns pids "$server" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns pids "$client" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "$server" 2>/dev/null || true
    ip netns del "$client" 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 1' INT TERM

at() {
    ip netns exec "$@"
}

ip netns add "$client"
ip netns add "$server"
ip link add eth0 netns "$client" type veth peer name eth0 netns "$server"
number=1
for host in "$client" "$server"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 up
    ip -n "$host" addr add "10.99.0.$number/24" dev eth0
    ip -n "$host" addr add "fd99::$number/64" dev eth0 nodad
    number=$((number + 1))
done

# Waits until a file has the word, for ten seconds at most.
wait_for() {
    tries=0
    until grep -q "$1" "$2" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "no '$1' in $2:" >&2; cat "$2" >&2; exit 1; }
        sleep 0.05
    done
}

at "$server" python3 "$here/talk.py" server >"$out/server.log" 2>&1 &
wait_for ready "$out/server.log"

# record NAME KIND TCPDUMP-OPTIONS: run as a job, so that the job's process becomes tcpdump. A short snap length leaves room
# in the ring for super-segments.
record() {
    name=$1 kind=$2
    shift 2
    exec ip netns exec "$client" tcpdump -n -U --immediate-mode -s 1600 -B 8192 -w "$out/$name.$kind.pcap" "$@" 2>"$out/$kind.log"
}

for name in $(python3 "$here/talk.py" names); do
    rm -f "$out/ethernet.log" "$out/sll.log" "$out/sll2.log"
    record "$name" ethernet -i eth0 --time-stamp-precision=nano &
    ethernet=$!
    record "$name" sll -i any -y LINUX_SLL &
    sll=$!
    record "$name" sll2 -i any -y LINUX_SLL2 &
    sll2=$!
    for kind in ethernet sll sll2; do wait_for 'listening on' "$out/$kind.log"; done
    at "$client" timeout 20 python3 "$here/talk.py" client "$name"
    sleep 0.2
    kill $ethernet $sll $sll2
    wait $ethernet $sll $sll2 || true
done
rm "$out"/*.log
