// Which packet waited for which? An exchange as two lines with its packets between them, the waits as bands, coloured and named.

import { behind, h, s, table } from "./dom"
import type { Packets } from "./load"
import type { Context } from "./view"
import { bytes, count, counted, time } from "./words"

/** More packets than these are folded where nothing happens. */
const SHOWN = 36
const [LEFT, RIGHT, WIDTH] = [170, 560, 720]
/** The first packet's place, and the room that a packet's line takes. */
const [TOP, LINE] = [50, 24]

interface Gap { cause: number; ns: number }

/** Rows of an exchange's packets. */
export function rowsOf(packets: Packets, exchange: number): number[] {
  const rows = []
  for (let row = 0; row < packets.packet.length; row++) if (packets.exchange[row] === exchange) rows.push(row)
  return rows
}

export function flagsOf(flags: number): string {
  return [[2, "S"], [1, "F"], [4, "R"], [8, "P"], [16, "."]].map(([bit, letter]) => ((flags as number) & (bit as number) ? letter : "")).join("")
}

/** The relative sequence and acknowledgement number as Wireshark shows them: 32 bits, so that what lies in front of the first packet has a large one. */
function seqOf(packets: Packets, row: number): string {
  return count((packets.offset[row] + packets.seqBase[packets.from[row]] - (packets.flags[row] & 2 ? 1 : 0)) >>> 0)
}

function ackOf(packets: Packets, row: number): string {
  return packets.ack[row] < 0 ? "" : count((packets.ack[row] + packets.seqBase[1 - packets.from[row]]) >>> 0)
}

/** In bytes, or as it stands in the packet where its scale is not known. */
function windowOf(packets: Packets, row: number): string {
  return packets.raw[row] < 0 ? count(packets.window[row]) : `${count(packets.raw[row])} raw`
}

export function said(packets: Packets, row: number): string {
  const parts = [flagsOf(packets.flags[row])]
  if (packets.len[row] > 0 || packets.flags[row] & 3) parts.push(`${seqOf(packets, row)}+${count(packets.len[row])}`)
  if (packets.ack[row] >= 0) parts.push(`ack ${ackOf(packets, row)}`)
  parts.push(`win ${windowOf(packets, row)}`)
  return parts.join(" ")
}

export function trigger(packets: Packets, row: number): string {
  const side = packets.from[row] === 0 ? "client" : "server"
  return [`${side} writes`, `released by #${packets.released_by[row]}`, "timer expired", "same burst", ""][packets.trigger[row]]
}

function gapsOf(packets: Packets): Map<number, Gap[]> {
  const gaps = new Map<number, Gap[]>()
  for (let i = 0; i < packets.gaps.row.length; i++) {
    const row = packets.gaps.row[i]
    gaps.set(row, [...(gaps.get(row) ?? []), { cause: packets.gaps.cause[i], ns: packets.gaps.ns[i] }])
  }
  return gaps
}

/** What is drawn: the beginning, the end and what surrounds the longest waits; between them how many are left out. */
function folded(rows: number[], gaps: Map<number, Gap[]>): (number | { left: number })[] {
  if (rows.length <= SHOWN) return rows
  const cost = (row: number) => (gaps.get(row) ?? []).reduce((sum, gap) => sum + gap.ns, 0)
  const kept = new Set([0, 1, 2, 3, rows.length - 3, rows.length - 2, rows.length - 1])
  const longest = rows.map((row, at) => [cost(row), at]).filter(([ns]) => ns > 0).sort((a, b) => b[0] - a[0])
  for (const [, at] of longest.slice(0, 8)) for (let near = at - 2; near <= at + 1; near++) if (near >= 0 && near < rows.length) kept.add(near)
  const out: (number | { left: number })[] = []
  let left = 0
  rows.forEach((row, at) => {
    if (kept.has(at)) {
      if (left > 0) out.push({ left })
      left = 0
      out.push(row)
    } else left += 1
  })
  return out
}

