// Where did the time go? The bill as one bar, of the whole capture or of what is selected; a click on a part selects its cause.

import { behind, h, s, table, wide } from "./dom"
import { selected, sums } from "./select"
import type { Context } from "./view"
import { count, percent, time } from "./words"

interface Line { cause: string; side: string; ns: number; hits: number | null }

function lines({ data, causes, store }: Context): { of: string; whole: number; lines: Line[] } {
  const { state } = store
  if (state.t === null && state.service === null && state.client === null) {
    return { of: "the whole capture", whole: data.report.elapsed_ns, lines: data.report.bill }
  }
  const { elapsed, byCause } = sums(data, selected(data, causes, state, "cause"))
  const some = causes.map((cause) => ({ cause: cause.name, side: "", ns: byCause[cause.at], hits: null }))
  return { of: "what is selected", whole: elapsed, lines: some.filter((line) => line.ns > 0).sort((a, b) => b.ns - a.ns) }
}

export function billView(context: Context): HTMLElement {
  const place = h("section", { "aria-labelledby": "bill-head", id: "bill" })
  const draw = () => {
    const { of, whole, lines: billed } = lines(context)
    const parts = billed.filter((line) => line.ns > 0).map((line) => {
      const cause = context.byName.get(line.cause)!
      const is = context.store.state.cause === line.cause
      const name = `${line.cause}${line.side ? `, ${line.side}` : ""}: ${time(line.ns)}, ${percent(line.ns, whole)}`
      const button = h("button", {
        type: "button", class: "part", title: name, "aria-label": `Select ${name}`, "aria-pressed": String(is), "data-cause": line.cause, "data-ns": line.ns,
        click: () => context.store.change({ cause: is ? null : line.cause }),
      }, line.ns / whole > 0.1 && h("span", { class: "part-name" }, line.cause))
      button.style.setProperty("--cause", cause.colour)
      button.classList.add(`is-${cause.class}`)
      return wide(button, line.ns / whole)
    })
    const rows = billed.map((line) => {
      const cause = context.byName.get(line.cause)!
      const bar = wide(h("span", { class: `bar is-${cause.class}` }), line.ns / Math.max(1, billed[0].ns))
      bar.style.setProperty("--cause", cause.colour)
      return [h("span", { class: "named" }, swatch(cause), line.cause), line.side, time(line.ns), percent(line.ns, whole), line.hits === null ? "" : count(line.hits), bar]
    })
    place.replaceChildren(
      h("h2", { id: "bill-head" }, "Where the time went"),
      h("p", { class: "quiet" }, `${time(whole)} of ${of}: every nanosecond has one cause.`),
      h("div", { class: "bill", role: "group", "aria-label": "The bill; a button selects a cause" }, ...parts),
      table("The bill, largest first", ["cause", "side", "time", "share", "times", ""], rows, [2, 3, 4]),
      behind("What these causes are", h("dl", {}, ...billed.filter((line, at) => billed.findIndex((other) => other.cause === line.cause) === at).flatMap((line) => [
        h("dt", {}, line.cause), h("dd", {}, context.byName.get(line.cause)!.title, " ", h("code", {}, `tcpwhy explain ${line.cause}`)),
      ]))),
    )
  }
  context.store.on(draw)
  draw()
  return place
}

/** The colour and the shape of a cause. */
export function swatch(cause: { colour: string; shape: string; class: string }): SVGElement {
  const shapes: Record<string, string> = {
    disc: "M13 8A5 5 0 1 1 3 8A5 5 0 1 1 13 8", triangle: "M8 2L14 13H2Z", square: "M3 3H13V13H3Z", diamond: "M8 1L15 8L8 15L1 8Z", cross: "M6 2H10V6H14V10H10V14H6V10H2V6H6Z",
  }
  return s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "swatch" }, s("path", { d: shapes[cause.shape], fill: cause.colour }))
}
