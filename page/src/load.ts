// How does the page get its data? Unpacked from the element that holds it, columns added up into typed arrays.

import type { Comparison } from "./compare"
import type { Column, Page } from "./contract"

/** Each number of a column is what it adds to the one before; what comes again is counted. */
export function numbers(column: Column): Float64Array {
  let length = 0
  for (const step of column) length += typeof step === "number" ? 1 : step[0]
  const out = new Float64Array(length)
  let [at, sum, difference] = [0, 0, 0]
  for (const step of column) {
    if (typeof step === "number") out[at++] = sum += difference = step
    else for (const end = at + step[0]; at < end; at++) out[at] = sum += difference
  }
  return out
}

type Columns<T> = { [K in keyof T as T[K] extends Column ? K : never]: Float64Array }

/** The columns of a table, added up. */
function columns<T extends object>(table: T, names: (keyof T)[]): Columns<T> {
  return Object.fromEntries(names.map((name) => [name, numbers(table[name] as Column)])) as Columns<T>
}

function unpackedTable<T extends object>(table: T): Columns<T> {
  const isColumn = (value: unknown) => Array.isArray(value) && (value.length === 0 || typeof value[0] === "number")
  return columns(table, (Object.keys(table) as (keyof T)[]).filter((name) => isColumn(table[name])))
}

export interface Finding {
  cause: string
  side: string
  endpoint: string
  servers?: number
  kind: string
  hits: number
  of: number
  ns: number
  p50_ns: number
  p99_ns: number
  max_ns: number
  confidence: "certain" | "likely" | "possible"
  evidence: number[]
  worst: { connection: number; exchange: number }
  remedies: Remedy[]
}

export interface Remedy {
  id: string
  side: string
  what: string
  saves_ns: number | null
  saves_least_ns?: number
  saves_kind: "estimate" | "at-most" | "unknown"
  caveat?: string
  how: { stack: string; text: string }[]
}

/** What the page uses of tcpwhy.report/1. */
export interface Report {
  tcpwhy: string
  answer: string
  capture: {
    path: string
    format: string
    packets: number
    segments: number
    truncated: boolean
    drops: number
    skipped: Record<string, number>
    failure?: string
    files?: { path: string }[]
  }
  elapsed_ns: number
  setups: number
  exchanges: number
  one_way: number
  subscriptions: number
  bill: { cause: string; side: string; ns: number; share: number; hits: number }[]
  findings: Finding[]
  omitted: { connections: number; exchanges: number }
  notes: { kind: string; count: number; first_packet: number }[]
}

export type Exchanges = ReturnType<typeof exchangesOf>
export type Packets = ReturnType<typeof packetsOf>

/** The exchanges, with the first row of each bill and the place of its main cause; those of many lines are sorted, largest first. */
function exchangesOf(page: Page) {
  const table = unpackedTable(page.exchanges)
  const count = table.n.length
  const billAt = new Int32Array(count + 1)
  const cause = new Int16Array(count)
  for (let i = 0; i < count; i++) {
    billAt[i + 1] = billAt[i] + table.lines[i]
    cause[i] = table.lines[i] > 0 ? table.bill_cause[billAt[i]] : -1
  }
  return { ...table, count, billAt, cause }
}

/** What client and server sent, as rows of both in the order of their packets. */
function packetsOf(packets: Page["packets"][number]) {
  const sent = packets.sent.map((own) => ({ ...unpackedTable(own), sacks: unpackedTable(own.sacks), ways: unpackedTable(own.ways) }))
  const rows = placesOf(sent[0].packet, sent[1].packet)
  const from = new Float64Array(rows[0].length + rows[1].length)
  for (const row of rows[1]) from[row] = 1
  type Name = Exclude<keyof (typeof sent)[number], "sacks" | "ways">
  const both = (name: Name) => {
    const out = new Float64Array(from.length)
    rows.forEach((rows, side) => {
      const own = sent[side][name]
      for (let i = 0; i < rows.length; i++) out[rows[i]] = own[i]
    })
    return out
  }
  const [packet, trigger, ago, lines] = [both("packet"), both("trigger"), both("released_ago"), both("lines")]
  return {
    packet, trigger, from,
    at_ns: both("at_ns"), lasts_ns: both("lasts_ns"), count: both("count"), offset: both("offset"), len: both("len"), ack: both("ack"),
    window: both("window"), raw: both("raw"), flags: both("flags"), exchange: both("exchange"),
    released_by: packet.map((packet, row) => (trigger[row] === 1 ? packet - ago[row] : 0)),
    id: packets.id,
    mergedNs: packets.merged_ns,
    omitted: packets.omitted,
    seqBase: packets.seq_base,
    gaps: gapsOf(sent, from, lines),
    sacks: ofFew(sent.map(({ sacks }) => sacks), rows, ["start", "end"]),
    rounds: unpackedTable(packets.rounds),
    ways: ofFew(sent.map(({ ways }) => ways), rows, ["ns"]),
  }
}