/** A wait between two moments: the time that was billed before a packet ends with it. */
interface Band { from: number; to: number; cause: number; ns: number }

function bandsOf(packets: Packets, rows: number[], gaps: Map<number, Gap[]>): Band[] {
  const bands: Band[] = []
  for (const row of rows) {
    const own = gaps.get(row) ?? []
    let from = packets.at_ns[row] - own.reduce((sum, gap) => sum + gap.ns, 0)
    for (const { cause, ns } of own) bands.push({ from, to: (from += ns), cause, ns })
  }
  return bands
}

/** Where each moment stands: packets a line apart at least, long waits further apart than short ones, and every band has room for its name. */
function scale(shown: (number | { left: number })[], packets: Packets, bands: Band[]) {
  const isPacket = new Set<number>()
  const folds: [number, number, number][] = []
  let before = -Infinity
  let left = 0
  for (const item of shown) {
    if (typeof item === "object") left = item.left
    else {
      const at = packets.at_ns[item]
      if (left > 0) folds.push([before, at, left])
      isPacket.add(at)
      before = at
      left = 0
    }
  }
  const times = [...new Set([...isPacket, ...bands.flatMap((band) => [band.from, band.to])])].sort((a, b) => a - b)
  const tall = times.map((at, i) => {
    if (i === 0) return 0
    const [span, of] = [at - times[i - 1], isPacket.has(at) ? LINE : 4]
    const folded = folds.some(([from, to]) => times[i - 1] >= from && at <= to)
    return of + Math.min(64, Math.max(0, Math.log10(span / 1e4)) * 14) + (folded ? 20 : 0)
  })
  // Each band's name goes where its wait is longest.
  const names = bands.map((band) => {
    let widest = -1
    for (let i = 1; i < times.length; i++) {
      if (times[i - 1] >= band.from && times[i] <= band.to && (widest < 0 || times[i] - times[i - 1] > times[widest] - times[widest - 1])) widest = i
    }
    return widest
  })
  names.forEach((at, i) => {
    if (at < 0) return
    const others = names.filter((other, j) => other === at && j <= i).length
    const packet = isPacket.has(times[at]) ? 18 : 0
    tall[at] = Math.max(tall[at], others * 17 + packet + 3)
  })
  const y: number[] = []
  tall.reduce((sum, more, i) => (y[i] = sum + more), TOP)
  const at = (time: number) => {
    const i = times.indexOf(time)
    if (i >= 0) return y[i]
    const next = times.findIndex((other) => other > time)
    if (next <= 0) return next === 0 ? TOP : y[y.length - 1]
    return y[next - 1] + ((time - times[next - 1]) / (times[next] - times[next - 1])) * (y[next] - y[next - 1])
  }
  const nameAt = (band: number) => {
    const i = names[band]
    if (i < 0) return at(bands[band].to) - 4
    const same = names.flatMap((other, j) => (other === i ? [j] : []))
    const [top, bottom] = [y[i - 1], y[i] - (isPacket.has(times[i]) ? 16 : 0)]
    return top + ((same.indexOf(band) + 0.5) / same.length) * (bottom - top) + 4
  }
  return { at, nameAt, folds, bottom: y[y.length - 1] ?? TOP }
}

