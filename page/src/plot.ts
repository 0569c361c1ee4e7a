// How is a curve drawn? uPlot's axes, cursor and zoom, with the page's colours and keys.

import uPlot from "uplot"
import { time } from "./words"
import "uplot/dist/uPlot.min.css"

export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

/** An axis in the colours of the page. */
export function axis(more: Partial<uPlot.Axis>): uPlot.Axis {
  return { stroke: () => css("--text"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line"), width: 1 }, font: "12px system-ui", ...more }
}

/** Nanoseconds on an axis: in the unit of the largest tick, with as many digits as tell them apart. */
export function nsTicks(ticks: number[]): string[] {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1
  const most = Math.max(...ticks.map(Math.abs), 1)
  const [unit, name] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"]
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9) + (/^2\.?5/.test(String(step)) ? 1 : 0)))
  return ticks.map((tick) => `${(tick / unit).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`)
}

/** An axis of times since `first`. */
export function timeAxis(first: number, more: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return axis({ space: 80, values: (_, ticks) => nsTicks(ticks.map((tick) => tick - first)), ...more })
}

/** A logarithmic axis of spans: powers of ten, and between them where there is room. */
export function spanAxis(more: Partial<uPlot.Axis>): uPlot.Axis {
  const splits = (_: uPlot, __: number, min: number, max: number) => {
    const factors = max / min > 1e3 ? [1] : max / min > 20 ? [1, 3] : [1, 2, 3, 5, 7]
    const ticks = []
    for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
      for (const factor of factors) if (factor * 10 ** power >= min && factor * 10 ** power <= max) ticks.push(factor * 10 ** power)
    }
    return ticks
  }
  return axis({ size: 84, splits, values: (_, ticks) => ticks.map(time), filter: (_, ticks) => ticks, ...more })
}

/** A plot that is as wide as its place. */
export function plot(place: HTMLElement, height: number, options: Omit<uPlot.Options, "width" | "height">, data: uPlot.AlignedData): uPlot {
  const width = () => Math.max(280, place.clientWidth)
  const drawn = new uPlot({ ...options, width: width(), height }, data, place)
  new ResizeObserver(() => {
    if (Math.abs(drawn.width - width()) > 2) drawn.setSize({ width: width(), height })
  }).observe(place)
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.redraw())
  addEventListener("theme", () => drawn.redraw())
  return drawn
}

/** Bytes on an axis, in the unit of the largest tick. */
export function byteTicks(ticks: number[]): string[] {
  const most = Math.max(...ticks.map(Math.abs), 1)
  const [unit, name] = most >= 1e9 ? [1e9, "GB"] : most >= 1e6 ? [1e6, "MB"] : most >= 1e4 ? [1e3, "kB"] : [1, "B"]
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) / unit : 1
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (/^0?\.?0*25|^2\.5/.test(String(step)) ? 1 : 0)))
  return ticks.map((tick) => `${(tick / unit).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`)
}
