// How is a cause told apart? A hue for its class, a shade within it, a shape and its name: never by colour alone.

import type { Page } from "./contract"

/** Hues that colour-blind people tell apart (Okabe and Ito), as OKLCH hue and chroma. */
const HUES: Record<string, [number, number]> = {
  mechanism: [45, 0.17],
  trouble: [85, 0.15],
  program: [245, 0.13],
  path: [165, 0.11],
  unknown: [330, 0.1],
}

export type Shape = "disc" | "triangle" | "square" | "diamond" | "cross"
const SHAPES: Record<string, Shape> = { mechanism: "triangle", trouble: "cross", program: "square", path: "disc", unknown: "diamond" }

export interface Cause {
  at: number
  name: string
  title: string
  class: string
  colour: string
  shape: Shape
}

export function causesOf(causes: Page["causes"]): Cause[] {
  const seen: Record<string, number> = {}
  const size: Record<string, number> = {}
  for (const cause of causes) size[cause.class] = (size[cause.class] ?? 0) + 1
  return causes.map((cause, at) => {
    const n = (seen[cause.class] = (seen[cause.class] ?? -1) + 1)
    const [hue, chroma] = HUES[cause.class]
    const part = size[cause.class] > 1 ? n / (size[cause.class] - 1) : 0.5
    const colour = `oklch(${(0.54 + 0.22 * part).toFixed(3)} ${chroma} ${(hue - 12 + 24 * part).toFixed(1)})`
    return { at, name: cause.name, title: cause.title, class: cause.class, colour, shape: SHAPES[cause.class] }
  })
}

/** The shape of a cause around a point. */
export function trace(path: Path2D, shape: Shape, x: number, y: number, r: number) {
  switch (shape) {
    case "disc":
      path.moveTo(x + r, y)
      path.arc(x, y, r, 0, 2 * Math.PI)
      break
    case "triangle":
      path.moveTo(x, y - r * 1.2)
      path.lineTo(x + r * 1.1, y + r * 0.8)
      path.lineTo(x - r * 1.1, y + r * 0.8)
      path.closePath()
      break
    case "square":
      path.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8)
      break
    case "diamond":
      path.moveTo(x, y - r * 1.2)
      path.lineTo(x + r * 1.2, y)
      path.lineTo(x, y + r * 1.2)
      path.lineTo(x - r * 1.2, y)
      path.closePath()
      break
    case "cross":
      path.rect(x - r * 1.2, y - r * 0.4, r * 2.4, r * 0.8)
      path.rect(x - r * 0.4, y - r * 1.2, r * 0.8, r * 2.4)
  }
}
