// How is a time-sequence graph painted? As tcptrace's users know it: data, acknowledgements, the window's edge, SACK blocks, and exchanges as bands behind them.

import type uPlot from "uplot"
import { css } from "./plot"
import type { Stream } from "./stream"
import type { Context } from "./view"

export interface Exchange { t: number; u: number; n: number; cause: number }

export function paintSequence(u: uPlot, { causes }: Context, of: Stream, bands: Exchange[], place: HTMLElement) {
  const { ctx, bbox } = u
  const [min, max, low, high] = [u.scales.x.min!, u.scales.x.max!, u.scales.y.min!, u.scales.y.max!]
  const X = (t: number) => bbox.left + ((t - min) / (max - min)) * bbox.width
  const Y = (byte: number) => bbox.top + bbox.height - ((byte - low) / (high - low)) * bbox.height
  const ratio = devicePixelRatio || 1
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  ctx.globalAlpha = 0.14
  for (const band of bands) {
    if (band.u < min || band.t > max) continue
    ctx.fillStyle = causes[band.cause]?.colour ?? "gray"
    ctx.fillRect(X(band.t), bbox.top, Math.max(ratio, X(band.u) - X(band.t)), bbox.height)
  }
  ctx.globalAlpha = 1
  const line = (colour: string, width: number, draw: (path: Path2D) => void, dash: number[] = []) => {
    const path = new Path2D()
    draw(path)
    ctx.strokeStyle = colour
    ctx.lineWidth = width * ratio
    ctx.setLineDash(dash.map((part) => part * ratio))
    ctx.stroke(path)
  }
  const stairs = (value: (step: Stream["acks"][number]) => number) => (path: Path2D) => {
    let before: number | null = null
    for (const step of of.acks) {
      const y = Y(value(step))
      if (before !== null && step.t >= min) path.lineTo(X(step.t), before)
      if (before === null || step.t < min) path.moveTo(X(step.t), y)
      else path.lineTo(X(step.t), y)
      before = y
      if (step.t > max) break
    }
  }
  line(css("--edge"), 1.2, stairs((step) => step.edge))
  line(css("--acked"), 1.4, stairs((step) => step.ack))
  line(css("--acked"), 1.4, (path) => {
    for (const step of of.acks) if (step.again > 0 && step.t >= min && step.t <= max) {
      path.moveTo(X(step.t), Y(step.ack))
      path.lineTo(X(step.t), Y(step.ack) + (3 + Math.min(step.again, 4)) * ratio)
    }
  })
  let drawn = 0
  const strokes = (again: boolean) => (path: Path2D) => {
    for (const piece of of.data) {
      if (piece.again !== again || piece.u < min || piece.t > max) continue
      drawn++
      const [x, y, x2, y2] = [X(piece.t), Y(piece.from), X(piece.u), Math.min(Y(piece.to), Y(piece.from) - 2 * ratio)]
      path.moveTo(x, y)
      path.lineTo(x2, y2)
      if (again) {
        path.moveTo(x - 4 * ratio, (y + y2) / 2)
        path.lineTo(x + 4 * ratio, (y + y2) / 2)
      }
    }
  }
  line(css("--text"), 1.4, strokes(false))
  line(css("--again"), 3, strokes(true))
  line(css("--sack"), 2, (path) => {
    for (const block of of.sacks) if (block.t >= min && block.t <= max) {
      path.moveTo(X(block.t), Y(block.from))
      path.lineTo(X(block.t), Y(block.to))
    }
  }, [3, 2])
  ctx.restore()
  place.dataset.drawn = String(drawn)
  place.dataset.range = `${min} ${max}`
}
