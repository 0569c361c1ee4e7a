// Made from docs/schema/tcpwhy.page.3.schema.json by `npm run contract`.

/**
 * A column of integers, each as its difference to the one before, the first one's to 0. A list of one number among them has the difference in front of it come again so many times.
 */
export type Column = (number | [number])[]

/**
 * tcpwhy.page/3: what the page of `tcpwhy read --html` gets. Times are integer nanoseconds since the origin, sizes bytes. Fields are added, never renamed, within a schema number.
 */
export interface Page {
  schema: "tcpwhy.page/3"
  /**
   * Time of the first packet, RFC 3339, to the nanosecond, UTC.
   */
  origin: string
  span_ns: number
  /**
   * By how much the reader's clock is ahead of UTC.
   */
  offset_s: number
  /**
   * The command that reads the same again.
   */
  again: string
  /**
   * Addresses were replaced.
   */
  anonymized: boolean
  /**
   * Whoever shows the page can be asked for what is not in it: `data?from=NS&to=NS` for the exchanges of a span since the origin, `data?connection=ID` for the packets of a connection, both together for those of a span.
   */
  served: boolean
  /**
   * The document tcpwhy.report/1, with an empty list of connections.
   */
  report: {
    [k: string]: unknown
  }
  /**
   * In the order of the numbers that columns have.
   */
  causes: Cause[]
  stacks: string[]
  /**
   * What limits all of it, in words.
   */
  notes: string[]
  /**
   * One for each finding of the report.
   */
  told: Told[]
  connections: Connections
  exchanges: Exchanges
  packets: Packets[]
  [k: string]: unknown
}
export interface Cause {
  name: string
  class: "mechanism" | "trouble" | "program" | "path" | "unknown"
  title: string
  [k: string]: unknown
}
export interface Told {
  sentence: string
  /**
   * It takes a share that makes a service slow.
   */
  matters: boolean
  /**
   * The text shows it: there is something to act on.
   */
  shown: boolean
  /**
   * Where to look: a display filter, and the file whose numbers it has, where there are several.
   */
  packets: {
    of?: string
    filter: string
    [k: string]: unknown
  }[]
  [k: string]: unknown
}
/**
 * The listed connections, in the order of their numbers. client: Place among the endpoints. server: Place among the endpoints. rtt_min_ns: -1 where nothing shows it. vantage: 0 client, 1 server, 2 middle, 3 unknown. assumed: 1 where who is client is a guess. billed: Setups, exchanges and messages billed, listed or not. elapsed_ns: What they took together. cause: What took most of it; -1 where nothing was billed.
 */
export interface Connections {
  endpoints: string[]
  id: Column
  client: Column
  server: Column
  first_ns: Column
  last_ns: Column
  packets: Column
  client_bytes: Column
  server_bytes: Column
  rtt_min_ns: Column
  vantage: Column
  assumed: Column
  billed: Column
  elapsed_ns: Column
  cause: Column
  [k: string]: unknown
}
/**
 * Setups, exchanges, one-way messages and subscriptions, in the order of their starts. Of many a sample of the whole capture, in which an exchange is the likelier the longer it took; and all of the connections that are drawn packet by packet. connection: Row among the connections. n: Number within the connection. kind: 0 setup, 1 exchange, 2 one-way, 3 subscription. packets: From the first packet to the last, both included. stands_for: So many exchanges; 0 where others stand for it. lines: Rows of the bill's columns, one exchange after the other. bill_side: 0 client, 1 server, 2 path, 3 unknown. bill_confidence: 0 possible, 1 likely, 2 certain.
 */
export interface Exchanges {
  connection: Column
  n: Column
  kind: Column
  start_ns: Column
  elapsed_ns: Column
  request_bytes: Column
  reply_bytes: Column
  first_packet: Column
  packets: Column
  stands_for: Column
  lines: Column
  bill_cause: Column
  bill_side: Column
  bill_confidence: Column
  bill_ns: Column
  [k: string]: unknown
}
/**
 * A connection, packet by packet: what its client and its server sent. The rows of both follow each other by the numbers of their packets.
 */
export interface Packets {
  /**
   * The connection's number.
   */
  id: number
  /**
   * A row reaches over so long at most; 0 where each packet has its own.
   */
  merged_ns: number
  /**
   * Packets behind these, for which there was no room.
   */
  omitted: number
  /**
   * Added to an offset of client and server: the relative sequence number of Wireshark; that of a SYN is one less.
   *
   * @minItems 2
   * @maxItems 2
   */
  seq_base: [number, number]
  /**
   * Client, server.
   *
   * @minItems 2
   * @maxItems 2
   */
  sent: [Sent, Sent]
  rounds: Rounds
  [k: string]: unknown
}
/**
 * What one end sent. A row stands for several packets where nothing is to be said of each. packet: Frame number of the first. lasts_ns: To the last packet of the row. offset: Of the first byte in its direction's stream. len: Payload. ack: Offset in the other direction's stream; -1 without ACK. window: Bytes. raw: The window's field where its scale is not known; else -1. flags: As in the header: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK. exchange: -1 where it belongs to none. trigger: What let it leave: 0 write, 1 packet, 2 timer, 3 burst, 4 control. released_ago: The packet that let it leave has a frame number that is so much smaller; 0 where none did. lines: What the time before a packet was billed to: rows of cause and ns, one packet after the other. ns: How long; the last of a packet less what the others leave of the time since the last packet of the row before.
 */
export interface Sent {
  packet: Column
  at_ns: Column
  lasts_ns: Column
  count: Column
  offset: Column
  len: Column
  ack: Column
  window: Column
  raw: Column
  flags: Column
  exchange: Column
  trigger: Column
  released_ago: Column
  lines: Column
  cause: Column
  ns: Column
  sacks: Sacks
  ways: Ways
  [k: string]: unknown
}
/**
 * SACK blocks, as offsets in the other direction's stream.
 */
export interface Sacks {
  row: Column
  start: Column
  end: Column
  [k: string]: unknown
}
/**
 * One-way delays, of packets that two captures have: the time between both, as their clocks show it when each way is given half of the smallest round trip between them.
 */
export interface Ways {
  row: Column
  ns: Column
  [k: string]: unknown
}
/**
 * Round trips of transfers. cause: -1 where nothing was billed.
 */
export interface Rounds {
  exchange: Column
  start_ns: Column
  took_ns: Column
  flight_bytes: Column
  window_bytes: Column
  cause: Column
  ns: Column
  [k: string]: unknown
}
