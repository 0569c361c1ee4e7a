// What happened on one connection? The time-sequence graph with curves beneath it, zoomed together, and tables behind them.

import uPlot from "uplot"
import { swatch } from "./bill"
import { curves } from "./curves"
import { behind, command, h, later, s, table } from "./dom"
import { ladder, rowsOf, said } from "./ladder"
import type { Packets } from "./load"
import { axis, byteTicks, plot, timeAxis } from "./plot"
import { lowerBound } from "./scatter"
import { paintSequence, type Exchange } from "./sequence"
import { stream } from "./stream"
import type { Context } from "./view"
import { bytes, counted, count, sides, time } from "./words"

/** Rows of the tables behind the pictures. */
const ROWS = 400

export function connectionView(context: Context): HTMLElement {
  const { store } = context
  const place = h("section", { "aria-labelledby": "connection-head", id: "connection" })
  const draw = (jump: boolean) => {
    const { x } = store.state
    // Without a choice, the one that the first finding is about.
    const c = store.state.c ?? context.whole.packets.keys().next().value ?? null
    const data = c === null ? context.whole : context.more?.packetsOf(c) ?? (context.whole.connections.id.includes(c) ? context.whole : context.data)
    const within = { ...context, data }
    const at = c === null ? -1 : data.connections.id.indexOf(c)
    if (c === null || at < 0) {
      place.replaceChildren(h("h2", { id: "connection-head" }, "One connection"), picker(context, c), h("p", { class: "quiet" }, "Choose one here, in the lists or in the picture above."))
      if (c !== null) void context.more?.askPackets(c).then((came) => came && draw(jump))
      return
    }
    const { connections } = data
    const [client, server] = [connections.client, connections.server].map((column) => connections.endpoints[column[at]])
    const packets = data.packets.get(c)
    const rtt = connections.rtt_min_ns[at] < 0 ? "unknown" : time(connections.rtt_min_ns[at])
    const where = ["captured at the client", "captured at the server", "captured between the two", "capture point unknown"][connections.vantage[at]]
    place.replaceChildren(
      h("h2", { id: "connection-head", tabindex: -1 }, `Connection ${c}: ${client} → ${server}`),
      picker(context, c),
      h("p", {}, `${counted(connections.packets[at], "packet")}, ${bytes(connections.client_bytes[at])} from the client, ${bytes(connections.server_bytes[at])} from the server; minimum round trip ${rtt}; ${where}${connections.assumed[at] ? "; who is client is a guess" : ""}; ${time(connections.elapsed_ns[at])} billed on ${count(connections.billed[at])}.`))
    if (packets !== undefined) place.append(...graph(within, packets, at))
    else if (context.more !== null) {
      const said = h("p", { role: "status", class: "notice" }, "Its packets are read from the capture …")
      place.append(said)
      void context.more.askPackets(c).then((came) => (came ? draw(jump) : (said.textContent = "Its packets are not available.")))
    } else place.append(h("p", {}, "Its packets are not in this file, which draws the connections that findings cite and the most expensive ones. To see them:"), command(`${data.page.again} --connection ${c}`))
    if (x !== null && packets !== undefined) place.append(ladder(within, c, x) ?? h("p", { class: "quiet" }, `No packets were kept of exchange ${x}.`))
    if (jump) place.querySelector<HTMLElement>(x === null || !packets ? "h2" : ".ladder-box")?.scrollIntoView({ block: "start" })
  }
  store.on((state, before) => {
    if (state.c !== before.c || state.x !== before.x) draw(true)
  })
  // Behind the first picture, where nobody has asked for it.
  if (store.state.c === null) later(() => draw(false))()
  else draw(false)
  return place
}

function picker({ whole, store }: Context, c: number | null): HTMLElement {
  const options = [...whole.packets.keys()].map((id) => h("option", { value: id }, `${id}`))
  const select = h("select", { id: "drawn", change: () => select.value !== "" && store.change({ c: Number(select.value), x: null }) }, h("option", { value: "" }, "-"), ...options)
  select.value = c !== null && whole.packets.has(c) ? String(c) : ""
  return h("p", {}, h("label", { for: "drawn" }, "With packets in this file: connection "), select)
}

