"""Why a case is not right: what the packets have, and what they do not. By the beginning of its name."""

GROWS = (
    "Linux opens the window by what the program has read in a round trip (tcp_rcv_space_adjust): a reader that pauses keeps it small "
    "without leaving a byte unread when an acknowledgement leaves, and the window looks as if it were still growing"
)
ASKS = "On the wire a client that asks again after 35 ms, of a server that takes 250 to 900 ms, looks the same; the pairing is called a guess"
BOTH_SPEAK = "gRPC waits for the server's SETTINGS before its first call; both ends begin with their own, so that no packet says that one waited"

WHY = {
    "server-asks": ASKS,
    "grpc-stream": BOTH_SPEAK,
    "reads-": GROWS,
    "sink-": GROWS,
    "sndbuf-at-50ms": "From the receiver, flights that a send buffer of 32 KB ends looked like a start in this recording: they grew by its overhead",
    "wire-request-dropped": "Both ends' timers ran out within 0.1 ms in this recording, and the client's acknowledgement overtook the copy of its request",
    "lo-": "Within a host, what a probe sends 4 ms behind the last segment is told from a program that pauses only where it waited for 8 ms",
    "nginx-idle-restart": "Beside the sender one of the two window updates has come when it goes on, and the window is not yet half as large again",
    "thin-way-for-acks": "The way back lets an acknowledgement through each 2 ms, and the sender follows: at the receiver that is the beat of one that paces; possible",
    "paced-30m-bbr": "Beside a sender that paces evenly, acknowledgements come back as evenly as out of a link of that rate",
}
