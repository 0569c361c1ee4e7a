"""Why a case is not right: what the packets have, and what they do not. By the beginning of its name."""

GROWS = (
    "Linux opens the window by what the program has read in a round trip (tcp_rcv_space_adjust): a reader that pauses keeps it small "
    "without leaving a byte unread when an acknowledgement leaves, and the window looks as if it were still growing"
)
ASKS = "On the wire a client that asks again after 35 ms, of a server that takes 250 to 900 ms, looks the same; the pairing is called a guess"
BOTH_SPEAK = "gRPC waits for the server's SETTINGS before its first call; both ends begin with their own, so that no packet says that one waited"
SAME = (
    "The window stays where a buffer of the default size begins: because somebody set it, or because its reader is slow (tcp_rcv_space_adjust). "
    "The packets are the same, and what a fast reader would have saved is more where nothing is set"
)
PART = (
    "Pauses of 20 ms lie within a round trip of 50 ms: they hold up a part of each window, by acknowledgements of a few segments that are late, "
    "which beside the sender prove no reader"
)
AGAIN = "Its sender goes on after 7 ms with more than a segment, though nothing was acknowledged: as a program does that writes again"
LONG_TICKET = (
    "Go gives out its ticket with its Finished: what comes first behind the client's is the answer's beginning, and as long as tickets are elsewhere; possible"
)
STATUS = (
    "A replica says each second how far it is, in 61 bytes of cipher, and its server what was written when it is: what comes 400 ms behind such a word looks like an answer"
)
PIECES = "The rest of each piece waits for the congestion window, which covers a part of the program's pause; from afar the pauses are what shows, possible"
EIGHT_KB = "The proxy (Tomcat) writes pieces, each pushed, and flights end with a piece: far from it, a full send buffer looks like a program that pauses; possible"

WORDS = (
    "Through TLS a ping, its answer and an event are records of some 30 bytes, and no packet tells which of them answers which: possible, and one end takes "
    "for the end of an exchange what is the beginning of the next one at the other"
)
TAIL = "The tail of an answer leaves when its send buffer has room again, which is when Nagle would let it go"
ROOM = "In this recording the client's own window of 133,120 bytes was full for two rounds, and no more than 91 segments were under way: right by the packets"
UNEVEN = "In this recording four flights end below the window and unevenly, as a send buffer ends them; possible"

WHY = {
    "tls-websocket": WORDS,
    "kafka-send-buffer": f"{TAIL}. {ROOM}",
    "openvpn-http": "In a tunnel what Nagle holds delays what comes next as well: the packets show each hold, and not which of them anybody waited for",
    "svn-checkout": "svnserve writes in pieces and does not set TCP_NODELAY: a hold of Nagle's that the case does not expect",
    "tls-go-rows-h1": LONG_TICKET,
    "tls-postgres-replica": STATUS,
    "tls-chromium-page": "A browser pauses for 77 ms on a way of 80 ms, beside an acknowledgement: in this recording that is how long Nagle would have held it",
    "haproxy-send-buffer": EIGHT_KB,
    "tomcat-send-buffer": EIGHT_KB,
    "server-asks": ASKS,
    "reads-1m-at-0ms": AGAIN,
    "reads-16k-at-10ms": SAME,
    "reads-64k-at-50ms-rcvbuf": PART,
    "sink-64k-at-50ms-rcvbuf": PART,
    "grpc-stream": BOTH_SPEAK,
    "nbd-copy": "Two answers of 64 KB leave in each round, so that all flights are alike, as a send buffer makes them; possible",
    "reads-": GROWS,
    "sink-": GROWS,
    "sndbuf-at-50ms": "From the receiver, flights that a send buffer of 32 KB ends looked like a start in this recording: they grew by its overhead",
    "wire-request-dropped": "Both ends' timers ran out within 0.1 ms in this recording, and the client's acknowledgement overtook the copy of its request",
    "lo-": "Within a host, what a probe sends 4 ms behind the last segment is told from a program that pauses only where it waited for 8 ms",
    "nginx-idle-restart": "Beside the sender one of the two window updates has come when it goes on, and the window is not yet half as large again",
    "thin-way-for-acks": "The way back lets an acknowledgement through each 2 ms, and the sender follows: at the receiver that is the beat of one that paces; possible",
    "six-slow-reader": "In this recording the server's first flights end in a small segment, which its reader's host acknowledges 23 ms later, when the program reads: slow start waits for that",
    "pieces-of-16k-every-10ms": PIECES,
    "slow-reader-no-timestamps": UNEVEN,
    "wire-paced-20m": "In this recording the first pieces leave 2.9 and 6.5 ms apart, and all others 5.8: which of the first ones its pace held up no packet tells; possible",
    "grpc-bidirectional": "The client's program has 1.1 ms more than its packets for one of its messages: the machine had stopped it",
    "paced-30m-bbr": "Beside a sender that paces evenly, acknowledgements come back as evenly as out of a link of that rate",
}

