// How long did each exchange take, and when? Each is a point, coloured and shaped by what took most of it; drag to select.

import uPlot from "uplot"
import { swatch } from "./bill"
import { trace } from "./causes"
import { h } from "./dom"
import { plot, spanAxis, timeAxis } from "./plot"
import { selected } from "./select"
import type { Context } from "./view"
import { clock, counted, count, kinds, percent, time, zone } from "./words"

export function scatterView(context: Context): HTMLElement {
  const { causes, store } = context
  const { page, report } = context.whole
  let { data } = context
  let { exchanges } = data
  const place = h("div", { class: "plot", "data-view": "scatter" })
  const hover = h("p", { class: "hover", "aria-live": "off", id: "scatter-hover" }, "Drag to select; point at an exchange to see what it is; click to open it.")
  const note = h("p", { class: "quiet" })
  const box = h("div", { class: "scatter", tabindex: 0, role: "application", "aria-label": "Exchanges over time, elapsed time against the wall clock. Arrow keys go from exchange to exchange, Enter opens one; the list below has the slowest as a table.", "aria-describedby": "scatter-hover" }, place)
  let rows: Int32Array = new Int32Array()
  let [xs, ys] = [new Float64Array(), new Float64Array()]
  let [drawn, pointed] = [0, -1]
  const all = report.setups + report.exchanges + report.one_way + report.subscriptions
  const sum = exchanges.stands_for.reduce((a, b) => a + b, 0)

  const tell = (row: number) => {
    const cause = exchanges.cause[row] >= 0 ? causes[exchanges.cause[row]] : null
    const connection = data.connections.id[exchanges.connection[row]]
    const at = exchanges.billAt[row]
    const took = cause ? `, ${cause.name} ${time(exchanges.bill_ns[at])} (${percent(exchanges.bill_ns[at], exchanges.elapsed_ns[row])})` : ""
    hover.textContent = `${clock(page.origin, page.offset_s, exchanges.start_ns[row])}: ${kinds[exchanges.kind[row]]} ${exchanges.n[row]} of connection ${connection} took ${time(exchanges.elapsed_ns[row])}${took}`
    hover.dataset.row = String(row)
  }
  const open = (row: number) => store.change({ c: data.connections.id[exchanges.connection[row]], x: exchanges.n[row] })

  const paint = (u: uPlot) => {
    const { ctx, bbox } = u
    const [min, max] = [u.scales.x.min ?? 0, u.scales.x.max ?? 1]
    const [low, high] = [u.scales.y.min ?? 1, u.scales.y.max ?? 1]
    const [fx, fy] = [bbox.width / (max - min), bbox.height / Math.log(high / low)]
    const paths = new Map<number, Path2D>()
    const ratio = devicePixelRatio || 1
    // Many points are small and square, which costs little; few have their shapes.
    const many = rows.length > 8_000
    const r = (many ? 1.2 : rows.length > 3_000 ? 2.4 : 3.6) * ratio
    drawn = 0
    for (let i = 0; i < rows.length; i++) {
      const [x, y] = [xs[i], ys[i]]
      if (x < min || x > max || y < low || y > high) continue
      drawn++
      const cause = exchanges.cause[rows[i]]
      let path = paths.get(cause)
      if (path === undefined) paths.set(cause, (path = new Path2D()))
      const [px, py] = [bbox.left + (x - min) * fx, bbox.top + bbox.height - Math.log(y / low) * fy]
      if (many) path.rect(px - r, py - r, 2 * r, 2 * r)
      else trace(path, causes[cause]?.shape ?? "diamond", px, py, r)
    }
    ctx.save()
    ctx.beginPath()
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
    ctx.clip()
    ctx.globalAlpha = many ? 0.6 : 0.8
    for (const [cause, path] of paths) {
      ctx.fillStyle = causes[cause]?.colour ?? "gray"
      ctx.fill(path)
    }
    if (pointed >= 0) {
      ctx.globalAlpha = 1
      ctx.strokeStyle = ctx.fillStyle
      ctx.lineWidth = 2 * ratio
      ctx.beginPath()
      ctx.arc(bbox.left + (exchanges.start_ns[pointed] - min) * fx, bbox.top + bbox.height - Math.log(Math.max(1, exchanges.elapsed_ns[pointed]) / low) * fy, 8 * ratio, 0, 7)
      ctx.stroke()
    }
    ctx.restore()
    place.dataset.points = String(drawn)
  }
  /** The nearest point, in pixels. */
  const nearest = (u: uPlot, left: number, top: number): number => {
    let [best, found] = [24 * 24, -1]
    const [from, to] = [u.posToVal(left - 24, "x"), u.posToVal(left + 24, "x")]
    let i = lowerBound(xs, from)
    for (; i < xs.length && xs[i] <= to; i++) {
      const [dx, dy] = [u.valToPos(xs[i], "x") - left, u.valToPos(ys[i], "y") - top]
      if (dx * dx + dy * dy < best) [best, found] = [dx * dx + dy * dy, rows[i]]
    }
    return found
  }
  // What it takes as a whole.
  const slowest = exchanges.elapsed_ns.reduce((a, b) => Math.max(a, b), 1e3)
  const fastest = exchanges.elapsed_ns.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), slowest)
  const start = (): uPlot => plot(place, 320, {
    legend: { show: false },
    cursor: { drag: { x: true, y: true, uni: 20, setScale: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => store.state.t ?? [-page.span_ns * 0.01, page.span_ns * 1.01 + 1] },
      y: { distr: 3, range: () => store.state.e ?? [fastest / 1.5, slowest * 1.5] },
    },
    series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
    axes: [timeAxis(0, { label: `since ${clock(page.origin, page.offset_s, 0)} ${zone(page.offset_s)}`, labelSize: 20 }), spanAxis({})],
    hooks: {
      draw: [paint],
      setSelect: [(u) => {
        const { left, top, width, height } = u.select
        if (width < 4 && height < 4) return
        const [t, e] = [[u.posToVal(left, "x"), u.posToVal(left + width, "x")], [u.posToVal(top + height, "y"), u.posToVal(top, "y")]] as [[number, number], [number, number]]
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        store.change({ t: t.map(Math.round) as [number, number], e: e.map(Math.round) as [number, number] })
      }],
      setCursor: [(u) => {
        const { left, top } = u.cursor
        if (left === undefined || top === undefined || left < 0) return
        const row = nearest(u, left, top)
        if (row >= 0) tell(row)
      }],
    },
  }, [xs, ys] as unknown as uPlot.AlignedData)

  const update = () => {
    if (data !== context.data) pointed = -1
    ;({ data } = context)
    ;({ exchanges } = data)
    rows = selected(data, causes, store.state)
    xs = Float64Array.from(rows, (row) => exchanges.start_ns[row])
    ys = Float64Array.from(rows, (row) => Math.max(1, exchanges.elapsed_ns[row]))
    place.dataset.selected = String(rows.length)
    const stands = rows.reduce((sum, row) => sum + exchanges.stands_for[row], 0)
    const isSample = rows.some((row) => exchanges.stands_for[row] > 1)
    const more = context.more === null ? "" : " Select a shorter time to see more of them."
    const thin = isSample ? ` ${counted(rows.length, "point")} stand for them, a sample${store.state.t === null ? " of the whole capture" : ""}: the longer an exchange took, the likelier it is one; the slowest are all there.${more}` : ""
    const omitted = all > sum ? ` ${count(all - sum)} more are in the bill and the findings, not in this picture.` : ""
    note.textContent = `${isSample && stands < sum ? "About " : ""}${count(stands)} of ${count(all)} selected.${thin}${omitted}`
    u.setData([xs, ys] as unknown as uPlot.AlignedData)
  }
  const u = start()
  store.on((state, before, fresh) => {
    if (fresh || state.cause !== before.cause || state.service !== before.service || state.client !== before.client || state.t !== before.t || state.e !== before.e) update()
  })
  u.over.addEventListener("click", () => {
    const row = nearest(u, u.cursor.left ?? -1, u.cursor.top ?? -1)
    if (row >= 0) open(row)
  })
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key]
    if (step !== undefined && rows.length > 0) {
      const at = rows.indexOf(pointed)
      pointed = rows[Math.min(rows.length - 1, Math.max(0, at + step))]
      tell(pointed)
      hover.setAttribute("aria-live", "polite")
      u.redraw(false)
      event.preventDefault()
    } else if (event.key === "Enter" && pointed >= 0) open(pointed)
    else if (event.key === "Escape") store.clear()
  })
  queueMicrotask(update)
  return h("div", {}, h("p", { class: "curve" }, h("strong", {}, "Elapsed time of each exchange, when it began"), legend(context)), box, hover, note)
}

/** What the points are: the causes that took most of some exchange, a click selects one. */
function legend({ whole, causes, store }: Context): HTMLElement {
  const points = new Float64Array(causes.length)
  for (let row = 0; row < whole.exchanges.count; row++) if (whole.exchanges.cause[row] >= 0) points[whole.exchanges.cause[row]] += whole.exchanges.stands_for[row]
  const there = causes.filter((cause) => points[cause.at] > 0).sort((a, b) => points[b.at] - points[a.at]).slice(0, 8)
  const buttons = there.map((cause) => h("button", { type: "button", class: "mark", title: `Select what took time by ${cause.name}`, click: () => store.change({ cause: store.state.cause === cause.name ? null : cause.name }) }, swatch(cause), cause.name))
  return h("span", { class: "marks" }, ...buttons)
}

export function lowerBound(sorted: ArrayLike<number>, value: number): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (sorted[middle] < value) from = middle + 1
    else to = middle
  }
  return from
}
