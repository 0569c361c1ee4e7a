// What stands beneath the time-sequence graph? What was in flight beside the windows, each round trip, the delay of each acknowledgement, the way
// in each direction, packets per second.

import uPlot from "uplot"
import type { Packets } from "./load"
import { axis, byteTicks, css, spanAxis } from "./plot"
import { lowerBound } from "./scatter"
import type { Stream } from "./stream"
import type { Context } from "./view"
import { count } from "./words"

/** A plot beneath the graph: its name, what it shows, and how tall it is. */
export interface Curve {
  view: string
  name: string
  tall: number
  /** What its lines and marks are, with the colour of each. */
  legend: [string, string][]
  options: Pick<uPlot.Options, "series"> & { y: uPlot.Scale; axis: uPlot.Axis; draw?: (u: uPlot) => void }
  data: uPlot.AlignedData
}

type Values = (number | null)[]
const none: uPlot.Series = { paths: () => null, points: { show: false } }
const stepped = (colour: string, more: Partial<uPlot.Series> = {}): uPlot.Series => ({ stroke: () => css(colour), width: 1.5, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false }, ...more })
const dots = (colour: string): uPlot.Series => ({ paths: () => null, points: { show: true, size: 5, stroke: () => css(colour), fill: () => css(colour) } })
/** Windows far beyond what is in flight stay outside of the picture. */
const BEYOND = 3

/** Times, bytes in flight, and both windows: what this side may send, and what it lets the other one send. */
function flights(of: Stream, other: Stream): [number[], number[], Values, Values] {
  const [t, flight, offered, own]: [number[], number[], Values, Values] = [[], [], [], []]
  const next = { a: 0, b: 0 }
  let [window, mine]: [number | null, number | null] = [null, null]
  for (const change of of.flight) {
    while (next.a < of.acks.length && of.acks[next.a].t <= change.t) window = of.acks[next.a++].window
    while (next.b < other.acks.length && other.acks[next.b].t <= change.t) mine = other.acks[next.b++].window
    t.push(change.t)
    flight.push(change.bytes)
    offered.push(window)
    own.push(mine)
  }
  return [t, flight, offered, own]
}

const CONGESTION = new Set(["slow-start", "slow-start-after-idle", "congestion-window", "delayed-ack-cwnd", "loss", "rto", "bandwidth", "queueing"])

/** The congestion window as far as rounds show it: what was in flight, where that was all that the sender might send. */
function estimated({ causes }: Context, rounds: Packets["rounds"], t: number[]): Values {
  const out: Values = new Array<number | null>(t.length).fill(null)
  for (let i = 0; i < rounds.start_ns.length; i++) {
    if (!CONGESTION.has(causes[rounds.cause[i]]?.name ?? "")) continue
    const to = rounds.start_ns[i] + rounds.took_ns[i]
    for (let at = lowerBound(t, rounds.start_ns[i]); at < t.length && t[at] <= to; at++) out[at] = rounds.flight_bytes[i]
  }
  return out
}

