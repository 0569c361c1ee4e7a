// What happened on one connection? The time-sequence graph, with what was in flight and the windows beneath it, its exchanges as bands behind it.

import uPlot from "uplot"
import { swatch } from "./bill"
import { behind, command, h, table } from "./dom"
import { ladder, rowsOf } from "./ladder"
import type { Packets } from "./load"
import { axis, css, plot, spanAxis, timeAxis } from "./plot"
import { lowerBound } from "./scatter"
import { stream, type Stream } from "./stream"
import type { Context } from "./view"
import { bytes, counted, count, sides, time } from "./words"

export function connectionView(context: Context): HTMLElement {
  const { data, store } = context
  const place = h("section", { "aria-labelledby": "connection-head", id: "connection" })
  const draw = (jump: boolean) => {
    const { c, x } = store.state
    const at = c === null ? -1 : data.connections.id.indexOf(c)
    if (at < 0) {
      place.replaceChildren(h("h2", { id: "connection-head" }, "One connection"), picker(context), h("p", { class: "quiet" }, "Choose one here, in the lists or in the picture above."))
      return
    }
    const { connections } = data
    const [client, server] = [connections.client, connections.server].map((column) => connections.endpoints[column[at]])
    const packets = data.packets.get(connections.id[at])
    const rtt = connections.rtt_min_ns[at] < 0 ? "unknown" : time(connections.rtt_min_ns[at])
    const where = ["captured at the client", "captured at the server", "captured between the two", "where it was captured is not known"][connections.vantage[at]]
    place.replaceChildren(
      h("h2", { id: "connection-head", tabindex: -1 }, `Connection ${connections.id[at]}: ${client} → ${server}`),
      picker(context),
      h("p", {}, `${counted(connections.packets[at], "packet")}, ${bytes(connections.client_bytes[at])} from the client, ${bytes(connections.server_bytes[at])} from the server; smallest round trip ${rtt}; ${where}${connections.assumed[at] ? "; who is client is a guess" : ""}; ${time(connections.elapsed_ns[at])} billed on ${count(connections.billed[at])}.`))
    if (packets === undefined) {
      place.append(h("p", {}, "Its packets are not in this file, which draws the connections that findings cite and the most expensive ones. To see them:"), command(`${data.page.again} --connection ${connections.id[at]}`))
    } else place.append(...graph(context, packets, at))
    if (x !== null) place.append(ladder(context, connections.id[at], x) ?? h("p", { class: "quiet" }, `No packets were kept of exchange ${x}.`))
    if (jump) place.querySelector<HTMLElement>(x === null || !packets ? "h2" : ".ladder-box")?.scrollIntoView({ block: "start" })
  }
  store.on((state, before) => {
    if (state.c !== before.c || state.x !== before.x) draw(true)
  })
  draw(false)
  return place
}

function picker({ data, store }: Context): HTMLElement {
  const options = [...data.packets.keys()].map((id) => h("option", { value: id }, `${id}`))
  const select = h("select", { id: "drawn", change: () => select.value !== "" && store.change({ c: Number(select.value), x: null }) }, h("option", { value: "" }, "-"), ...options)
  select.value = store.state.c !== null && data.packets.has(store.state.c) ? String(store.state.c) : ""
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
  const omitted = packets.omitted > 0 ? `${counted(packets.omitted, "packet")} behind these had no room. ` : ""
  draw()
  return [
    h("fieldset", { class: "direction" }, h("legend", {}, "Time-sequence graph of"), ...radio),
    place,
    h("p", { class: "quiet" }, `${merged}${omitted}Strokes are data (thick and crossed: sent again), the lower line what is acknowledged (marks: duplicate acknowledgements), the upper one the window's edge, dotted strokes SACK blocks. Drag to zoom, double-click for all; the bands behind are exchanges: click one to see its packets.`),
  ]
}