/** The rows of what client and server sent, by the numbers of their packets. */
function placesOf(client: Float64Array, server: Float64Array): [Int32Array, Int32Array] {
  const rows: [Int32Array, Int32Array] = [new Int32Array(client.length), new Int32Array(server.length)]
  let [c, s] = [0, 0]
  for (let row = 0; row < client.length + server.length; row++) {
    if (s === server.length || client[c] <= server[s]) rows[0][c++] = row
    else rows[1][s++] = row
  }
  return rows
}

/** What the time before each row was billed to, of both ends. */
function gapsOf(sent: Record<"at_ns" | "lasts_ns" | "cause" | "ns", Float64Array>[], from: Float64Array, lines: Float64Array) {
  const length = sent[0].ns.length + sent[1].ns.length
  const gaps = { row: new Float64Array(length), cause: new Float64Array(length), ns: new Float64Array(length) }
  const [next, rows] = [[0, 0], [0, 0]]
  let at = 0
  for (let row = 0; row < from.length; row++) {
    const [side, own] = [from[row], sent[from[row]]]
    const now = rows[side]++
    let left = now === 0 ? 0 : own.at_ns[now] - own.at_ns[now - 1] - own.lasts_ns[now - 1]
    for (let i = lines[row]; i > 0; i--, at++, next[side]++) {
      gaps.row[at] = row
      gaps.cause[at] = own.cause[next[side]]
      gaps.ns[at] = own.ns[next[side]] + (i === 1 ? left : 0)
      left -= gaps.ns[at]
    }
  }
  return gaps
}

/** What few rows of client and server have, in the order of the rows of both. */
function ofFew<N extends string>(tables: Record<N | "row", Float64Array>[], rows: Int32Array[], names: N[]): Record<N | "row", Float64Array> {
  const all = tables.flatMap((table, side) => Array.from(table.row, (row, at) => ({ row: rows[side][row], table, at })))
  all.sort((a, b) => a.row - b.row)
  const columns = names.map((name) => [name, Float64Array.from(all, ({ table, at }) => table[name][at])])
  return Object.fromEntries([["row", Float64Array.from(all, ({ row }) => row)], ...columns]) as Record<N | "row", Float64Array>
}

function unpacked(page: Page) {
  const connections = unpackedTable(page.connections)
  return {
    page,
    report: page.report as unknown as Report,
    connections: { ...connections, endpoints: page.connections.endpoints, count: connections.id.length },
    exchanges: exchangesOf(page),
    packets: new Map(page.packets.map((packets) => [packets.id, packetsOf(packets)])),
  }
}

export type Data = ReturnType<typeof unpacked>

/** Two captures compared, and the causes of a page. */
export interface Compared {
  schema: "tcpwhy.compared/1"
  causes: Page["causes"]
  comparison: Comparison
}

/** What the file holds, as it was written. */
async function written(): Promise<Page | Compared> {
  const text = document.getElementById("data")?.textContent ?? ""
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))
  return (await new Response(plain).json()) as Page | Compared
}

export async function load(): Promise<Data | Compared> {
  const document = await written()
  if (document.schema === "tcpwhy.compared/1") return document
  if (document.schema !== "tcpwhy.page/3") throw new Error("data of a form that this page does not know")
  return unpacked(document)
}

/** What whoever serves the page answers; null where that is nothing. */
export async function fetched(query: string): Promise<Data | null> {
  try {
    const answer = await fetch(query)
    return answer.ok ? unpacked((await answer.json()) as Page) : null
  } catch {
    return null
  }
}
