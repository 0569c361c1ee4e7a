//! What is each command used for? The examples at the end of its help.

pub(crate) const LIST_EXAMPLES: &str = "\
Examples:
  tcpwhy list slow.pcapng                                   the most expensive connections first
  tcpwhy list slow.pcapng --sort slowest --top 10
  tcpwhy read slow.pcapng --connection 10.0.0.5:40312       one of them";

pub(crate) const READ_EXAMPLES: &str = "\
Examples:
  tcpwhy read slow.pcapng
  tcpwhy read slow.pcapng --connection 3 --exchange 7      the packets of one exchange, and what each waited for
  tcpwhy read ring*.pcap.zst --filter 'port 443 and not host 10.0.0.9'
  tcpwhy read huge.pcap --from 2026-11-21T10:00:00Z --to 2026-11-21T10:05:00Z
  ssh server tcpdump -U -s 128 -c 100000 -w - port 8080 | tcpwhy read -
  tcpwhy read slow.pcapng --html report.html               a page to share
  tcpwhy read slow.pcapng --annotate why.pcapng            the packets, with comments for Wireshark
  tcpwhy read ci.pcap --json --fail-on nagle-delayed-ack --fail-on 'rto p99>100ms' > bill.json
  tcpwhy read good.pcap --save-baseline good.json; tcpwhy read new.pcap --against good.json --tolerance 20%
  tcpwhy read client.pcap server.pcap                      both ends of the path; each connection is billed once

Ctrl-C (or SIGTERM) stops reading and prints the answer so far; a second one aborts.

Exit status:
  0  success
  1  no input could be read
  2  invalid usage
  3  a --fail-on condition was met, or something is slower than --against allows; standard error says which, as does `gate` in --json
  4  some inputs could not be read; the others were analysed
  5  nothing to analyse: no packets, no TCP, or nothing that matches --filter, --from and --to; --fail-on does not pass
The status does not depend on whether the output is read to the end.";
