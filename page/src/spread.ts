// How are the times spread? A histogram of elapsed times and what took each percentile, stacked by cause.

import { behind, h, later, s, table, wide } from "./dom"
import { selected } from "./select"
import type { Context } from "./view"
import { count, percent, time } from "./words"

const BINS_A_DECADE = 8
const PERCENTILES: [string, number][] = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99], ["p99.9", 0.999], ["longest", 1]]

/** Rows from the fastest to the slowest, with how many exchanges there are up to each. */
function ordered(context: Context, rows: Int32Array) {
  const { exchanges } = context.data
  const sorted = Int32Array.from(rows).sort((a, b) => exchanges.elapsed_ns[a] - exchanges.elapsed_ns[b] || a - b)
  const upTo = new Float64Array(sorted.length)
  sorted.reduce((sum, row, at) => (upTo[at] = sum + exchanges.stands_for[row]), 0)
  return { sorted, upTo }
}

export function spreadView(context: Context): HTMLElement {
  const { causes, store } = context
  const place = h("div", { id: "spread" })
  const draw = () => {
    const { data } = context
    const { exchanges } = data
    const rows = selected(data, causes, store.state)
    if (rows.length === 0) {
      place.replaceChildren(h("p", {}, "Nothing is selected."))
      return
    }
    const { sorted, upTo } = ordered(context, rows)
    const bin = (row: number) => Math.floor(Math.log10(Math.max(1, exchanges.elapsed_ns[row])) * BINS_A_DECADE)
    const [first, last] = [bin(sorted[0]), bin(sorted[sorted.length - 1])]
    const bins = Array.from({ length: last - first + 1 }, () => new Float64Array(causes.length + 1))
    for (const row of rows) bins[bin(row) - first][exchanges.cause[row] < 0 ? causes.length : exchanges.cause[row]] += exchanges.stands_for[row]
    const totals = bins.map((bin) => bin.reduce((a, b) => a + b, 0))
    const most = Math.max(...totals)
    const [width, height] = [720, 150]
    const wideness = width / bins.length
    const bars = bins.flatMap((bin, at) => {
      let y = height
      return causes.filter((cause) => bin[cause.at] > 0).map((cause) => {
        const tall = (bin[cause.at] / most) * (height - 10)
        y -= tall
        return s("rect", { x: at * wideness, y, width: Math.max(1, wideness - 1), height: tall, fill: cause.colour, class: `is-${cause.class}` },
          s("title", {}, `${count(bin[cause.at])} of ${edge(first + at)} to ${edge(first + at + 1)}: ${cause.name}`))
      })
    })
    const every = Math.ceil(bins.length / 8)
    const labels = bins.map((_, at) => (at % every === 0 ? s("text", { x: at * wideness, y: height + 16, "text-anchor": at * wideness > width - 50 ? "end" : at === 0 ? "start" : "middle" }, edge(first + at)) : null))
    const picture = s("svg", { viewBox: `0 0 ${width} ${height + 24}`, class: "histogram", "aria-hidden": "true" }, ...bars, ...labels)
    const whole = upTo[upTo.length - 1]
    const lines = PERCENTILES.map(([name, share]) => {
      const at = upTo.findIndex((sum) => sum >= whole * share)
      const row = sorted[at < 0 ? sorted.length - 1 : at]
      return { name, row, elapsed: exchanges.elapsed_ns[row], parts: around(context, sorted, at < 0 ? sorted.length - 1 : at) }
    })
    const longest = lines[lines.length - 1].elapsed
    const stacked = lines.map(({ name, elapsed, parts }) => {
      const stack = h("div", { class: "stack" }, ...parts.map(([cause, share]) => {
        const part = wide(h("span", { class: `bar is-${causes[cause].class}`, title: `${causes[cause].name} ${percent(share, 1)}` }), share)
        part.style.setProperty("--cause", causes[cause].colour)
        return part
      }))
      stack.style.width = `${Math.max(2, (elapsed / longest) * 100)}%`
      const words = parts.slice(0, 3).map(([cause, share]) => `${causes[cause].name} ${percent(share, 1)}`).join(", ")
      return [name, time(elapsed), h("div", { class: "stack-room" }, stack), words]
    })
    place.replaceChildren(
      h("h3", {}, "Distribution"),
      h("figure", {}, picture, h("figcaption", { class: "quiet" }, "Exchanges, messages and setups by elapsed time, coloured by main cause.")),
      behind("The histogram as a table", table("Exchanges, messages and setups by elapsed time", ["from", "to", "number", "mostly"], bins.map((bin, at) => {
        const mostly = causes.reduce((best, cause) => (bin[cause.at] > (bin[best] ?? 0) ? cause.at : best), -1)
        return [edge(first + at), edge(first + at + 1), count(totals[at]), mostly < 0 ? "" : causes[mostly].name]
      }), [2])),
      table("Percentiles of exchanges, messages and setups, and what took them", ["", "elapsed", "what took it (of those around it)", ""], stacked, [1]))
  }
  const soon = later(draw)
  store.on((state, before, fresh) => {
    if (fresh || state.c === before.c && state.x === before.x) soon()
  })
  draw()
  return place
}

function edge(bin: number): string {
  return time(Math.round(10 ** (bin / BINS_A_DECADE)))
}

/** Shares of the causes over the exchanges next to one, one in fifty of all. */
function around({ data, causes }: Context, sorted: Int32Array, at: number): [number, number][] {
  const { exchanges } = data
  const reach = Math.floor(sorted.length / 100)
  const byCause = new Float64Array(causes.length)
  let whole = 0
  for (let i = Math.max(0, at - reach); i <= Math.min(sorted.length - 1, at + reach); i++) {
    for (let line = exchanges.billAt[sorted[i]]; line < exchanges.billAt[sorted[i] + 1]; line++) {
      const ns = exchanges.stands_for[sorted[i]] * exchanges.bill_ns[line]
      byCause[exchanges.bill_cause[line]] += ns
      whole += ns
    }
  }
  return [...byCause].map((ns, cause): [number, number] => [cause, whole > 0 ? ns / whole : 0]).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1])
}
