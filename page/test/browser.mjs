// Is what the page draws what the other outputs say? Chromium on pages of real captures, compared with their JSON.
//
// node test/browser.mjs CASES.json: a list of {name, page, json, ladder, open, shots}; `json` is what `read --json` prints, `ladder` the same
// of the first finding's connection, `open` of the first one's that the page has open, `shots` a folder for screenshots, of the views in `of`. A case with `url` is served there, one with `kind`
// "compare" is of two captures, and `json` what `compare --json` prints; of one with `within` the first picture and a zoom may take so many
// milliseconds. Prints what failed, and how long pictures took.

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { gunzipSync } from "node:zlib"
import Ajv from "ajv/dist/2020.js"
import axe from "axe-core"
import { chromium } from "playwright-core"

const cases = JSON.parse(readFileSync(process.argv[2], "utf8"))
const schema = JSON.parse(readFileSync(new URL("../../docs/schema/tcpwhy.page.3.schema.json", import.meta.url), "utf8"))
const validate = new Ajv({ strict: false }).compile(schema)
const differences = (column) => column.flatMap((step, at) => (Array.isArray(step) ? new Array(step[0]).fill(column[at - 1]) : [step]))
const numbers = (column) => differences(column).map(((sum) => (difference) => (sum += difference))(0))
/** Both ends' packets in the order of their numbers: columns of some names, and who sent each. */
const together = ({ sent }, ...names) => {
  const rows = sent.flatMap((own, end) => {
    const columns = names.map((name) => numbers(own[name]))
    return numbers(own.packet).map((packet, row) => [packet, end, ...columns.map((column) => column[row])])
  })
  rows.sort((a, b) => a[0] - b[0])
  return ["packet", "from", ...names].map((_, at) => rows.map((row) => row[at]))
}
const waysOf = ({ sent }) => sent.reduce((sum, own) => sum + numbers(own.ways.row).length, 0)
const dataOf = (path) => JSON.parse(gunzipSync(Buffer.from(readFileSync(path, "utf8").match(/id="data">([^<]*)</)[1], "base64")))
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium"
// Root cannot have Chromium's own sandbox; the pages are ours.
const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])] })
const documents = new Map()
let failed = 0

const views = { answer, bill, findings, scatter, groups, sequence, curves, tables, remembered, phone, dark, hostileFragment }
const kinds = { compare: { compared, phone, dark }, served: { asked }, transfer: { zoomed } }

for (const one of cases) {
  const view = await open(one.page, one.url)
  for (const [name, check] of Object.entries(kinds[one.kind] ?? views)) {
    try {
      await check(view, one)
    } catch (error) {
      failed++
      console.log(`${one.name}: ${name}: ${error.stack?.split("\n").slice(0, 6).join("\n  ")}`)
    }
  }
  await view.page.context().close()
}
await browser.close()
console.log(failed === 0 ? `${cases.length} pages hold` : `${failed} checks failed`)
process.exit(failed === 0 ? 0 : 1)

/** A page with all that must not happen on it watched for. */
async function open(path, url = pathToFileURL(path).href) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, colorScheme: "light" })
  const page = await context.newPage()
  const wrong = []
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()))
  page.on("pageerror", (error) => wrong.push(error.message))
  page.on("dialog", (dialog) => { wrong.push("a dialog"); void dialog.dismiss() })
  page.on("request", (request) => !request.url().startsWith(url) && wrong.push(`loads ${request.url()}`))
  const view = { page, wrong, url, data: path === undefined ? null : dataOf(path) }
  await go(view, "")
  return view
}

async function go(view, fragment) {
  await view.page.goto("about:blank")
  await view.page.goto(view.url + fragment)
  await view.page.waitForSelector("html[data-ready]", { timeout: 30_000 })
  await frame(view.page)
}

function frame(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
}

/** How long until the next picture behind what `act` does, in milliseconds. */
function drawn(page, selector, key) {
  return page.evaluate(([selector, key]) => new Promise((done) => {
    const element = document.querySelector(selector)
    const start = performance.now()
    element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)))
  }), [selector, key])
}

