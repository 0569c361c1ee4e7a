// What does the reader see? The answer, the bill, what to act on, everything over time, and one connection.

import "./style.css"
import { billView } from "./bill"
import { causesOf } from "./causes"
import { compareView } from "./compare"
import { connectionView } from "./connection"
import { h } from "./dom"
import { findingsView } from "./findings"
import { groupsView } from "./groups"
import { load, type Compared, type Data } from "./load"
import { follow, More } from "./more"
import { scatterView } from "./scatter"
import { spreadView } from "./spread"
import { remembered, Store } from "./state"
import type { Context } from "./view"
import { clock, counted, confidence, day, time, zone } from "./words"

function head(data: Data): HTMLElement {
  const { report, page } = data
  const { capture } = report
  const limits = [
    ...page.notes,
    ...((capture.files?.length ?? 1) > 1 ? ["on this page packets are numbered through all files, as mergecap does; the filters to copy have the numbers of each file"] : []),
  ]
  const kinds: [number, string][] = [[report.exchanges, "exchange"], [report.subscriptions, "subscription"], [report.one_way, "one-way message"], [report.setups, "setup"]]
  const billed = kinds.filter(([n]) => n > 0).map(([n, noun]) => counted(n, noun)).join(", ") || "nothing"
  return h("header", {},
    h("p", { class: "brand" }, "tcpwhy ", h("span", { class: "quiet" }, report.tcpwhy),
      h("nav", { "aria-label": "Parts of the page" }, ...[["bill", "Bill"], ["findings", "To act on"], ["time", "Over time"], ["connection", "Connection"]].map(([id, name]) =>
        h("button", { type: "button", class: "link", click: () => document.getElementById(id)?.scrollIntoView() }, name))), themes()),
    h("h1", { id: "answer" }, report.answer),
    report.findings.length > 0 && h("p", { class: "badges" }, h("span", { class: `badge is-${report.findings[0].confidence}` }, confidence[report.findings[0].confidence])),
    h("p", { class: "facts" }, `${capture.path}: ${counted(capture.packets, "packet")} in ${time(page.span_ns)} from ${day(page.origin, page.offset_s)} ${clock(page.origin, page.offset_s, 0)} ${zone(page.offset_s)}; billed ${time(report.elapsed_ns)}: ${billed}.`),
    page.anonymized && h("p", { class: "notice" }, "Anonymized: addresses are replaced, consistently within what was written with the same key; times, sizes and structure are those of the capture."),
    limits.length > 0 && h("details", {}, h("summary", {}, "Limits of this capture"), h("ul", {}, ...limits.map((limit) => h("li", {}, limit)))))
}

function themes(): HTMLElement {
  const next: Record<string, string> = { "": matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark", dark: "light", light: "dark" }
  return h("button", { type: "button", click: () => shade(next[document.documentElement.dataset.theme ?? ""] ?? "dark") }, "Light or dark")
}

function shade(theme: string) {
  document.documentElement.dataset.theme = theme
  remembered.set("theme", theme)
  dispatchEvent(new Event("theme"))
}

/** Two captures instead of one. */
function compared({ comparison, causes }: Compared): HTMLElement[] {
  document.title = "tcpwhy: before and after"
  return [
    h("header", {},
      h("p", { class: "brand" }, "tcpwhy ", h("span", { class: "quiet" }, comparison.tcpwhy), themes()),
      h("h1", { id: "answer" }, comparison.answer),
      h("p", { class: "facts" }, `Before: ${comparison.before}. After: ${comparison.after}.`)),
    ...compareView(comparison, causesOf(causes)),
    h("footer", {}, h("p", { class: "quiet" }, `Written by tcpwhy ${comparison.tcpwhy}. This file loads nothing from elsewhere.`)),
  ]
}

function ready() {
  requestAnimationFrame(() => {
    performance.mark("first-picture")
    document.documentElement.dataset.ready = "true"
  })
}

/** What is selected, and how to let go of it. */
function selection({ store }: Context): HTMLElement {
  const place = h("p", { class: "selection", role: "status" })
  const draw = () => {
    const { cause, service, client, t, e } = store.state
    const parts = [
      cause && `cause ${cause}`, service && `service ${service}`, client && `client ${client}`, t && `${time(t[0])} to ${time(t[1])}`, e && `elapsed ${time(e[0])} to ${time(e[1])}`,
    ].filter((part) => part !== null && part !== "")
    place.hidden = parts.length === 0
    place.replaceChildren(`Selected: ${parts.join(", ")} `, h("button", { type: "button", id: "clear", click: () => store.clear() }, "Show all"))
  }
  store.on(draw)
  draw()
  return place
}

async function start() {
  const kept = remembered.get("theme")
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept
  const main = document.getElementById("page")!
  try {
    const data = await load()
    if ("comparison" in data) {
      main.replaceChildren(...compared(data))
      ready()
      return
    }
    const causes = causesOf(data.page.causes)
    const more = data.page.served ? new More() : null
    const context: Context = { whole: data, data, causes, byName: new Map(causes.map((cause) => [cause.name, cause])), store: new Store(), more }
    document.title = `tcpwhy: ${data.report.capture.path}`
    main.replaceChildren(
      head(data), selection(context), billView(context), findingsView(context),
      h("section", { "aria-labelledby": "time-head", id: "time" }, h("h2", { id: "time-head" }, "Over time"), scatterView(context), spreadView(context), groupsView(context)),
      connectionView(context),
      h("footer", {}, h("p", { class: "quiet" }, `Written by tcpwhy ${data.report.tcpwhy}. ${more ? "It asks nobody but the tcpwhy that shows it." : "This file loads nothing from elsewhere."} `, h("code", {}, `${data.page.again}`), " prints the same as text.")))
    follow(context)
    ready()
  } catch (error) {
    main.replaceChildren(h("p", { role: "alert" }, `The report in this file cannot be shown (${String(error)}). A current browser is needed; tcpwhy read prints the same as text.`))
  }
}

void start()
