// What does the reader see? The answer, the bill, what to act on, everything over time, and one connection.

import "./style.css"
import { billView } from "./bill"
import { causesOf } from "./causes"
import { connectionView } from "./connection"
import { h } from "./dom"
import { findingsView } from "./findings"
import { groupsView } from "./groups"
import { load, type Data } from "./load"
import { scatterView } from "./scatter"
import { spreadView } from "./spread"
import { remembered, Store } from "./state"
import type { Context } from "./view"
import { clock, counted, count, time } from "./words"

function head(data: Data): HTMLElement {
  const { report, page } = data
  const { capture } = report
  const theme = h("button", { type: "button", click: () => shade(next[document.documentElement.dataset.theme ?? ""] ?? "dark") }, "Light or dark")
  const next: Record<string, string> = { "": matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark", dark: "light", light: "dark" }
  const limits = [
    capture.truncated && "The capture ends in the middle of a packet.",
    capture.drops > 0 && `The capture says that it lost ${counted(capture.drops, "packet")}.`,
    ...report.notes.map((note) => `${note.kind}: ${count(note.count)}, first at frame ${note.first_packet}.`),
  ].filter((limit) => limit !== false)
  return h("header", {},
    h("p", { class: "brand" }, "tcpwhy ", h("span", { class: "quiet" }, report.tcpwhy), theme),
    h("h1", { id: "answer" }, report.answer),
    h("p", { class: "facts" }, `${capture.path}: ${counted(capture.packets, "packet")} in ${time(page.span_ns)} from ${clock(page.origin, page.offset_s, 0)} on ${page.origin.slice(0, 10)}; billed ${time(report.elapsed_ns)}: ${counted(report.exchanges, "exchange")}, ${counted(report.setups, "setup")}, ${counted(report.one_way, "one-way message")}, ${counted(report.subscriptions, "subscription")}.`),
    page.anonymized && h("p", { class: "notice" }, "Anonymized: addresses are replaced, consistently within what was written with the same key; times, sizes and structure are those of the capture."),
    limits.length > 0 && h("details", {}, h("summary", {}, "What limits what can be said"), h("ul", {}, ...limits.map((limit) => h("li", {}, limit as string)))))
}

function shade(theme: string) {
  document.documentElement.dataset.theme = theme
  remembered.set("theme", theme)
  dispatchEvent(new Event("theme"))
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
    const causes = causesOf(data)
    const context: Context = { data, causes, byName: new Map(causes.map((cause) => [cause.name, cause])), store: new Store() }
    document.title = `tcpwhy: ${data.report.capture.path}`
    main.replaceChildren(
      head(data), selection(context), billView(context), findingsView(context),
      h("section", { "aria-labelledby": "time-head", id: "time" }, h("h2", { id: "time-head" }, "Over time"), scatterView(context), spreadView(context), groupsView(context)),
      connectionView(context),
      h("footer", {}, h("p", { class: "quiet" }, `Written by tcpwhy ${data.report.tcpwhy}. This file loads nothing from elsewhere. `, h("code", {}, `${data.page.again}`), " prints the same as text.")))
    requestAnimationFrame(() => {
      performance.mark("first-picture")
      document.documentElement.dataset.ready = "true"
    })
  } catch (error) {
    main.replaceChildren(h("p", { role: "alert" }, `The report in this file cannot be shown (${String(error)}). A current browser is needed; tcpwhy read prints the same as text.`))
  }
}

void start()