async function answer({ page, data, wrong }, { json, name, within }) {
  const errors = validate(data) ? [] : validate.errors
  assert.deepEqual(errors, [])
  assert.equal(await page.textContent("h1"), readJson(json).answer)
  const first = await page.evaluate(() => performance.getEntriesByName("first-picture")[0].startTime)
  console.log(`${name}: first picture after ${first.toFixed(0)} ms`)
  if (within !== undefined) assert.ok(first < within.first, `the first picture came after ${first} ms`)
  assert.deepEqual(wrong, [])
}

function readJson(path) {
  if (!documents.has(path)) documents.set(path, JSON.parse(readFileSync(path, "utf8")))
  return documents.get(path)
}

async function bill({ page }, { json }) {
  const { bill, elapsed_ns } = readJson(json)
  const parts = await page.$$eval(".bill .part", (parts) => parts.map((part) => ({ cause: part.dataset.cause, ns: Number(part.dataset.ns), width: part.getBoundingClientRect().width, whole: part.parentElement.clientWidth })))
  const told = bill.filter((line) => line.ns > 0)
  assert.deepEqual(parts.map(({ cause, ns }) => [cause, ns]), told.map(({ cause, ns }) => [cause, ns]))
  // Gaps and the least width that a finger finds take some of the room.
  const lost = 6 * parts.length + 2
  for (const part of parts) assert.ok(Math.abs(part.width - (part.ns / elapsed_ns) * part.whole) <= lost, `${part.cause} is ${part.width} of ${part.whole} wide`)
  assert.equal(await page.locator("#bill tbody tr").count(), bill.length)
}

async function findings({ page }, { json, open: drawn }) {
  const document = readJson(json)
  assert.deepEqual(await page.$$eval("article.finding", (all) => all.map((one) => one.dataset.cause)), document.findings.map((finding) => finding.cause))
  if (document.findings.length === 0) return
  // Those that the text shows are open, or the first one where there is nothing to act on.
  const open = (await page.$$eval("article.finding", (all) => all.map((one) => !one.classList.contains("small")))).indexOf(true)
  const { worst } = document.findings[open]
  const rungs = readJson(drawn).connections[0].ladder.filter((rung) => rung.exchange === worst.exchange)
  const picture = page.locator("article.finding").nth(open).locator("svg.ladder")
  const packets = await picture.locator("[data-packet]").evaluateAll((all) => all.map((one) => Number(one.dataset.packet)))
  const gaps = await picture.locator(".gap").evaluateAll((all) => all.map((one) => [one.dataset.cause, Number(one.dataset.ns)]))
  const kept = new Set(packets)
  assert.ok(packets.length > 0 && packets.every((packet) => rungs.some((rung) => rung.packet === packet)))
  if (rungs.length <= 36) assert.deepEqual(packets, rungs.map((rung) => rung.packet))
  const shown = await picture.locator("[data-packet]").evaluateAll((all) => all.map((one) => [Number(one.dataset.packet), one.querySelector("text.on").textContent]))
  for (const [packet, label] of shown) assert.equal(label, said(rungs.find((rung) => rung.packet === packet)), `packet ${packet}`)
  assert.deepEqual(gaps, rungs.filter((rung) => kept.has(rung.packet)).flatMap((rung) => rung.billed.map((line) => [line.cause, line.ns])))
  const longest = Math.max(0, ...rungs.flatMap((rung) => rung.billed.map((line) => line.ns)))
  assert.ok(longest === 0 || gaps.some(([, ns]) => ns === longest), "the longest wait is drawn")
}

/** What the text's ladder says of a packet, whose numbers are Wireshark's. */
function said({ flags, seq, len, ack, window, window_field, window_scale }) {
  const numbers = len > 0 || /[SF]/.test(flags) ? ` ${grouped(seq)}+${grouped(len)}` : ""
  const acked = ack == null ? "" : ` ack ${grouped(ack)}`
  return `${flags}${numbers}${acked} win ${window_scale == null ? `${grouped(window_field)} raw` : grouped(window)}`
}

