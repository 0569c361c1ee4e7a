// How is a time, a size or a moment written? As the text does it (crates/report/src/quantity.rs).

function three(value: number): string {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0)
}

/** `820 ns`, `43.9 ms`, `2 min 5 s`. */
export function time(ns: number): string {
  const sign = ns < 0 ? "-" : ""
  const size = Math.abs(ns)
  if (size === 0) return "0 ms"
  if (size < 1e3) return `${sign}${size} ns`
  if (size < 999_500) return `${sign}${three(size / 1e3)} µs`
  if (size < 999_500_000) return `${sign}${three(size / 1e6)} ms`
  if (size < 60e9) return `${sign}${three(size / 1e9)} s`
  const seconds = Math.floor(size / 1e9)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${sign}${hours} h ${minutes} min` : `${sign}${minutes} min ${seconds % 60} s`
}

export function count(n: number): string {
  return Math.round(n).toLocaleString("en-US")
}

/** `64,240 B`, `5.00 MB`. */
export function bytes(n: number): string {
  if (n < 1e6) return `${count(n)} B`
  return n < 999.5e6 ? `${three(n / 1e6)} MB` : `${three(n / 1e9)} GB`
}

export function percent(part: number, whole: number): string {
  const tenths = whole > 0 ? Math.round((part * 1000) / whole) : 0
  return tenths === 0 && part > 0 ? "<0.1 %" : `${(tenths / 10).toFixed(1)} %`
}

export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${Math.round(n) === 1 ? "" : "s"}`
}

/** The time of day of nanoseconds since the origin, on the reader's clock. */
export function clock(origin: string, offsetS: number, ns: number): string {
  const [seconds, fraction] = origin.replace("Z", "").split(".")
  const all = BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction) + BigInt(Math.round(ns)) + BigInt(offsetS) * 1_000_000_000n
  const date = new Date(Number(all / 1_000_000n))
  return `${date.toISOString().slice(11, 19)}.${(all % 1_000_000_000n).toString().padStart(9, "0").slice(0, 6)}`
}

export const kinds = ["setup", "exchange", "one-way", "subscription"]
export const sides = ["client", "server", "path", "unknown"]
export const confidences = ["possible", "likely", "certain"]
export const confidence: Record<string, string> = {
  certain: "certain: the packets allow no other explanation",
  likely: "likely: the usual explanation of such packets",
  possible: "possible: other explanations fit as well",
}