function direction(context: Context, packets: Packets, at: number, from: number): HTMLElement[] {
  const { data, causes, store } = context
  const { exchanges, connections } = data
  const of = stream(packets, from)
  const bands: { t: number; u: number; n: number; cause: number }[] = []
  for (let row = 0; row < exchanges.count; row++) {
    if (exchanges.connection[row] === at) bands.push({ t: exchanges.start_ns[row], u: exchanges.start_ns[row] + exchanges.elapsed_ns[row], n: exchanges.n[row], cause: exchanges.cause[row] })
  }
  const [first, last] = [packets.at_ns[0], Math.max(packets.at_ns[packets.at_ns.length - 1], packets.at_ns[0] + 1)]
  const pad = (last - first) * 0.01 + 500
  let range: [number, number] = [first - pad, last + pad]
  const sync = uPlot.sync(`connection-${connections.id[at]}-${from}`)
  const plots: uPlot[] = []
  const zoom = (to: [number, number]) => {
    const width = Math.max(1_000, to[1] - to[0])
    range = [Math.max(first - pad, to[0]), Math.min(last + pad, Math.max(to[0] + width, to[1]))]
    if (range[1] - range[0] < 1_000) range = [range[0], range[0] + 1_000]
    for (const plot of plots) plot.setScale("x", { min: range[0], max: range[1] })
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
  const flight = h("div", { class: "plot", "data-view": "flight" })
  const delays = h("div", { class: "plot", "data-view": "delays" })
  const rate = h("div", { class: "plot", "data-view": "rate" })
  const times = Float64Array.from(of.data, (piece) => piece.t)
  const ackTimes = Float64Array.from(of.acks, (step) => step.t)
  const top = of.data.reduce((most, piece) => Math.max(most, piece.to), 1)
  const bounds = (): [number, number] => {
    let [low, high] = [Infinity, 0]
    for (let i = Math.max(0, lowerBound(times, range[0]) - 1); i < of.data.length && of.data[i].t <= range[1]; i++) [low, high] = [Math.min(low, of.data[i].from), Math.max(high, of.data[i].to)]
    for (let i = Math.max(0, lowerBound(ackTimes, range[0]) - 1); i < of.acks.length && of.acks[i].t <= range[1]; i++) [low, high] = [Math.min(low, of.acks[i].ack), Math.max(high, of.acks[i].ack)]
    if (low > high) return [0, top]
    return [low - (high - low) * 0.03 - 1, high + (high - low) * 0.1 + 10]
  }
  const paint = (u: uPlot) => paintSequence(u, context, of, bands, sequence)
  const ends = [first, last]
  const make = () => {
    plots.push(plot(sequence, 360, { ...common, scales: { x, y: { auto: false, range: () => bounds() } }, series: [{}, { paths: () => null, points: { show: false } }],
      axes: [timeAxis(first), axis({ size: 84, label: "bytes", labelSize: 18, values: (_, ticks) => ticks.map(count) })],
      hooks: { draw: [paint], setSelect: [zooms], setCursor: [(u) => tell(u)] } }, [ends, [0, top]]))
    const [ft, fb, fw] = steps(of)
    const spans: uPlot.Series = { stroke: () => css("--accent"), width: 1.5, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } }
    const rounds = packets.rounds
    plots.push(plot(flight, 160, { ...common, scales: { x, y: { range: (_, __, max) => [0, (max || 1) * 1.08] } }, series: [{}, spans, { ...spans, stroke: () => css("--edge"), dash: [5, 3] }],
      axes: [timeAxis(first), axis({ size: 84, label: "in flight, window", labelSize: 18, values: (_, ticks) => ticks.map(count) })],
      hooks: { setSelect: [zooms], draw: [(u) => paintRounds(u, context, rounds)] } }, [ft, fb, fw] as unknown as uPlot.AlignedData))
    plots.push(plot(delays, 120, { ...common, scales: { x, y: { distr: 3, range: (_, min, max) => [Math.max(1, min / 1.5), Math.max(10, max * 1.5)] } }, series: [{}, { paths: () => null, points: { show: true, size: 5, stroke: () => css("--accent"), fill: () => css("--accent") } }],
      axes: [timeAxis(first), spanAxis({ label: "ack after", labelSize: 18 })],
      hooks: { setSelect: [zooms] } }, (of.delays.length > 0 ? [of.delays.map((delay) => delay.t), of.delays.map((delay) => Math.max(1, delay.ns))] : [ends, [null, null]]) as uPlot.AlignedData))
    const binned = rates(packets, first, last)
    plots.push(plot(rate, 110, { ...common, scales: { x, y: { range: (_, __, max) => [0, (max || 1) * 1.08] } }, series: [{}, { ...spans, fill: () => css("--faint") }],
      axes: [timeAxis(first), axis({ size: 84, label: "packets/s", labelSize: 18, values: (_, ticks) => ticks.map(count) })], hooks: { setSelect: [zooms] } }, binned))
    for (const made of plots) made.over.addEventListener("dblclick", () => zoom([first - pad, last + pad]))
    plots[0].over.addEventListener("click", () => {
      const t = plots[0].posToVal(plots[0].cursor.left ?? 0, "x")
      const band = bands.find((band) => band.t <= t && t <= band.u)
      if (band !== undefined && rowsOf(packets, band.n).length > 0) store.change({ x: band.n })
    })
  }
  const tell = (u: uPlot) => {
    const { left } = u.cursor
    if (left === undefined || left < 0) return
    const t = u.posToVal(left, "x")
    const i = nearestIn(times, t)
    if (i < 0) return
    const piece = of.data[i]
    const many = packets.count[piece.row] > 1 ? `${counted(packets.count[piece.row], "packet")} from frame` : "frame"
    hover.textContent = `${time(piece.t - first)}: ${many} ${packets.packet[piece.row]}, bytes ${count(piece.from)} to ${count(piece.to)}${piece.again ? ", sent again" : ""}`
    hover.dataset.packet = String(packets.packet[piece.row])
  }
  const move = (part: number) => zoom([range[0] + part * (range[1] - range[0]), range[1] + part * (range[1] - range[0])])
  const scale = (by: number) => {
    const middle = (range[0] + range[1]) / 2
    zoom([middle - ((range[1] - range[0]) / 2) * by, middle + ((range[1] - range[0]) / 2) * by])
  }
  const keys: Record<string, () => void> = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => scale(0.5), "-": () => scale(2), "0": () => zoom([first - pad, last + pad]) }
  const button = (name: string, key: string) => h("button", { type: "button", click: keys[key], title: `${name} (${key})` }, name)
  const box = h("div", { tabindex: 0, role: "application", "aria-label": "Time-sequence graph; arrow keys move it, + and - zoom, 0 shows all. The tables below say what it shows.", "aria-describedby": "sequence-hover",
    keydown: (event) => {
      const key = keys[(event as KeyboardEvent).key]
      if (key) {
        key()
        event.preventDefault()
      }
    } }, sequence, flight, delays, rate)
  queueMicrotask(make)
  const { rounds } = packets
  const exchangeRows = bands.slice(0, 200).map((band) => [h("button", { type: "button", class: "link", "aria-label": `Show exchange ${band.n} packet by packet`, click: () => store.change({ x: band.n }) }, String(band.n)), time(band.t - first), time(band.u - band.t), band.cause < 0 ? "" : h("span", { class: "named" }, swatch(causes[band.cause]), causes[band.cause].name)])
  const roundRows = Array.from({ length: Math.min(400, rounds.start_ns.length) }, (_, i) => [String(rounds.exchange[i]), time(rounds.start_ns[i] - first), bytes(rounds.flight_bytes[i]), bytes(rounds.window_bytes[i]), time(rounds.took_ns[i]), rounds.cause[i] < 0 ? "" : `${causes[rounds.cause[i]].name} ${time(rounds.ns[i])}`])
  return [
    h("p", { class: "buttons" }, button("Zoom in", "+"), button("Zoom out", "-"), button("Left", "ArrowLeft"), button("Right", "ArrowRight"), button("All", "0")),
    box, hover,
    h("p", {}, `${counted(of.packets, "packet")}, ${counted(of.resent, "packet")} sent again, ${counted(of.acks.filter((step) => step.again > 0).length, "duplicate acknowledgement")}, ${counted(of.sacks.length, "SACK block")}.`),
    behind(`Its exchanges, ${count(exchangeRows.length)} of ${count(bands.length)}`, table("Exchanges of the connection", ["n", "at", "elapsed", "mostly"], exchangeRows, [1, 2])),
    ...(roundRows.length > 0 ? [behind("Round trips of the transfers", table("What each round trip carried", ["exchange", "at", "in flight", "window", "took", "mostly"], roundRows, [2, 3, 4]))] : []),
  ]
}