function grouped(n) {
  return n.toLocaleString("en-US")
}

async function scatter(view, { json, name, shots, of }) {
  const { page, data } = view
  const document = readJson(json)
  const listed = document.connections.flatMap((connection) => connection.exchanges)
  // Of a connection that is drawn there are also those for which others stand.
  const points = numbers(data.exchanges.stands_for).flatMap((stands, row) => (stands > 0 ? [row] : []))
  const [starts, times] = [numbers(data.exchanges.start_ns), numbers(data.exchanges.elapsed_ns)]
  const table = { start: points.map((row) => starts[row]), elapsed: points.map((row) => times[row]) }
  const plot = page.locator("[data-view=scatter]")
  const count = async (attribute) => Number(await plot.getAttribute(attribute))
  assert.equal(await count("data-points"), table.start.length, "every exchange is a point")
  if (of.includes("scatter")) await page.locator(".scatter").screenshot({ path: `${shots}/${name}-scatter.png` })
  // A cause.
  const cause = document.bill[0].cause
  await page.click(`.bill .part[data-cause="${cause}"]`)
  await frame(page)
  const complete = document.omitted.exchanges === 0 && table.start.length === listed.length
  if (complete) assert.equal(await count("data-selected"), listed.filter((exchange) => exchange.bill.some((line) => line.cause === cause)).length)
  assert.match(page.url(), new RegExp(`cause=${cause}`))
  // By key: let go, then walk to the first exchange.
  const box = page.locator(".scatter")
  await box.focus()
  await page.keyboard.press("Escape")
  await frame(page)
  assert.equal(await count("data-selected"), table.start.length)
  await page.keyboard.press("ArrowRight")
  const said = await page.textContent("#scatter-hover")
  const row = Number(await page.getAttribute("#scatter-hover", "data-row"))
  assert.equal(row, points[0])
  assert.match(said, new RegExp(`${numbers(data.exchanges.n)[row]} of connection`))
  // By mouse: the slowest.
  const slowest = table.elapsed.indexOf(Math.max(...table.elapsed))
  const area = await page.locator("[data-view=scatter] .u-over").boundingBox()
  const fast = Math.min(...table.elapsed.filter((ns) => ns > 0)) / 1.5
  const slow = Math.max(...table.elapsed, 1e3) * 1.5
  const [from, to] = [-data.span_ns * 0.01, data.span_ns * 1.01 + 1]
  const x = area.x + ((table.start[slowest] - from) / (to - from)) * area.width
  const y = area.y + area.height * (1 - Math.log(table.elapsed[slowest] / fast) / Math.log(slow / fast))
  await page.locator("[data-view=scatter]").scrollIntoViewIfNeeded()
  const now = await page.locator("[data-view=scatter] .u-over").boundingBox()
  await page.mouse.move(x, y + now.y - area.y)
  await page.mouse.move(x + 1, y + now.y - area.y)
  const pointed = Number(await page.getAttribute("#scatter-hover", "data-row"))
  assert.ok(Math.abs(times[pointed] - table.elapsed[slowest]) <= table.elapsed[slowest] * 0.1, `points at ${times[pointed]}, not at ${table.elapsed[slowest]}`)
  // Drag over the left half.
  await page.mouse.move(now.x + 2, now.y + 2)
  await page.mouse.down()
  await page.mouse.move(now.x + now.width / 2, now.y + now.height - 2, { steps: 4 })
  await page.evaluate(() => addEventListener("mouseup", () => {
    const start = performance.now()
    requestAnimationFrame(() => setTimeout(() => (document.body.dataset.took = String(performance.now() - start))))
  }, { capture: true, once: true }))
  await page.mouse.up()
  await page.waitForFunction(() => document.body.dataset.took !== undefined)
  await frame(page)
  console.log(`${name}: a selection of ${await count("data-selected")} drawn after ${Number(await page.getAttribute("body", "data-took")).toFixed(0)} ms`)
  const words = new URLSearchParams(new URL(page.url()).hash.slice(1))
  const [t, e] = ["t", "e"].map((name) => words.get(name).split("..").map(Number))
  const inside = table.start.filter((at, i) => at >= t[0] && at <= t[1] && table.elapsed[i] >= e[0] && table.elapsed[i] <= e[1]).length
  assert.equal(await count("data-selected"), inside)
  assert.ok(Math.abs(t[1] - (from + to) / 2) < (to - from) * 0.01, "half of the time is selected")
  // The view can be sent.
  await go(view, new URL(page.url()).hash)
  assert.equal(await count("data-selected"), inside)
  await page.click("#clear")
  await frame(page)
  assert.equal(await count("data-selected"), table.start.length)
}