export function ladder({ data, causes }: Context, connection: number, exchange: number): HTMLElement | null {
  const packets = data.packets.get(connection)
  const rows = packets ? rowsOf(packets, exchange) : []
  if (packets === undefined || rows.length === 0) return null
  const at = data.connections.id.indexOf(connection)
  const [client, server] = [data.connections.client, data.connections.server].map((column) => data.connections.endpoints[column[at]])
  const origin = packets.at_ns[rows[0]]
  const gaps = gapsOf(packets)
  const shown = folded(rows, gaps)
  const drawn = shown.filter((item) => typeof item === "number")
  const bands = bandsOf(packets, drawn, gaps)
  const place = scale(shown, packets, bands)
  const text = (x: number, y: number, of: string, attributes: Record<string, string> = {}) => s("text", { x, y, ...attributes }, of)
  const parts: SVGElement[] = bands.map((band, i) => {
    const [cause, y, end] = [causes[band.cause], place.at(band.from), place.at(band.to)]
    return s("g", { class: `gap is-${cause.class}`, "data-cause": cause.name, "data-ns": band.ns },
      s("rect", { x: LEFT, y, width: RIGHT - LEFT, height: Math.max(1, end - y - 1), fill: cause.colour, "fill-opacity": 0.2 }),
      s("rect", { x: LEFT, y, width: 7, height: Math.max(1, end - y - 1), fill: cause.colour }),
      text((LEFT + RIGHT) / 2, place.nameAt(i), `${time(band.ns)} ${cause.name}`, { "text-anchor": "middle", class: "gap-name" }))
  })
  for (const [from, , left] of place.folds) {
    parts.push(text((LEFT + RIGHT) / 2, place.at(from) + 17, `… ${counted(left, "packet")} more …`, { class: "quiet", "text-anchor": "middle" }))
  }
  for (const item of drawn) {
    const y = place.at(packets.at_ns[item])
    const isClient = packets.from[item] === 0
    const [from, to] = isClient ? [LEFT, RIGHT] : [RIGHT, LEFT]
    const many = packets.count[item] > 1 ? ` (${count(packets.count[item])} packets)` : ""
    const tip = to + (isClient ? -1 : 1) * 9
    parts.push(s("g", { class: packets.len[item] > 0 ? "data" : "bare", "data-packet": packets.packet[item] },
      text(64, y + 4, ((packets.at_ns[item] - origin) / 1e6).toFixed(3), { "text-anchor": "end", class: "mono" }),
      text(128, y + 4, String(packets.packet[item]), { "text-anchor": "end", class: "mono quiet" }),
      text((LEFT + RIGHT) / 2, y - 4, said(packets, item) + many, { "text-anchor": "middle", class: "mono on" }),
      s("line", { x1: from, y1: y, x2: tip, y2: y, class: "arrow" }),
      s("path", { d: `M${to} ${y}L${tip} ${y - 4}L${tip} ${y + 4}Z`, class: "tip" }),
      text(RIGHT + 12, y + 4, trigger(packets, item), { class: "quiet" })))
  }
  const y = place.bottom
  const what = `Connection ${connection}, exchange ${exchange}, packet by packet`
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${y + 18}`, class: "ladder", "aria-hidden": "true" },
    text(64, 16, "ms", { "text-anchor": "end", class: "quiet" }), text(128, 16, "frame", { "text-anchor": "end", class: "quiet" }),
    text(LEFT - 20, 16, `client ${client}`), text(RIGHT + 20, 16, `server ${server}`, { "text-anchor": "end" }),
    s("line", { x1: LEFT, y1: 24, x2: LEFT, y2: y + 12, class: "life" }), s("line", { x1: RIGHT, y1: 24, x2: RIGHT, y2: y + 12, class: "life" }), ...parts)
  const told = rows.slice(0, 2000).map((row) => [
    ((packets.at_ns[row] - origin) / 1e6).toFixed(3), String(packets.packet[row]), packets.from[row] === 0 ? "client" : "server", flagsOf(packets.flags[row]),
    bytes(packets.len[row]), ackOf(packets, row), windowOf(packets, row),
    (gaps.get(row) ?? []).map((gap) => `${time(gap.ns)} ${causes[gap.cause].name}`).join(", "), trigger(packets, row),
  ])
  const head = ["ms", "frame", "from", "flags", "payload", "ack", "window", "waited before", "let it go"]
  return h("figure", { class: "ladder-box" },
    h("figcaption", {}, what),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${what} (picture; the table below says the same)` }, picture),
    behind("The same as a table", table(what, head, told, [0, 1, 4, 5, 6])))
}
