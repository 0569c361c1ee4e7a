// How does the page get its data? Unpacked from the element that holds it, columns added up into typed arrays.

import type { Comparison } from "./compare"
import type { Column, Page } from "./contract"

/** Each number of a column is what it adds to the one before. */
export function numbers(column: Column): Float64Array {
  const out = new Float64Array(column.length)
  let sum = 0
  for (let i = 0; i < column.length; i++) out[i] = sum += column[i]
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

function packetsOf(packets: Page["packets"][number]) {
  return {
    ...unpackedTable(packets),
    id: packets.id,
    mergedNs: packets.merged_ns,
    omitted: packets.omitted,
    seqBase: packets.seq_base,
    gaps: unpackedTable(packets.gaps),
    sacks: unpackedTable(packets.sacks),
    rounds: unpackedTable(packets.rounds),
    ways: unpackedTable(packets.ways),
  }
}

function unpacked(page: Page) {
  return {
    page,
    report: page.report as unknown as Report,
    connections: { ...unpackedTable(page.connections), endpoints: page.connections.endpoints, count: page.connections.id.length },
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
  if (document.schema !== "tcpwhy.page/1") throw new Error("data of a form that this page does not know")
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