async function groups({ page }, { json }) {
  const document = readJson(json)
  const rows = await page.locator("#groups .scroll").nth(0).locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent)))
  if (document.omitted.exchanges > 0 || document.omitted.connections > 0) return
  const byServer = new Map()
  for (const connection of document.connections) byServer.set(connection.server, (byServer.get(connection.server) ?? 0) + connection.exchanges.length)
  for (const [server, count] of rows) assert.equal(Number(count.replaceAll(",", "")), byServer.get(server), server)
}

async function sequence(view, { json, ladder, name, shots, of, within }) {
  const { page, data } = view
  const document = readJson(json)
  if (document.findings.length === 0) return
  const { worst } = document.findings[0]
  const packets = data.packets.find((packets) => packets.id === worst.connection)
  await go(view, `#c=${worst.connection}&x=${worst.exchange}`)
  const plot = page.locator("[data-view=sequence]")
  await plot.scrollIntoViewIfNeeded()
  await frame(page)
  const side = await plot.getAttribute("data-from")
  const connection = readJson(ladder).connections[0]
  const sent = connection.ladder.filter((rung) => rung.from === side && rung.len > 0)
  const [, from, len, at] = together(packets, "len", "at_ns")
  const rows = from.filter((end, row) => end === (side === "client" ? 0 : 1) && len[row] > 0).length
  assert.equal(Number(await plot.getAttribute("data-drawn")), rows)
  if (packets.merged_ns === 0 && packets.omitted === 0) assert.equal(rows, sent.length)
  if (of.includes("connection")) await page.locator("#connection [role=application]").screenshot({ path: `${shots}/${name}-connection.png` })
  const box = "#connection [role=application]"
  for (let i = 0; i < 6; i++) {
    const took = await drawn(page, box, "+")
    if (i === 0) console.log(`${name}: a zoom drawn after ${took.toFixed(0)} ms`)
    if (within !== undefined) assert.ok(took < within.zoom, `a zoom took ${took} ms`)
  }
  const [min, max] = (await plot.getAttribute("data-range")).split(" ").map(Number)
  const whole = at[at.length - 1] - at[0]
  assert.ok(max - min < Math.max(2_000, (whole * 1.02 + 1_000) / 60), "six steps zoom in 64 times")
  await drawn(page, box, "0")
  const [first, last] = (await plot.getAttribute("data-range")).split(" ").map(Number)
  assert.ok(first <= at[0] && last >= at[at.length - 1], "0 shows all")
  assert.equal(await page.locator("#connection .ladder-box").count(), 1, "the exchange is drawn packet by packet")
}

