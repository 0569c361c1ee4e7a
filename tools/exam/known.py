"""Why a case is not right: what the packets have, and what they do not. By the beginning of its name."""

GROWS = (
    "Linux opens the window by what the program has read in a round trip (tcp_rcv_space_adjust): a reader that pauses keeps it small "
    "without leaving a byte unread when an acknowledgement leaves, and the window looks as if it were still growing"
)
ASKS = "On the wire it looks the same as a client that sends its next request after 35 ms to a server that takes 250 to 900 ms; the matching is marked as a guess"
BOTH_SPEAK = "gRPC waits for the server's SETTINGS before its first call; both ends begin with their own, so no packet shows that one waited"
SAME = (
    "The window stays where a buffer of the default size begins: because somebody set it, or because its reader is slow (tcp_rcv_space_adjust). "
    "The packets are the same, and what a fast reader would have saved is more where nothing is set"
)
PART = (
    "Pauses of 20 ms lie within a round trip of 50 ms: they delay a part of each window, by late acknowledgements of a few segments, "
    "which do not prove a slow reader near the sender"
)
UNTIMED = "Without time stamps, nothing near the client tells a server that sometimes takes its time from a path that stands still for less than any host delays an acknowledgement"
AGAIN = "Its sender continues after 7 ms with more than a segment, though nothing was acknowledged, like a program that writes again"
LONG_TICKET = (
    "Go sends its ticket with its Finished: the first data after the client's is the beginning of the reply, and has the length of a ticket elsewhere; possible"
)
STATUS = (
    "A replica reports its position each second, in 61 encrypted bytes, and its server sends what was written when it was written: data 400 ms after such a report looks like a reply"
)
PIECES = "The rest of each piece waits for the congestion window, which covers a part of the program's pause; from the far end only the pauses show, possible"
EIGHT_KB = "The proxy (Tomcat) writes pieces, each pushed, and flights end with a piece: from the far end, a full send buffer looks like a program that pauses; possible"

WORDS = (
    "Through TLS a ping, its echo and an event are records of some 30 bytes, and no packet tells which answers which: possible, and one end takes "
    "the end of an exchange for the beginning of the next one"
)
TAIL = "The tail of a reply leaves when its send buffer has room again, which is when Nagle would release it"
ROOM = "In this recording the client's own window of 133,120 bytes was full for two rounds, and at most 91 segments were in flight: right by the packets"
UNEVEN = "In this recording four flights end below the window and unevenly, as a send buffer ends them; possible"

WHY = {
    "tls-websocket": WORDS,
    "kafka-send-buffer": f"{TAIL}. {ROOM}",
    "openvpn-http": "In a tunnel, data held by Nagle also delays the data after it: the packets show each hold, but not which of them anybody waited for",
    "svn-checkout": "svnserve writes in pieces and does not set TCP_NODELAY: a Nagle hold that the case does not expect",
    "tls-go-rows-h1": LONG_TICKET,
    "tls-postgres-replica": STATUS,
    "tls-chromium-page": "A browser pauses for 77 ms on a path of 80 ms, until an acknowledgement: in this recording Nagle would have held it just as long",
    "haproxy-send-buffer": EIGHT_KB,
    "tomcat-send-buffer": EIGHT_KB,
    "server-asks": ASKS,
    "reads-1m-at-0ms": AGAIN,
    "reads-16k-at-10ms": SAME,
    "reads-64k-at-50ms-rcvbuf": PART,
    "sink-64k-at-50ms-rcvbuf": PART,
    "grpc-stream": BOTH_SPEAK,
    "nbd-copy": "Two replies of 64 KB leave in each round trip, so all flights are alike, as with a send buffer; possible",
    "reads-": GROWS,
    "sink-": GROWS,
    "sndbuf-at-50ms": "From the receiver, flights limited by a send buffer of 32 KB looked like slow start in this recording: they grew by its overhead",
    "wire-request-dropped": "Both ends' timers expired within 0.1 ms in this recording, and the client's acknowledgement overtook the retransmission of its request",
    "lo-": "Within a host, a probe 4 ms after the last segment can be told from a program that pauses only if it waited for 8 ms",
    "nginx-idle-restart": "Near the sender, only one of the two window updates has come when it continues, and the window has not yet grown by half",
    "thin-way-for-acks": "The return path lets an acknowledgement through every 2 ms, and the sender follows: at the receiver that looks like pacing; possible",
    "six-slow-reader": "In this recording the server's first flights end in a small segment, which the reader's host acknowledges 23 ms later, when the program reads: slow start waits for that",
    "pieces-of-16k-every-10ms": PIECES,
    "slow-reader-no-timestamps": UNEVEN,
    "wire-paced-20m": "In this recording the first pieces leave 2.9 and 6.5 ms apart, and all others 5.8: no packet tells which of the first ones pacing delayed; possible",
    "grpc-bidirectional": "The client's program measured 1.1 ms more than its packets show for one of its messages: the machine had stopped it",
    "radio-mobile-rpc-no-timestamps": UNTIMED,
    "radio-mobile-replies-no-timestamps": UNTIMED,
    "radio-hotspot-rpc-no-timestamps": UNTIMED,
    "radio-hotspot-replies-no-timestamps": UNTIMED,
    "paced-30m-bbr": "Near a sender that paces evenly, acknowledgements come back as evenly as from a link of that rate",
}