function nearestIn(times: Float64Array, t: number): number {
  const at = lowerBound(times, t)
  if (times.length === 0) return -1
  if (at === 0) return 0
  return at < times.length && times[at] - t < t - times[at - 1] ? at : at - 1
}

/** Times, bytes in flight and the window, in one order. */
function steps(of: Stream): [number[], (number | null)[], (number | null)[]] {
  const [t, flight, window]: [number[], (number | null)[], (number | null)[]] = [[], [], []]
  let [a, offered]: [number, number | null] = [0, null]
  for (const change of of.flight) {
    while (a < of.acks.length && of.acks[a].t <= change.t) offered = of.acks[a++].window
    t.push(change.t)
    flight.push(change.bytes)
    window.push(offered)
  }
  return t.length > 0 ? [t, flight, window] : [[0, 1], [null, null], [null, null]]
}

/** Packets per second of both directions. */
function rates(packets: Packets, first: number, last: number): uPlot.AlignedData {
  const bins = Math.min(400, Math.max(20, Math.ceil(packets.packet.length / 4)))
  const width = (last - first) / bins
  const counts = new Array<number>(bins + 1).fill(0)
  for (let row = 0; row < packets.packet.length; row++) counts[Math.min(bins - 1, Math.floor((packets.at_ns[row] - first) / width))] += packets.count[row] * (1e9 / width)
  return [counts.map((_, at) => first + at * width), counts]
}