/** What stands beneath the graph, counted again from the ladder that the JSON has. */
async function curves(view, { ladder, json }) {
  const { page, data } = view
  const document = readJson(json)
  if (document.findings.length === 0) return
  const packets = data.packets.find((packets) => packets.id === document.findings[0].worst.connection)
  const side = await page.getAttribute("[data-view=sequence]", "data-from")
  const count = async (name) => Number(await page.getAttribute(`[data-view=${name}]`, "data-points"))
  assert.equal(await page.locator("[data-view=ways]").count(), waysOf(packets) > 0 ? 1 : 0)
  if (waysOf(packets) > 0) assert.equal(await count("ways"), waysOf(packets))
  assert.equal(await page.locator("[data-view=rounds]").count(), numbers(packets.rounds.start_ns).length > 0 ? 1 : 0)
  if (packets.merged_ns > 0 || packets.omitted > 0) return
  let [next, una, delays] = [0, -1, 0]
  const waiting = []
  // What lies in front of the first packet has a number of 32 bits that is negative.
  const place = (number) => (number | 0) + 2 ** 31
  for (const rung of readJson(ladder).connections[0].ladder) {
    const [begin, acked] = [place(rung.seq), rung.ack == null ? -1 : place(rung.ack)]
    const end = begin + rung.len
    if (rung.from === side && rung.len > 0) {
      if (una < 0) una = begin
      if (end > next) waiting.push((next = end))
    } else if (rung.from !== side && acked > una && una >= 0) {
      una = acked
      if (waiting.length > 0 && waiting[0] <= acked) delays++
      while (waiting.length > 0 && waiting[0] <= acked) waiting.shift()
    }
  }
  assert.equal(await count("delays"), delays, "each acknowledgement of new data is a point")
  // What is pointed at is what the ladder has.
  const area = await page.locator("[data-view=sequence] .u-over").boundingBox()
  await page.mouse.move(area.x + area.width / 2, area.y + area.height / 2)
  await page.mouse.move(area.x + area.width / 2 + 1, area.y + area.height / 2)
  const pointed = Number(await page.getAttribute("#sequence-hover", "data-packet"))
  const rung = readJson(ladder).connections[0].ladder.find((rung) => rung.packet === pointed)
  assert.ok(rung.from === side && rung.len > 0)
  assert.match(await page.textContent("#sequence-hover"), new RegExp(`frame ${pointed}, bytes `))
}

/** Each picture has a table behind it that says the same. */
async function tables({ page, data }, { json }) {
  const document = readJson(json)
  if (document.findings.length === 0) return
  const packets = data.packets.find((packets) => packets.id === document.findings[0].worst.connection)
  const rows = async (name) => page.locator(`#connection [role=region][aria-label="${name}"] tbody tr`).count()
  assert.equal(await rows("Packets of the connection"), Math.min(400, together(packets)[0].length))
  assert.equal(await rows("What each round trip carried"), Math.min(400, numbers(packets.rounds.start_ns).length))
  assert.equal(await rows("One-way delays, from both captures"), Math.min(400, waysOf(packets)))
  assert.ok(await rows("How long each acknowledgement took") > 0)
  const frames = await page.locator('#connection [role=region][aria-label="Packets of the connection"] tbody tr td:nth-child(2)').allTextContents()
  assert.deepEqual(frames.map(Number), together(packets)[0].slice(0, 400))
  assert.equal(await page.locator("#spread details tbody tr").count() > 0, true)
}

/** Two captures: what the document of `compare --json` says. */
async function compared({ page, wrong }, { json, shots, of, name }) {
  const document = readJson(json)
  assert.equal(await page.textContent("h1"), document.answer)
  const sections = await page.$$eval("section.compared", (all) => all.map((one) => ({
    is: [one.dataset.service, one.dataset.kind, one.dataset.verdict],
    bars: [...one.querySelectorAll(".versus")].map((bar) => [...bar.querySelectorAll(".bar")].map((part) => [part.dataset.cause, Number(part.dataset.ns)])),
    widths: [...one.querySelectorAll(".versus .stack")].map((bar) => bar.getBoundingClientRect().width),
    rows: one.querySelectorAll("tbody tr").length,
  })))
  assert.deepEqual(sections.map((section) => section.is), document.rows.map((row) => [row.service, row.kind, row.elapsed.verdict]))
  document.rows.forEach((row, at) => {
    for (const side of [0, 1]) {
      const wanted = row.causes.filter((line) => line.mean_ns[side] > 0).map((line) => [line.cause, line.mean_ns[side]]).sort((a, b) => b[1] - a[1])
      assert.deepEqual(sections[at].bars[side].sort((a, b) => b[1] - a[1]), wanted)
    }
    const [before, after] = sections[at].widths
    const [more, less] = row.elapsed.mean_ns
    if (Math.min(more, less) > 0) assert.ok(Math.abs(before / after - more / less) <= (0.05 * more) / less + 2 / after, `${before} to ${after}`)
    assert.equal(sections[at].rows, 3 + row.causes.length)
  })
  if (of.includes("page")) await page.screenshot({ path: `${shots}/${name}.png` })
  assert.deepEqual(wrong, [])
}

