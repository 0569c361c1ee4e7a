//! What is each command used for? The examples at the end of their help.

pub(crate) const LIST_EXAMPLES: &str = "\
Examples:
  tcpwhy list slow.pcapng                                   the most expensive connections first
  tcpwhy list slow.pcapng --sort slowest --top 10
  tcpwhy read slow.pcapng --connection 10.0.0.5:40312       one of them";

pub(crate) const READ_EXAMPLES: &str = "\
Examples:
  tcpwhy read slow.pcapng
  tcpwhy read slow.pcapng --connection 3 --exchange 7      its packets, and what each waited for
  tcpwhy read ring*.pcap.zst --filter 'port 443 and not host 10.0.0.9'
  tcpwhy read huge.pcap --from 2026-11-21T10:00:00Z --to 2026-11-21T10:05:00Z
  ssh server tcpdump -U -s 128 -c 100000 -w - port 8080 | tcpwhy read -
  tcpwhy read slow.pcapng --html report.html               a page to look at and to send
  tcpwhy read slow.pcapng --annotate why.pcapng            the same packets, with comments for Wireshark
  tcpwhy read ci.pcap --json --fail-on nagle-delayed-ack --fail-on 'rto p99>100ms' > bill.json
  tcpwhy read good.pcap --save-baseline good.json; tcpwhy read new.pcap --against good.json --tolerance 20%
  tcpwhy read client.pcap server.pcap                      both ends: each connection is billed once

Ctrl-C (or SIGTERM) ends the input and prints the answer of what was read; a second one aborts.

Exit status:
  0  analysed
  1  no input could be read
  2  wrong usage
  3  a --fail-on was met, or something is slower than --against allows: what and why is on standard error, and under `gate` in --json
  4  analysed, but for an input that could not be read at all
  5  nothing to analyse: no packets, no TCP, or none that --filter, --from and --to ask for; no --fail-on is passed then
The status is the same where nobody reads the output to its end.";
