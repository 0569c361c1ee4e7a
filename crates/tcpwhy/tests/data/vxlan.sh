#!/bin/sh
# Records vxlan-inside.pcap and vxlan-outside.pcap beside it: one connection through the kernel's VXLAN, on the tunnel's interface
# and on the one below it, at the client. Twelve rounds of write(20), write(100), read(64), as in record.py. Needs root,
# iproute2, tcpdump and python3. Nothing is left behind.
set -eu
cd "$(dirname "$0")"
client=tcpwhy-vx-c-$$
server=tcpwhy-vx-s-$$
trap 'ip netns del $client; ip netns del $server' EXIT
ip netns add $client
ip netns add $server
ip link add eth0 netns $client type veth peer name eth0 netns $server
n=1
for host in $client $server; do
    ip -n $host link set eth0 up
    ip -n $host addr add 192.0.2.$n/24 dev eth0
    ip -n $host link add vxlan0 type vxlan id 42 dstport 4789 local 192.0.2.$n remote 192.0.2.$((3 - n)) dev eth0
    ip -n $host addr add 10.42.0.$n/24 dev vxlan0
    ip -n $host link set vxlan0 up
    n=2
done
ip netns exec $server python3 -c '
import socket
s = socket.create_server(("", 8080)).accept()[0]
while True:
    need = 120
    while need:
        got = s.recv(need)
        if not got: raise SystemExit
        need -= len(got)
    s.sendall(bytes(64))
' &
for at in inside:vxlan0 outside:eth0; do
    ip netns exec $client tcpdump -n -U --immediate-mode -s 160 --time-stamp-precision=nano \
        -i "${at#*:}" -w "vxlan-${at%:*}.pcap" 'tcp or udp' 2>/dev/null &
done
sleep 1
ip netns exec $client python3 -c '
import socket
s = socket.create_connection(("10.42.0.2", 8080))
for _ in range(12):
    s.sendall(bytes(20))
    s.sendall(bytes(100))
    need = 64
    while need: need -= len(s.recv(need))
'
sleep 1
ip netns pids $client | xargs -r kill
wait