/** A page that is served asks for what is zoomed into, and for the packets of a connection that it was not given. */
async function asked(view, { name }) {
  const { page, url, wrong } = view
  const whole = JSON.parse(gunzipSync(Buffer.from((await (await fetch(url)).text()).match(/id="data">([^<]*)</)[1], "base64")))
  const plot = page.locator("[data-view=scatter]")
  const span = [Math.round(whole.span_ns * 0.4), Math.round(whole.span_ns * 0.5)]
  const within = (data) => numbers(data.exchanges.start_ns).filter((at, row) => at >= span[0] && at <= span[1] && numbers_(data, row) > 0).length
  const numbers_ = (data, row) => (data.stands ??= numbers(data.exchanges.stands_for))[row]
  const all = await (await fetch(`${url}data?from=${span[0]}&to=${span[1]}`)).json()
  assert.ok(within(all) > within(whole), "there is more than the page was given")
  const start = Date.now()
  await go(view, `#t=${span[0]}..${span[1]}`)
  await page.waitForFunction((count) => Number(document.querySelector("[data-view=scatter]").dataset.selected) === count, within(all))
  console.log(`${name}: ${within(all)} exchanges instead of ${within(whole)} drawn after ${Date.now() - start} ms, page and all`)
  await page.click("#clear")
  await page.waitForFunction((count) => Number(document.querySelector("[data-view=scatter]").dataset.selected) === count, numbers(whole.exchanges.stands_for).filter((stands) => stands > 0).length)
  const given = new Set(whole.packets.map((packets) => packets.id))
  const other = numbers(whole.connections.id).find((id) => !given.has(id))
  await go(view, `#c=${other}`)
  await page.waitForSelector("[data-view=sequence][data-drawn]")
  const packets = (await (await fetch(`${url}data?connection=${other}`)).json()).packets[0]
  const side = (await page.getAttribute("[data-view=sequence]", "data-from")) === "client" ? 0 : 1
  const [, from, len] = together(packets, "len")
  assert.equal(Number(await page.getAttribute("[data-view=sequence]", "data-drawn")), from.filter((end, row) => end === side && len[row] > 0).length)
  assert.ok(await plot.isVisible())
  await noViolations(page)
  assert.deepEqual(wrong, [])
}

/** A long transfer that is served has strokes of several packets; zoomed into, it asks for each of them. */
async function zoomed(view, { name }) {
  const { page, url, wrong } = view
  const whole = JSON.parse(gunzipSync(Buffer.from((await (await fetch(url)).text()).match(/id="data">([^<]*)</)[1], "base64"))).packets[0]
  assert.ok(whole.merged_ns > 0, "there are more packets than the page draws")
  await go(view, `#c=${whole.id}`)
  await page.waitForSelector("[data-view=sequence][data-drawn]")
  const plot = page.locator("[data-view=sequence]")
  const rows = (packets, [min, max], side) => {
    const [, from, at, len] = together(packets, "at_ns", "len")
    return at.filter((t, row) => t >= min && t <= max && from[row] === side && len[row] > 0).length
  }
  for (let i = 0; i < 5; i++) await drawn(page, "#connection [role=application]", "+")
  const start = Date.now()
  const range = (await plot.getAttribute("data-range")).split(" ").map(Number)
  const side = (await plot.getAttribute("data-from")) === "client" ? 0 : 1
  const part = (await (await fetch(`${url}data?connection=${whole.id}&from=${Math.floor(range[0])}&to=${Math.ceil(range[1])}`)).json()).packets[0]
  const each = rows(part, range, side)
  assert.ok(part.merged_ns === 0 && each > rows(whole, range, side), `${each} packets instead of ${rows(whole, range, side)} strokes`)
  await page.waitForFunction((count) => Number(document.querySelector("[data-view=sequence]").dataset.drawn) === count, each)
  console.log(`${name}: ${each} packets instead of ${rows(whole, range, side)} strokes drawn ${Date.now() - start} ms after the last zoom`)
  await drawn(page, "#connection [role=application]", "0")
  const all = rows(whole, [-Infinity, Infinity], side)
  await page.waitForFunction((count) => Number(document.querySelector("[data-view=sequence]").dataset.drawn) === count, all)
  assert.deepEqual(wrong, [])
}