function graph(context: Context, packets: Packets, at: number): HTMLElement[] {
  const { data } = context
  const { connections } = data
  let from = connections.server_bytes[at] > connections.client_bytes[at] ? 1 : 0
  const place = h("div")
  const radio = [0, 1].map((side) => {
    const input = h("input", { type: "radio", name: "direction", value: side, change: () => { from = side; draw() } })
    input.checked = side === from
    return h("label", {}, input, ` what the ${sides[side]} sent `)
  })
  const draw = () => place.replaceChildren(...direction(context, packets, at, from))
  const merged = packets.mergedNs > 0 ? `Packets of one direction that follow each other within ${time(packets.mergedNs)} are one stroke. ` : ""
  const omitted = packets.omitted > 0 ? `${counted(packets.omitted, "packet")} more did not fit. ` : ""
  draw()
  return [
    h("fieldset", { class: "direction" }, h("legend", {}, "Time-sequence graph of"), ...radio),
    place,
    h("p", { class: "quiet" }, `${merged}${omitted}Drag to zoom, double-click for all; the bands behind are exchanges, coloured by main cause: click one to see its packets.`),
  ]
}

const STROKES: [string, string, string][] = [
  ["data", "--text", "M0 6H14"], ["retransmitted", "--again", "M0 6H14M7 2V10"], ["acknowledged", "--acked", "M0 9H7V3H14"], ["duplicate acknowledgement", "--acked", "M7 2V10"], ["window's edge", "--edge", "M0 9H7V3H14"], ["SACK block", "--sack", "M7 0V3M7 5V8M7 10V12"],
]

