// What went, and what came? Two captures side by side, by service and cause, with the spread and whether it is more than chance.

import { swatch } from "./bill"
import type { Cause } from "./causes"
import { behind, h, s, table, wide } from "./dom"
import { count, counted, percent, time } from "./words"

export interface Change {
  counts: [number, number]
  mean_ns: [number, number]
  p50_ns: [number, number]
  p99_ns: [number, number]
  verdict: "slower" | "faster" | "no-difference" | "too-few"
  chance?: { p: number; low_ns: number; high_ns: number }
}

/** The document tcpwhy.compare/1. */
export interface Comparison {
  tcpwhy: string
  before: string
  after: string
  answer: string
  rows: { service: string; kind: string; elapsed: Change; causes: (Change & { cause: string })[] }[]
  unmatched: { service: string; before: number; after: number }[]
  omitted: number
}

const VERDICTS = { slower: "slower", faster: "faster", "no-difference": "no difference", "too-few": "too few to tell" }
const SIGNS = { slower: "▲", faster: "▼", "no-difference": "=", "too-few": "?" }

function signed(ns: number): string {
  return ns > 0 ? `+${time(ns)}` : time(ns)
}

function change({ mean_ns: [before, after] }: Change): number {
  return after - before
}

function verdict(of: Change): HTMLElement {
  return h("span", { class: `verdict is-${of.verdict}` }, h("span", { "aria-hidden": "true" }, SIGNS[of.verdict]), ` ${VERDICTS[of.verdict]}`)
}

function sentence(of: Change): string {
  if (of.chance === undefined) return "(fewer than five on one side)."
  const range = `95 % interval ${signed(of.chance.low_ns)} to ${signed(of.chance.high_ns)}, p ${of.chance.p.toFixed(4)}`
  if (of.verdict !== "slower" && of.verdict !== "faster") return `on the average (${range}).`
  return `by ${time(Math.abs(change(of)))}, ${percent(Math.abs(change(of)), of.mean_ns[0])} of the mean before (${range}).`
}

/** Both means as bars of the same scale, each divided by cause. */
function bars(row: Comparison["rows"][number], byName: Map<string, Cause>): HTMLElement {
  const longest = Math.max(...row.elapsed.mean_ns, 1)
  const bar = (side: 0 | 1) => {
    const parts = row.causes.filter((line) => line.mean_ns[side] > 0).sort((a, b) => b.mean_ns[side] - a.mean_ns[side]).map((line) => {
      const cause = byName.get(line.cause)!
      const part = wide(h("span", { class: `bar is-${cause.class}`, title: `${line.cause} ${time(line.mean_ns[side])}`, "data-cause": line.cause, "data-ns": line.mean_ns[side] },
        line.mean_ns[side] / longest > 0.28 && h("span", { class: "part-name" }, line.cause)), line.mean_ns[side] / Math.max(1, row.elapsed.mean_ns[side]))
      part.style.setProperty("--cause", cause.colour)
      return part
    })
    return h("div", { class: "versus" }, h("span", {}, ["before", "after"][side]), h("span", { class: "versus-room" }, wide(h("span", { class: "stack tall" }, ...parts), row.elapsed.mean_ns[side] / longest)), h("span", { class: "number" }, time(row.elapsed.mean_ns[side])))
  }
  return h("figure", { "aria-hidden": "true" }, bar(0), bar(1), h("figcaption", { class: "quiet" }, "Mean of each side, divided by cause, on one scale."))
}

/** Where the change lies, with the range of 95 % of the resamplings: left of the line less, right of it more. */
function whisker(of: Change, most: number): SVGElement | string {
  if (of.chance === undefined) return ""
  const [width, tall] = [180, 18]
  const x = (ns: number) => width / 2 + (Math.max(-most, Math.min(most, ns)) / most) * (width / 2 - 6)
  const { low_ns: low, high_ns: high } = of.chance
  return s("svg", { viewBox: `0 0 ${width} ${tall}`, width, height: tall, class: `whisker is-${of.verdict}`, "aria-hidden": "true" },
    s("line", { x1: width / 2, x2: width / 2, y1: 0, y2: tall, class: "zero" }),
    s("line", { x1: x(low), x2: x(high), y1: tall / 2, y2: tall / 2, class: "range" }),
    ...[low, high].map((ns) => s("line", { x1: x(ns), x2: x(ns), y1: 5, y2: tall - 5, class: "range" })),
    s("circle", { cx: x(change(of)), cy: tall / 2, r: 4 }))
}

export function compareView(of: Comparison, causes: Cause[]): HTMLElement[] {
  const byName = new Map(causes.map((cause) => [cause.name, cause]))
  const sections = of.rows.map((row, at) => {
    const { elapsed } = row
    const most = Math.max(1, ...[elapsed, ...row.causes].flatMap((of) => [Math.abs(change(of)), Math.abs(of.chance?.low_ns ?? 0), Math.abs(of.chance?.high_ns ?? 0)]))
    const line = (name: HTMLElement | string, of: Change) => [name, time(of.mean_ns[0]), time(of.mean_ns[1]), signed(change(of)), whisker(of, most), verdict(of)]
    const spread = (name: string, [before, after]: [number, number]) => [name, time(before), time(after), signed(after - before), "", ""]
    const rows = [
      line("mean", elapsed), spread("median", elapsed.p50_ns), spread("p99", elapsed.p99_ns),
      ...row.causes.map((of) => line(h("span", { class: "named" }, swatch(byName.get(of.cause)!), of.cause), of)),
    ]
    const titles = row.causes.map((line) => byName.get(line.cause)!).flatMap((cause) => [h("dt", {}, cause.name), h("dd", {}, cause.title)])
    return h("section", { class: "compared", "aria-labelledby": `row-${at}`, "data-service": row.service, "data-kind": row.kind, "data-verdict": elapsed.verdict },
      h("h2", { id: `row-${at}` }, `${row.service}: ${counted(elapsed.counts[0], row.kind)} before, ${count(elapsed.counts[1])} after`),
      h("p", { class: "sentence" }, verdict(elapsed), ` ${sentence(elapsed)}`),
      bars(row, byName),
      table("By cause", ["", "before", "after", "change", "change, with its 95 % interval", "significant?"], rows, [1, 2, 3]),
      behind("What these causes are", h("dl", {}, ...titles)))
  })
  return [
    ...sections,
    of.unmatched.length > 0 ? h("section", {}, h("h2", {}, "Nothing to compare with"), h("ul", {}, ...of.unmatched.map((one) => h("li", {}, `${one.service}: ${count(one.before + one.after)} ${one.before > 0 ? "before" : "after"} only`)))) : h("span"),
    of.omitted > 0 ? h("p", { class: "quiet" }, `${count(of.omitted)} exchanges are billed and not compared: there were too many to keep.`) : h("span"),
  ]
}