# Cases of whose cause one end's packets have nothing.
LONGER = "When an answer arrives, on a way back that became longer, no packet tells its sender: only the asker's capture has the queueing"
AT_ONE_END = {"way-becomes-longer-thinks-0": LONGER, "way-becomes-longer-thinks-40": LONGER}

# Why the bills of both ends differ.
OVERTAKEN = "What a segment that was overtaken holds up at the end of a flight shows where it arrives, and is a part of the round trip elsewhere"
SPACED = "BBR spaces what it sends: which wait was for an acknowledgement, and which for its pace, is exact beside the sender only"

GOODBYE = "The client says goodbye and closes at once: beside the server its alert passes before the FIN does, as an answer"
IN_CIPHER = "What may be news in cipher goes on with an exchange at one end and begins one at the other, as other packets had been heard by then; possible"
AT_ONCE = "Streams under way at once are one exchange near the client, and two where an answer passes before the next question does"
BUFFERED = "From the receiver, flights that a send buffer ends look like a start while they grow by its overhead"
BEHIND_LOSS = (
    "Behind a loss the congestion window is about what the way holds: beside the sender a wait is for an acknowledgement as often as for the link, which only its end sees busy"
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
    "zmq-work": "Both ends of ZeroMQ say who they are at once, and a byte of each crosses: how many rounds were waited for is possible only",
    "kafka-send-buffer": TAIL,
    "upload-slow-sink-bbr": SPACED,
    "haproxy-send-buffer": EIGHT_KB,
    "tls-lost-hello": "Beside the client, a ClientHello that was lost waits for its timer from the write on; beside the server no packet says when it was written",
    "tomcat-send-buffer": EIGHT_KB,
    "bulk-reordered": OVERTAKEN,
    "reordered-upload": OVERTAKEN,
    "sndbuf-64k-bbr": SPACED,
    "unscaled-bbr": SPACED,
    "iperf3-paced": "Beside the receiver a paced segment that comes a little late, or together with the next, may have been the link's",
    "wire-request-dropped": WHY["wire-request-dropped"],
    "grpc-stream": BOTH_SPEAK,
    "websocket-many-at-once": "WebSocket's frames do not say which answers which; beside the asker other pairs are likely than beside the answerer",
    "backlog-full": "Beside the client no packet says whether the path or the server's host dropped its SYN",
    "sndbuf-at-50ms": WHY["sndbuf-at-50ms"],
    "thin-way-for-acks": WHY["thin-way-for-acks"],
    "nbd-copy": WHY["nbd-copy"],
    "icecast-listen": "The burst that a listener begins with ends at the initial window, which shows beside the server only",
    "sndbuf-16k": BUFFERED,
    "wire-cork-forgotten": "Where the sender is far, a program may have taken as long each time as its timer does; possible",
    "pieces-of-16k-every-10ms": PIECES,
    "nginx-idle-restart": WHY["nginx-idle-restart"],
    "tls-events-h2-and-asks": IN_CIPHER,
    "tls-websocket-both": IN_CIPHER,
    "tls-chromium-events": IN_CIPHER,
    "tls-chromium-page": "A browser resets one of its connections before the SYN-ACK has come: at the server's end nothing of that one shows how long its way is",
    "reads-1k-at-50ms": GROWS,
    "sink-16k-at-50ms": PART,
    "sink-64k-at-50ms": PART,
    "slow-reader-no-timestamps": UNEVEN,
    "bulk-small-queue": BEHIND_LOSS,
    "burst-loss": BEHIND_LOSS,
    "rabbit-slow-consumer": "Its consumer's pauses hold the broker's window shut by a part: from afar that is the broker's own pause as often",
    "reads-1m-at-10ms": AGAIN,
    "bgp-session": "What leaves with an acknowledgement was held by Nagle beside its sender; beside the receiver it came as an answer does",
}
