// What does one direction of a connection come to over time? What was sent, acknowledged and offered, as tcptrace's users know it.

import type { Packets } from "./load"

export interface Stream {
  /** Data: first and last time of a row, first byte and the byte behind the last, whether it was sent before. */
  data: { t: number; u: number; from: number; to: number; again: boolean; row: number }[]
  /** Steps of the acknowledgement and of the window's edge. */
  acks: { t: number; ack: number; edge: number; window: number; again: number; row: number }[]
  sacks: { t: number; from: number; to: number }[]
  /** Bytes that were sent and not acknowledged yet, at each change. */
  flight: { t: number; bytes: number }[]
  /** How long each acknowledgement came behind the last byte that it covers. */
  delays: { t: number; ns: number; row: number }[]
  packets: number
  resent: number
}

/** What `from` (0 client, 1 server) sent. */
export function stream(packets: Packets, from: number): Stream {
  const out: Stream = { data: [], acks: [], sacks: [], flight: [], delays: [], packets: 0, resent: 0 }
  let [next, una, dups] = [0, -1, 0]
  const waiting: { to: number; t: number }[] = []
  let head = 0
  for (let row = 0; row < packets.packet.length; row++) {
    const t = packets.at_ns[row]
    if (packets.from[row] === from) {
      out.packets += packets.count[row]
      const [start, len] = [packets.offset[row], packets.len[row]]
      if (len === 0) continue
      if (una < 0) una = start
      const again = start < next
      out.resent += again ? packets.count[row] : 0
      out.data.push({ t, u: t + packets.lasts_ns[row], from: start, to: start + len, again, row })
      if (start + len > next) {
        next = start + len
        waiting.push({ to: next, t: t + packets.lasts_ns[row] })
      }
    } else if (packets.ack[row] >= 0) {
      const ack = packets.ack[row]
      const last = out.acks[out.acks.length - 1]
      const again = last !== undefined && ack === last.ack && packets.len[row] === 0 && next > ack && packets.window[row] === last.window
      dups = again ? dups + 1 : 0
      if (ack > una && una >= 0) {
        let sent = -1
        while (head < waiting.length && waiting[head].to <= ack) sent = waiting[head++].t
        if (sent >= 0 && t >= sent) out.delays.push({ t, ns: t - sent, row })
      }
      una = Math.max(una, ack)
      out.acks.push({ t: t + packets.lasts_ns[row], ack, edge: ack + packets.window[row], window: packets.window[row], again: dups, row })
    } else continue
    if (una >= 0) out.flight.push({ t, bytes: Math.max(0, next - una) })
  }
  for (let i = 0; i < packets.sacks.row.length; i++) {
    const row = packets.sacks.row[i]
    if (packets.from[row] !== from) out.sacks.push({ t: packets.at_ns[row], from: packets.sacks.start[i], to: packets.sacks.end[i] })
  }
  return out
}