function paintRounds(u: uPlot, { causes }: Context, rounds: Packets["rounds"]) {
  const { ctx, bbox } = u
  ctx.save()
  for (let i = 0; i < rounds.start_ns.length; i++) {
    const [px, py] = [u.valToPos(rounds.start_ns[i], "x", true), u.valToPos(rounds.flight_bytes[i], "y", true)]
    if (px < bbox.left || px > bbox.left + bbox.width) continue
    ctx.fillStyle = causes[rounds.cause[i]]?.colour ?? css("--text")
    ctx.fillRect(px - 3 * devicePixelRatio, py - 3 * devicePixelRatio, 6 * devicePixelRatio, 6 * devicePixelRatio)
  }
  ctx.restore()
}

function paintSequence(u: uPlot, { causes }: Context, of: Stream, bands: { t: number; u: number; cause: number }[], place: HTMLElement) {
  const { ctx, bbox } = u
  const [min, max, low, high] = [u.scales.x.min!, u.scales.x.max!, u.scales.y.min!, u.scales.y.max!]
  const X = (t: number) => bbox.left + ((t - min) / (max - min)) * bbox.width
  const Y = (byte: number) => bbox.top + bbox.height - ((byte - low) / (high - low)) * bbox.height
  const ratio = devicePixelRatio || 1
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  ctx.globalAlpha = 0.14
  for (const band of bands) {
    if (band.u < min || band.t > max) continue
    ctx.fillStyle = causes[band.cause]?.colour ?? "gray"
    ctx.fillRect(X(band.t), bbox.top, Math.max(ratio, X(band.u) - X(band.t)), bbox.height)
  }
  ctx.globalAlpha = 1
  const line = (colour: string, width: number, draw: (path: Path2D) => void, dash: number[] = []) => {
    const path = new Path2D()
    draw(path)
    ctx.strokeStyle = colour
    ctx.lineWidth = width * ratio
    ctx.setLineDash(dash.map((part) => part * ratio))
    ctx.stroke(path)
  }
  const stairs = (value: (step: Stream["acks"][number]) => number) => (path: Path2D) => {
    let before: number | null = null
    for (const step of of.acks) {
      const y = Y(value(step))
      if (before !== null && step.t >= min) path.lineTo(X(step.t), before)
      if (before === null || step.t < min) path.moveTo(X(step.t), y)
      else path.lineTo(X(step.t), y)
      before = y
      if (step.t > max) break
    }
  }
  line(css("--edge"), 1.2, stairs((step) => step.edge))
  line(css("--acked"), 1.4, stairs((step) => step.ack))
  line(css("--acked"), 1.4, (path) => {
    for (const step of of.acks) if (step.again > 0 && step.t >= min && step.t <= max) {
      path.moveTo(X(step.t), Y(step.ack))
      path.lineTo(X(step.t), Y(step.ack) + (3 + Math.min(step.again, 4)) * ratio)
    }
  })
  let drawn = 0
  const strokes = (again: boolean) => (path: Path2D) => {
    for (const piece of of.data) {
      if (piece.again !== again || piece.u < min || piece.t > max) continue
      drawn++
      const [x, y, x2, y2] = [X(piece.t), Y(piece.from), X(piece.u), Math.min(Y(piece.to), Y(piece.from) - 2 * ratio)]
      path.moveTo(x, y)
      path.lineTo(x2, y2)
      if (again) {
        path.moveTo(x - 3 * ratio, (y + y2) / 2)
        path.lineTo(x + 3 * ratio, (y + y2) / 2)
      }
    }
  }
  line(css("--text"), 1.4, strokes(false))
  line(css("--again"), 3, strokes(true))
  line(css("--sack"), 2, (path) => {
    for (const block of of.sacks) if (block.t >= min && block.t <= max) {
      path.moveTo(X(block.t), Y(block.from))
      path.lineTo(X(block.t), Y(block.to))
    }
  }, [3, 2])
  ctx.restore()
  place.dataset.drawn = String(drawn)
  place.dataset.range = `${min} ${max}`
}
