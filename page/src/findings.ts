// What is to be done? Each finding in the order of cost, drawn packet by packet where it shows best, with the fixes for the reader's stack.

import { swatch } from "./bill"
import { behind, command, copies, h } from "./dom"
import { ladder } from "./ladder"
import type { Finding, Remedy } from "./load"
import { remembered } from "./state"
import type { Context } from "./view"
import { confidence, count, percent, time } from "./words"

/** So many are drawn; the others stand in the list. */
const DRAWN = 6
/** Of the rest so many are listed at once. */
const LISTED = 8
/** Stacks told at once. */
const SHOWN = 4

function saving(remedy: Remedy): string {
  if (remedy.saves_ns === null || remedy.saves_ns <= 0) return ""
  if ((remedy.saves_least_ns ?? 0) > 0) return ` Saves ${time(remedy.saves_least_ns!)} to ${time(remedy.saves_ns)}.`
  return ` Saves ${remedy.saves_kind === "at-most" ? "at most" : "about"} ${time(remedy.saves_ns)}.`
}

/** How it is said in each stack, to copy. */
function words(how: Remedy["how"]): HTMLElement {
  return h("dl", { class: "how" }, ...how.flatMap((how) => [h("dt", {}, how.stack), h("dd", {}, h("code", {}, how.text), " ", copies(how.text))]))
}

function fixes(finding: Finding, stack: string): HTMLElement {
  const items = finding.remedies.map((remedy) => {
    const how = remedy.how.filter((how) => stack === "" || how.stack === stack)
    const none = remedy.how.length > 0 && how.length === 0
    return h("li", {},
      h("p", {}, `${remedy.what}.`, h("strong", {}, saving(remedy))),
      remedy.caveat && h("p", { class: "quiet" }, remedy.caveat),
      none && h("p", { class: "quiet" }, `Nothing for ${stack}; choose another stack.`),
      how.length > 0 && words(how.slice(0, stack === "" ? SHOWN : undefined)),
      stack === "" && how.length > SHOWN && behind(`${how.length - SHOWN} more stacks`, words(how.slice(SHOWN))))
  })
  return h("ol", { class: "fixes" }, ...items)
}

export function findingsView(context: Context): HTMLElement {
  const { whole: data, byName, store } = context
  const { findings } = data.report
  const offered = data.page.stacks.filter((stack) => findings.some((finding) => finding.remedies.some((remedy) => remedy.how.some((how) => how.stack === stack))))
  const kept = remembered.get("stack") ?? ""
  const select = h("select", { id: "stack" }, h("option", { value: "" }, "every stack"), ...offered.map((stack) => h("option", { value: stack }, stack)))
  select.value = offered.includes(kept) ? kept : ""
  const redraw: (() => void)[] = []
  select.addEventListener("change", () => {
    remembered.set("stack", select.value)
    redraw.forEach((draw) => draw())
  })
  const acted = data.page.told.filter((told) => told.shown).length
  let drawnSoFar = 0
  const articles = findings.map((finding, at) => {
    const cause = byName.get(finding.cause)!
    const { sentence, shown, packets } = data.page.told[at]
    const whose = finding.servers === undefined ? `${finding.side} of ${finding.endpoint}` : `${finding.side}, ${count(finding.servers)} servers`
    const { connection, exchange } = finding.worst
    const place = h("div")
    const draw = () => place.replaceChildren(fixes(finding, select.value))
    redraw.push(draw)
    draw()
    const drawn = () => ladder({ ...context, data }, connection, exchange) ?? h("p", { class: "quiet" }, "Its packets are not in this file; the command below shows them.")
    const picture = h("div")
    const open = shown ? drawnSoFar++ < DRAWN : at === 0 && acted === 0
    const body = [
      h("p", {}, `${time(finding.ns)} in all, ${percent(finding.ns, data.report.elapsed_ns)} of the time; median ${time(finding.p50_ns)}, p99 ${time(finding.p99_ns)}, longest ${time(finding.max_ns)}, on ${count(finding.hits)} of ${count(finding.of)}; ${confidence[finding.confidence]}.`),
      picture,
      h("p", {}, h("button", { type: "button", click: () => store.change({ c: connection, x: exchange }) }, `Show connection ${connection}`), " ",
        h("button", { type: "button", click: () => store.change({ cause: finding.cause, service: finding.servers === undefined ? finding.endpoint : null }) }, "Select its exchanges")),
      finding.remedies.length > 0 && h("h4", {}, "What to change"),
      place,
      behind("Where to look", command(`${data.page.again} --connection ${connection} --exchange ${exchange}`),
        ...packets.flatMap(({ of, filter }) => [of === undefined ? null : h("p", { class: "quiet" }, `Packets of ${of}:`), command(filter)]), command(`tcpwhy explain ${finding.cause}`)),
    ]
    const named = [swatch(cause), ` ${finding.cause}, ${whose}`]
    const told = `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`
    if (open) {
      picture.append(drawn())
      return h("article", { class: "finding", "data-cause": finding.cause }, h("h3", {}, ...named), h("p", { class: "sentence" }, told), ...body)
    }
    // One line each for what takes little: it is there, and not in the way.
    const more = h("details", {}, h("summary", {}, h("h3", { class: "small" }, ...named), h("span", { class: "quiet" }, ` ${time(finding.ns)}, ${percent(finding.ns, data.report.elapsed_ns)} of the time`)), h("p", { class: "sentence" }, told), ...body)
    more.addEventListener("toggle", () => picture.childElementCount === 0 && picture.append(drawn()), { once: true })
    return h("article", { class: "finding small", "data-cause": finding.cause }, more)
  })
  const first = articles.slice(0, articles.findLastIndex((article) => !article.classList.contains("small")) + 1)
  const rest = articles.slice(first.length)
  return h("section", { "aria-labelledby": "findings-head", id: "findings" },
    h("h2", { id: "findings-head" }, "What to act on"),
    acted === 0 && h("p", {}, findings.length === 0 ? "No finding." : "No finding is worth acting on."),
    findings.length > 0 && h("p", {}, h("label", { for: "stack" }, "Fixes for "), select),
    ...first,
    rest.length > 0 && h("div", { class: "rest" }, h("h3", {}, "Also billed, less to gain"), ...rest.slice(0, LISTED), rest.length > LISTED && behind(`${count(rest.length - LISTED)} more`, ...rest.slice(LISTED))))
}
