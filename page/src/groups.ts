// Whose time is it? The same by service, client and connection, and the slowest exchanges one by one; a click selects or opens.

import { swatch } from "./bill"
import { h, later, table, wide } from "./dom"
import { hostOf, selected } from "./select"
import type { State } from "./state"
import type { Context } from "./view"
import { bytes, clock, count, kinds, percent, time, zone } from "./words"

const SHOWN = 12
const SLOWEST = 20

interface Group { key: string; count: number; ns: number; longest: number; byCause: Float64Array }

function groups(context: Context, rows: Int32Array, key: (connection: number) => string): Group[] {
  const { exchanges, connections } = context.data
  const keys = Array.from({ length: connections.count }, (_, row) => key(row))
  const found = new Map<string, Group>()
  for (const row of rows) {
    const name = keys[exchanges.connection[row]]
    let group = found.get(name)
    if (group === undefined) found.set(name, (group = { key: name, count: 0, ns: 0, longest: 0, byCause: new Float64Array(context.causes.length) }))
    const k = exchanges.stands_for[row]
    group.count += k
    group.ns += k * exchanges.elapsed_ns[row]
    group.longest = Math.max(group.longest, exchanges.elapsed_ns[row])
    for (let at = exchanges.billAt[row]; at < exchanges.billAt[row + 1]; at++) group.byCause[exchanges.bill_cause[at]] += k * exchanges.bill_ns[at]
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns)
}

function stack({ causes }: Context, group: Group, whole: number): HTMLElement {
  const bar = wide(h("div", { class: "stack" }), Math.max(0.02, group.ns / whole))
  causes.filter((cause) => group.byCause[cause.at] > 0).sort((a, b) => group.byCause[b.at] - group.byCause[a.at]).forEach((cause) => {
    const part = wide(h("span", { class: `bar is-${cause.class}`, title: `${cause.name} ${time(group.byCause[cause.at])}` }), group.byCause[cause.at] / group.ns)
    part.style.setProperty("--cause", cause.colour)
    bar.append(part)
  })
  return h("div", { class: "stack-room" }, bar)
}

function mostly({ causes }: Context, group: Group): string {
  const best = causes.reduce((best, cause) => (group.byCause[cause.at] > group.byCause[best.at] ? cause : best), causes[0])
  return group.ns > 0 ? `${best.name} ${percent(group.byCause[best.at], group.ns)}` : ""
}

export function groupsView(context: Context): HTMLElement {
  const { causes, store } = context
  const place = h("div", { id: "groups" })
  const part = (title: string, which: keyof State | null, key: (row: number) => string, open: (group: Group) => void) => {
    const { data } = context
    const rows = selected(data, causes, store.state, which ?? undefined)
    const all = groups(context, rows, key)
    const longest = all[0]?.ns ?? 1
    const more = all.length > SHOWN ? `, ${SHOWN} of ${count(all.length)}` : ""
    return table(`${title}${more}`, ["", "billed", "time", "longest", "mostly", ""], all.slice(0, SHOWN).map((group) => [
      h("button", { type: "button", class: "link", "aria-pressed": which ? String(store.state[which] === group.key) : null, click: () => open(group) }, group.key),
      count(group.count), time(group.ns), time(group.longest), mostly(context, group), stack(context, group, longest),
    ]), [1, 2, 3])
  }
  const toggle = (which: "service" | "client") => (group: Group) => store.change({ [which]: store.state[which] === group.key ? null : group.key })
  const draw = () => {
    const { connections } = context.data
    place.replaceChildren(
      h("h3", {}, "By service, client and connection"),
      part("Services", "service", (row) => connections.endpoints[connections.server[row]], toggle("service")),
      part("Clients", "client", (row) => hostOf(connections.endpoints[connections.client[row]]), toggle("client")),
      part("Connections", null, (row) => `${connections.id[row]}: ${connections.endpoints[connections.client[row]]} → ${connections.endpoints[connections.server[row]]}`, (group) => store.change({ c: Number(group.key.split(":")[0]), x: null })),
      slowest(context))
  }
  const soon = later(draw)
  store.on((state, before, fresh) => {
    if (fresh || state.c === before.c && state.x === before.x) soon()
  })
  draw()
  return place
}

function slowest(context: Context): HTMLElement {
  const { data, causes, store } = context
  const { exchanges, connections, page } = data
  const rows = Int32Array.from(selected(data, causes, store.state)).sort((a, b) => exchanges.elapsed_ns[b] - exchanges.elapsed_ns[a] || a - b).subarray(0, SLOWEST)
  return table(`The slowest ${count(rows.length)}: exchanges, messages and setups`, ["elapsed", `at (${zone(page.offset_s)})`, "connection", "exchange", "request", "reply", "frames", "bill"], [...rows].map((row) => {
    const id = connections.id[exchanges.connection[row]]
    const bill = []
    for (let at = exchanges.billAt[row]; at < Math.min(exchanges.billAt[row] + 2, exchanges.billAt[row + 1]); at++) bill.push(`${causes[exchanges.bill_cause[at]].name} ${percent(exchanges.bill_ns[at], exchanges.elapsed_ns[row])}`)
    const cause = causes[exchanges.cause[row]]
    return [
      h("button", { type: "button", class: "link", "aria-label": `Open exchange ${exchanges.n[row]} of connection ${id}: ${time(exchanges.elapsed_ns[row])}`, click: () => store.change({ c: id, x: exchanges.n[row] }) }, time(exchanges.elapsed_ns[row])),
      clock(page.origin, page.offset_s, exchanges.start_ns[row]), String(id), `${kinds[exchanges.kind[row]]} ${exchanges.n[row]}`,
      bytes(exchanges.request_bytes[row]), bytes(exchanges.reply_bytes[row]), `${exchanges.first_packet[row]}-${exchanges.first_packet[row] + exchanges.packets[row] - 1}`,
      h("span", { class: "named" }, cause ? swatch(cause) : null, bill.join(", ")),
    ]
  }), [0, 4, 5])
}