# Cases of whose cause one end's packets have nothing.
LONGER = "No packet tells the sender when its reply arrives over a return path that has become longer: only the client's capture shows the queueing"
AT_ONE_END = {"way-becomes-longer-thinks-0": LONGER, "way-becomes-longer-thinks-40": LONGER}

# Why the bills of both ends differ.
OVERTAKEN = "A reordered segment at the end of a flight causes a delay that shows where it arrives, and is part of the round trip elsewhere"
SPACED = "BBR paces its segments: which wait was for an acknowledgement, and which for pacing, is exact only near the sender"

GOODBYE = "The client sends an alert and closes at once: near the server the server's alert passes before the FIN does, like a reply"
IN_CIPHER = "A possible news message in encrypted data continues an exchange at one end and begins one at the other, where other packets had arrived by then; possible"
AT_ONCE = "Concurrent streams are one exchange near the client, and two where a reply passes before the next request does"
BUFFERED = "From the receiver, flights limited by a send buffer look like slow start while they grow by its overhead"
BEHIND_LOSS = (
    "After a loss the congestion window is about what the path holds: near the sender a wait is for an acknowledgement as often as for the link, which only that end sees busy"
)

DIFFER = {
    "tls-websocket-asks": WORDS,
    "tls-websocket-news": WORDS,
    "tls-jdbc-sleeps": GOODBYE,
    "tls-postgres-news-and-asks": GOODBYE,
    "tls-begins-in-vain": GOODBYE,
    "tls-imap-idle": IN_CIPHER,
    "tls-mqtt-qos-2": IN_CIPHER,
    "tls-nats-news-and-asks": IN_CIPHER,
    "tls-grpc-news-and-calls": IN_CIPHER,
    "tls-grpc-at-once": AT_ONCE,
    "tls-go-many-at-once": AT_ONCE,
    "tls-send-buffer": BUFFERED,
    "sndbuf-upload-at-50ms": BUFFERED,
    "zmq-work": "Both ends of ZeroMQ send their greetings at once, and a byte of each crosses: the number of round trips waited for is only possible",
    "kafka-send-buffer": TAIL,
    "upload-slow-sink-bbr": SPACED,
    "haproxy-send-buffer": EIGHT_KB,
    "tls-lost-hello": "Near the client, a lost ClientHello waits for its timer from the write on; near the server no packet shows when it was written",
    "tomcat-send-buffer": EIGHT_KB,
    "bulk-reordered": OVERTAKEN,
    "reordered-upload": OVERTAKEN,
    "sndbuf-64k-bbr": SPACED,
    "unscaled-bbr": SPACED,
    "iperf3-paced": "Near the receiver, a paced segment that comes a little late, or together with the next, may have been delayed by the link",
    "wire-request-dropped": WHY["wire-request-dropped"],
    "grpc-stream": BOTH_SPEAK,
    "websocket-many-at-once": "WebSocket's frames do not say which answers which; near the client other pairs are likely than near the server",
    "backlog-full": "Near the client no packet shows whether the path or the server's host dropped its SYN",
    "sndbuf-at-50ms": WHY["sndbuf-at-50ms"],
    "thin-way-for-acks": WHY["thin-way-for-acks"],
    "nbd-copy": WHY["nbd-copy"],
    "icecast-listen": "A listener's initial burst ends at the initial window, which shows only near the server",
    "sndbuf-16k": BUFFERED,
    "wire-cork-forgotten": "Far from the sender, a program may have taken as long each time as its timer does; possible",
    "pieces-of-16k-every-10ms": PIECES,
    "nginx-idle-restart": WHY["nginx-idle-restart"],
    "tls-events-h2-and-asks": IN_CIPHER,
    "tls-websocket-both": IN_CIPHER,
    "tls-chromium-events": IN_CIPHER,
    "tls-chromium-page": "A browser resets one of its connections before the SYN-ACK has come: at the server's end nothing shows the round trip of that one",
    "reads-1k-at-50ms": GROWS,
    "sink-16k-at-50ms": PART,
    "sink-64k-at-50ms": PART,
    "slow-reader-no-timestamps": UNEVEN,
    "bulk-small-queue": BEHIND_LOSS,
    "burst-loss": BEHIND_LOSS,
    "rabbit-slow-consumer": "Its consumer's pauses keep the broker's window partly closed: from the far end that looks like the broker's own pause as often",
    "reads-1m-at-10ms": AGAIN,
    "bgp-session": "Near its sender, data that leaves with an acknowledgement was held by Nagle; near the receiver it came as a reply does",
}
