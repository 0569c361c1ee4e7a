"""What does an hour of live show? Memory over time, and what live and read say of the same packets. usage: hour.py PLACE PID SECONDS"""
import json
import os
import sys

place, live, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
rows = [line.split() for line in open(f"{place}/memory")]
names = {live: "capture"}
for pid in sorted({row[0] for row in rows}):
    of = [(int(rss) / 1000, float(ticks)) for at, rss, ticks in rows if at == pid]
    if len(of) < 4:
        continue
    rss, half = [one for one, _ in of], len(of) // 2
    cpu = (of[-1][1] - of[0][1]) / os.sysconf("SC_CLK_TCK") / seconds
    print(
        f"{names.get(pid, 'reader'):8} MB: first {rss[0]:.1f}, highest of the first half {max(rss[:half]):.1f}, of the second"
        f" {max(rss[half:]):.1f}, last {rss[-1]:.1f}; {cpu:.3f} processors"
    )
said, read = open(f"{place}/said").read(), open(f"{place}/read").read()
if said.startswith("{"):
    ways = [line for line in said.splitlines() if '"tcpwhy.live/1"' in line]
    end = json.loads("\n".join(line for line in said.splitlines() if '"tcpwhy.live/1"' not in line))
    read, last = json.loads(read), json.loads(ways[-1])
    parts = ["answer", "elapsed_ns", "bill", "findings", "exchanges"]
    differ = [part for part in parts if end.get(part) != read.get(part)]
    # Its lists are the beginning of those of read.
    lists = {one["id"]: one for one in read["connections"]}
    for one in end["connections"]:
        exchanges, other = one.pop("exchanges"), lists.pop(one["id"])
        if exchanges != other.pop("exchanges")[: len(exchanges)] or one != other:
            differ.append(f"connection {one['id']}")
    print(f"{len(ways)} answers; at the end {end['exchanges']} exchanges; different from read: {', '.join(differ) or 'nothing'}")
    print(f"the last answer on the way: {last['exchanges']} exchanges, {last['packets']} packets, {last['dropped']} dropped")
else:
    lines = said.splitlines()
    ways = [i for i, line in enumerate(lines) if line.startswith("== after")]
    end = ways[-1] + 1
    while lines[end].startswith("  "):
        end += 1
    told = "\n".join(lines[end:]).split("Sockets of this machine:")[0].strip()
    differ = told != read.strip()
    print(f"{len(ways)} answers; the last: {lines[ways[-1]]}")
    print(f"at the end {len(told)} characters, {'other than' if differ else 'the same as'} those of read; they begin:")
    print("\n".join(told.splitlines()[:4]))
sys.exit(bool(differ))