export function curves(context: Context, packets: Packets, of: Stream, other: Stream, [first, last]: [number, number], visible: () => [number, number]): Curve[] {
  const ends = [first, last]
  const all: Curve[] = []
  const [t, flight, offered, own] = flights(of, other)
  const cwnd = estimated(context, packets.rounds, t)
  const bytesAxis = axis({ size: 84, values: (_, ticks) => byteTicks(ticks) })
  all.push({
    view: "flight", name: "In flight, beside the windows", tall: 170,
    legend: [["in flight", "--accent"], ["window that the receiver offers", "--edge"], ["window offered to the other side", "--sack"], ["congestion window, as round trips show it", "--again"]],
    options: {
      axis: bytesAxis,
      y: { auto: false, range: () => {
        const [from, to] = visible()
        const most = [0, 0, 0, 0]
        for (let i = Math.max(0, lowerBound(t, from) - 1); i < t.length && t[i] <= to; i++) {
          ;[flight, offered, own, cwnd].forEach((values, at) => (most[at] = Math.max(most[at], values[i] ?? 0)))
        }
        const sent = Math.max(most[0], most[3], 1)
        return [0, Math.max(sent, ...[most[1], most[2]].filter((window) => window <= sent * BEYOND)) * 1.1]
      } },
      series: [{}, stepped("--accent", { fill: () => css("--faint") }), stepped("--edge", { dash: [6, 3] }), stepped("--sack", { dash: [2, 3], width: 1 }), stepped("--again", { width: 2 })],
    },
    data: (t.length > 0 ? [t, flight, offered, own, cwnd] : [ends, [null, null], [null, null], [null, null], [null, null]]) as uPlot.AlignedData,
  })
  const { rounds } = packets
  if (rounds.start_ns.length > 0) {
    const most = rounds.flight_bytes.reduce((a, b) => Math.max(a, b), 1)
    all.push({
      view: "rounds", name: "Bytes in flight by round trip, coloured by main cause", tall: 130, legend: [],
      options: { axis: bytesAxis, y: { auto: false, range: () => [0, most * 1.08] }, series: [{}, none], draw: (u) => paintRounds(u, context, rounds) },
      data: [ends, [0, most]],
    })
  }
  all.push({
    view: "delays", name: "How long each acknowledgement took", tall: 120, legend: [],
    options: { axis: spanAxis({}), y: { distr: 3, range: (_, min, max) => [Math.max(1, (min ?? 1e3) / 1.5), Math.max(10, (max ?? 1e6) * 1.5)] }, series: [{}, dots("--accent")] },
    data: (of.delays.length > 0 ? [of.delays.map((delay) => delay.t), of.delays.map((delay) => Math.max(1, delay.ns))] : [ends, [null, null]]) as uPlot.AlignedData,
  })
  const { row, ns } = packets.ways
  if (row.length > 0) {
    const [at, towards, back]: [number[], Values, Values] = [[], [], []]
    row.forEach((row, i) => {
      at.push(packets.at_ns[row])
      towards.push(packets.from[row] === 0 ? ns[i] : null)
      back.push(packets.from[row] === 1 ? ns[i] : null)
    })
    all.push({
      view: "ways", name: "One-way delay, from both captures", tall: 130, legend: [["client to server", "--accent"], ["server to client", "--edge"]],
      options: { axis: axis({ size: 84, values: (_, ticks) => ticks.map((tick) => `${(tick / 1e6).toFixed(2)} ms`) }), y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max ?? 1e6) * 1.1] }, series: [{}, dots("--accent"), dots("--edge")] },
      data: [at, towards, back] as uPlot.AlignedData,
    })
  }
  all.push({
    view: "rate", name: "Packets per second", tall: 110, legend: [["client", "--accent"], ["server", "--edge"]],
    options: { axis: axis({ size: 84, space: 24, values: (_, ticks) => ticks.map(count) }), y: { range: (_, __, max) => [0, (max || 1) * 1.08] }, series: [{}, stepped("--accent"), stepped("--edge")] },
    data: rates(packets, first, last),
  })
  return all
}

/** Packets per second of client and server. */
function rates(packets: Packets, first: number, last: number): uPlot.AlignedData {
  const bins = Math.min(400, Math.max(20, Math.ceil(packets.packet.length / 4)))
  const width = (last - first) / bins
  const counts = [0, 1].map(() => new Array<number>(bins + 1).fill(0))
  for (let row = 0; row < packets.packet.length; row++) counts[packets.from[row]][Math.min(bins - 1, Math.floor((packets.at_ns[row] - first) / width))] += packets.count[row] * (1e9 / width)
  return [counts[0].map((_, at) => first + at * width), counts[0], counts[1]]
}

/** Each round trip as wide as it took and as tall as what was in flight. */
function paintRounds(u: uPlot, { causes }: Context, rounds: Packets["rounds"]) {
  const { ctx, bbox } = u
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  for (let i = 0; i < rounds.start_ns.length; i++) {
    const [x, end, y] = [u.valToPos(rounds.start_ns[i], "x", true), u.valToPos(rounds.start_ns[i] + rounds.took_ns[i], "x", true), u.valToPos(rounds.flight_bytes[i], "y", true)]
    if (end < bbox.left || x > bbox.left + bbox.width) continue
    ctx.fillStyle = causes[rounds.cause[i]]?.colour ?? css("--quiet")
    ctx.fillRect(x, y, Math.max(1.5, end - x - (end - x > 4 ? 1 : 0)), bbox.top + bbox.height - y)
  }
  ctx.restore()
}