function direction(context: Context, whole: Packets, at: number, from: number): HTMLElement[] {
  const { data, causes, store } = context
  const { exchanges, connections } = data
  const id = connections.id[at]
  let packets = whole
  let of = stream(packets, from)
  const other = stream(packets, 1 - from)
  const bands: Exchange[] = []
  for (let row = 0; row < exchanges.count; row++) {
    if (exchanges.connection[row] === at) bands.push({ t: exchanges.start_ns[row], u: exchanges.start_ns[row] + exchanges.elapsed_ns[row], n: exchanges.n[row], cause: exchanges.cause[row] })
  }
  const [first, last] = [packets.at_ns[0], Math.max(packets.at_ns[packets.at_ns.length - 1], packets.at_ns[0] + 1)]
  const pad = (last - first) * 0.01 + 500
  let range: [number, number] = [first - pad, last + pad]
  const sync = uPlot.sync(`connection-${id}-${from}`)
  const plots: uPlot[] = []
  const finer = context.more?.finer(id, whole, (part) => {
    packets = part
    of = stream(packets, from)
    index()
    plots[0].redraw()
  })
  const zoom = (to: [number, number]) => {
    const width = Math.max(1_000, to[1] - to[0])
    range = [Math.max(first - pad, to[0]), Math.min(last + pad, Math.max(to[0] + width, to[1]))]
    if (range[1] - range[0] < 1_000) range = [range[0], range[0] + 1_000]
    for (const plot of plots) plot.setScale("x", { min: range[0], max: range[1] })
    finer?.(range)
  }
  const common: Partial<uPlot.Options> = {
    legend: { show: false },
    cursor: { sync: { key: sync.key, setSeries: false, scales: ["x", null] }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
  }
  const zooms = (u: uPlot) => {
    const { left, width } = u.select
    if (width < 4) return
    const to: [number, number] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")]
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    zoom(to)
  }
  const x = { time: false, auto: false, range: () => range } as uPlot.Scale
  const hover = h("p", { class: "hover", id: "sequence-hover" }, "Point at a packet to see what it says.")
  const sequence = h("div", { class: "plot", "data-view": "sequence", "data-from": sides[from] })
  let [times, ackTimes] = [new Float64Array(), new Float64Array()]
  const index = () => {
    times = Float64Array.from(of.data, (piece) => piece.t)
    ackTimes = Float64Array.from(of.acks, (step) => step.t)
  }
  index()
  const top = of.data.reduce((most, piece) => Math.max(most, piece.to), 1)
  const bounds = (): [number, number] => {
    let [low, high] = [Infinity, 0]
    for (let i = Math.max(0, lowerBound(times, range[0]) - 1); i < of.data.length && of.data[i].t <= range[1]; i++) [low, high] = [Math.min(low, of.data[i].from), Math.max(high, of.data[i].to)]
    for (let i = Math.max(0, lowerBound(ackTimes, range[0]) - 1); i < of.acks.length && of.acks[i].t <= range[1]; i++) [low, high] = [Math.min(low, of.acks[i].ack), Math.max(high, of.acks[i].ack)]
    if (low > high) return [0, top]
    return [low - (high - low) * 0.03 - 1, high + (high - low) * 0.1 + 10]
  }
  const ends: [number, number] = [first, last]
  const beneath = curves(context, packets, of, other, ends, () => range)
  const places = beneath.map((curve) => h("div", { class: "plot", "data-view": curve.view, "data-points": curve.data[0].filter((_, i) => curve.data.slice(1).some((values) => (values as (number | null)[])[i] !== null)).length }))
  const make = () => {
    plots.push(plot(sequence, 360, { ...common, scales: { x, y: { auto: false, range: () => bounds() } }, series: [{}, { paths: () => null, points: { show: false } }],
      axes: [timeAxis(first), axis({ size: 84, values: (_, ticks) => byteTicks(ticks) })],
      hooks: { draw: [(u) => paintSequence(u, context, of, bands, sequence)], setSelect: [zooms], setCursor: [(u) => tell(u)] } }, [ends, [0, top]]))
    beneath.forEach((curve, i) => {
      const { series, y, axis: side, draw } = curve.options
      plots.push(plot(places[i], curve.tall, { ...common, scales: { x, y }, series, axes: [timeAxis(first), side], hooks: { setSelect: [zooms], draw: draw ? [draw] : [] } }, curve.data))
    })
    for (const made of plots) made.over.addEventListener("dblclick", () => zoom([first - pad, last + pad]))
    plots[0].over.addEventListener("click", () => {
      const t = plots[0].posToVal(plots[0].cursor.left ?? 0, "x")
      const band = bands.find((band) => band.t <= t && t <= band.u)
      if (band !== undefined && rowsOf(whole, band.n).length > 0) store.change({ c: id, x: band.n })
    })
  }
  const delayTimes = Float64Array.from(of.delays, (delay) => delay.t)
  const flightTimes = Float64Array.from(of.flight, (change) => change.t)
  const tell = (u: uPlot) => {
    const { left } = u.cursor
    if (left === undefined || left < 0) return
    const t = u.posToVal(left, "x")
    const i = nearestIn(times, t)
    if (i < 0) return
    const piece = of.data[i]
    const many = packets.count[piece.row] > 1 ? `${counted(packets.count[piece.row], "packet")} from frame` : "frame"
    const [flight, delay] = [of.flight[nearestIn(flightTimes, t)], of.delays[nearestIn(delayTimes, t)]]
    const more = [flight && `${bytes(flight.bytes)} in flight`, delay && `acknowledged after ${time(delay.ns)}`].filter((part) => part !== undefined)
    hover.textContent = `${time(piece.t - first)}: ${many} ${packets.packet[piece.row]}, bytes ${count(piece.from)} to ${count(piece.to)}${piece.again ? ", retransmitted" : ""}${more.length > 0 ? `; around it ${more.join(", ")}` : ""}`
    hover.dataset.packet = String(packets.packet[piece.row])
  }
  const move = (part: number) => zoom([range[0] + part * (range[1] - range[0]), range[1] + part * (range[1] - range[0])])
  const scale = (by: number) => {
    const middle = (range[0] + range[1]) / 2
    zoom([middle - ((range[1] - range[0]) / 2) * by, middle + ((range[1] - range[0]) / 2) * by])
  }
  const keys: Record<string, () => void> = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => scale(0.5), "-": () => scale(2), "0": () => zoom([first - pad, last + pad]) }
  const button = (name: string, key: string) => h("button", { type: "button", click: keys[key], title: `${name} (${key})` }, name)
  const legend = (marks: [string, string][]) => marks.length > 0 && h("span", { class: "marks" }, ...marks.map(([name, colour]) => mark(name, colour)))
  const box = h("div", { tabindex: 0, role: "application", "aria-label": "Time-sequence graph; arrow keys move it, + and - zoom, 0 shows all. The tables below say what it shows.", "aria-describedby": "sequence-hover",
    keydown: (event) => {
      const key = keys[(event as KeyboardEvent).key]
      if (key) {
        key()
        event.preventDefault()
      }
    } },
  h("p", { class: "curve" }, h("strong", {}, `What the ${sides[from]} sent, byte by byte`), h("span", { class: "marks" }, ...STROKES.map(([name, colour, path]) => mark(name, colour, path)))), sequence,
  ...beneath.flatMap((curve, i) => [h("p", { class: "curve" }, h("strong", {}, curve.name), legend(curve.legend)), places[i]]))
  queueMicrotask(make)
  const { rounds } = packets
  const exchangeRows = bands.slice(0, ROWS).map((band) => [h("button", { type: "button", class: "link", "aria-label": `Show exchange ${band.n} packet by packet`, click: () => store.change({ c: id, x: band.n }) }, String(band.n)), time(band.t - first), time(band.u - band.t), band.cause < 0 ? "" : h("span", { class: "named" }, swatch(causes[band.cause]), causes[band.cause].name)])
  const roundRows = Array.from({ length: Math.min(ROWS, rounds.start_ns.length) }, (_, i) => [String(rounds.exchange[i]), time(rounds.start_ns[i] - first), bytes(rounds.flight_bytes[i]), bytes(rounds.window_bytes[i]), time(rounds.took_ns[i]), rounds.cause[i] < 0 ? "" : `${causes[rounds.cause[i]].name} ${time(rounds.ns[i])}`])
  const packetRows = Array.from({ length: Math.min(ROWS, whole.packet.length) }, (_, row) => [time(whole.at_ns[row] - first), String(whole.packet[row]), count(whole.count[row]), sides[whole.from[row]], said(whole, row)])
  const delayRows = of.delays.slice(0, ROWS).map((delay) => [time(delay.t - first), String(packets.packet[delay.row]), time(delay.ns)])
  const wayRows = Array.from({ length: Math.min(ROWS, whole.ways.row.length) }, (_, i) => [time(whole.at_ns[whole.ways.row[i]] - first), String(whole.packet[whole.ways.row[i]]), sides[whole.from[whole.ways.row[i]]], time(whole.ways.ns[i])])
  const some = (name: string, shown: unknown[], all: number) => `${name}, ${shown.length < all ? `${count(shown.length)} of ` : ""}${count(all)}`
  return [
    h("p", { class: "buttons" }, button("Zoom in", "+"), button("Zoom out", "-"), button("Left", "ArrowLeft"), button("Right", "ArrowRight"), button("All", "0")),
    box, hover,
    h("p", {}, `${counted(of.packets, "packet")}, ${counted(of.resent, "packet")} retransmitted, ${counted(of.acks.filter((step) => step.again > 0).length, "duplicate acknowledgement")}, ${counted(of.sacks.length, "SACK block")}.`),
    behind(some("Its exchanges", exchangeRows, bands.length), table("Exchanges of the connection", ["n", "at", "elapsed", "mostly"], exchangeRows, [1, 2])),
    ...(roundRows.length > 0 ? [behind(some("Round trips of the transfers", roundRows, rounds.start_ns.length), table("What each round trip carried", ["exchange", "at", "in flight", "window", "took", "mostly"], roundRows, [2, 3, 4]))] : []),
    behind(some("Its packets", packetRows, whole.packet.length), table("Packets of the connection", ["at", "frame", "packets", "from", "says"], packetRows, [0, 1, 2])),
    ...(delayRows.length > 0 ? [behind(some("Delays of the acknowledgements", delayRows, of.delays.length), table("How long each acknowledgement took", ["at", "frame", "after"], delayRows, [0, 1, 2]))] : []),
    ...(wayRows.length > 0 ? [behind(some("One-way delays", wayRows, whole.ways.row.length), table("One-way delays, from both captures", ["at", "frame", "from", "took"], wayRows, [0, 1, 3]))] : []),
  ]
}

/** What a line of a picture is. */
function mark(name: string, colour: string, path = "M0 6H14"): HTMLElement {
  const line = s("path", { d: path, fill: "none", "stroke-width": 2 })
  line.style.stroke = `var(${colour})`
  return h("span", { class: "mark" }, s("svg", { viewBox: "0 0 14 12", width: 16, height: 12, "aria-hidden": "true" }, line), name)
}

function nearestIn(times: Float64Array, t: number): number {
  const at = lowerBound(times, t)
  if (times.length === 0) return -1
  if (at === 0) return 0
  return at < times.length && times[at] - t < t - times[at - 1] ? at : at - 1
}