async function remembered(view) {
  const { page } = view
  await go(view, "")
  const options = await page.$$eval("#stack option", (all) => all.map((option) => option.value))
  if (options.length < 2) return
  await page.selectOption("#stack", options[1])
  // What is kept goes to another process, and comes back from there, when that has a processor.
  for (let waits = 0; waits < 8; waits++) {
    await page.waitForTimeout(250)
    await go(view, "")
    if ((await page.inputValue("#stack")) === options[1]) break
  }
  assert.equal(await page.inputValue("#stack"), options[1])
  const stacks = await page.$$eval(".how dt", (all) => [...new Set(all.map((one) => one.textContent))])
  assert.deepEqual(stacks.filter((stack) => stack !== options[1]), [])
  await page.selectOption("#stack", "")
}

async function phone({ page }) {
  await page.setViewportSize({ width: 375, height: 700 })
  await frame(page)
  assert.ok((await page.evaluate(() => document.scrollingElement.scrollWidth)) <= 375, "wider than a phone")
  await page.setViewportSize({ width: 1100, height: 900 })
}

async function dark(view, { shots, of, name, json }) {
  const { page, wrong } = view
  const { findings = [] } = readJson(json)
  if (findings.length > 0) await go(view, `#c=${findings[0].worst.connection}&x=${findings[0].worst.exchange}`)
  await page.evaluate(() => scrollTo(0, 0))
  await noViolations(page)
  const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  if (of.includes("page")) await page.screenshot({ path: `${shots}/${name}.png` })
  await page.click(".brand > button")
  await frame(page)
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), light)
  await noViolations(page)
  if (of.includes("dark") && findings.length > 0) await page.locator("article.finding .ladder-box").first().screenshot({ path: `${shots}/${name}-dark.png` })
  await page.click(".brand > button")
  await page.emulateMedia({ media: "print" })
  assert.ok(await page.isVisible("h1"))
  // What opens something is printed as what it says.
  const link = page.locator("#groups button.link").first()
  assert.ok(await link.count() === 0 || await link.isVisible())
  await page.emulateMedia({ media: "screen" })
  assert.deepEqual(wrong, [])
}

async function noViolations(page) {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }))
  const serious = violations.filter((violation) => ["serious", "critical"].includes(violation.impact))
  assert.deepEqual(serious.map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 120) + " " + node.failureSummary?.slice(0, 200)).join(" | ")}`), [])
}

async function hostileFragment(view) {
  const evil = encodeURIComponent("<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>")
  await go(view, `#service=${evil}&client=${evil}&cause=${evil}&t=1..x&c=99999999&x=-1`)
  await view.page.waitForTimeout(50)
  assert.notEqual(await view.page.title(), "run")
  assert.deepEqual(view.wrong, [])
  const policy = await view.page.evaluate(() => {
    const blocked = []
    document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective))
    const script = document.createElement("script")
    try { script.textContent = "document.title='run'" } catch { blocked.push("trusted-types") }
    document.body.append(script)
    const image = document.createElement("img")
    image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    document.body.append(image)
    return fetch("data:text/plain,x").then(() => ["fetched"], () => new Promise((done) => setTimeout(() => done(blocked), 50)))
  })
  view.wrong.length = 0
  assert.ok(policy.includes("img-src") && policy.includes("connect-src"), `the policy blocks: ${policy}`)
  assert.notEqual(await view.page.title(), "run")
}
