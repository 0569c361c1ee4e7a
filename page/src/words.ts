// How is a time, a size or a moment written? As the text does it (crates/report/src/quantity.rs).

/** Three digits of a whole number of parts, each a `unit`-th: in whole numbers, as what lies in the middle is rounded up. */
function three(n: number, unit: number): string {
  const digits = n * 1000 < 9995 * unit ? 2 : n * 100 < 9995 * unit ? 1 : 0
  const tens = 10 ** digits
  return (Math.floor((n * tens + unit / 2) / unit) / tens).toFixed(digits)
}

/** `820 ns`, `43.9 ms`, `2 min 5 s`. */
export function time(ns: number): string {
  const sign = ns < 0 ? "-" : ""
  const size = Math.abs(ns)
  if (size === 0) return "0 ms"
  if (size < 1e3) return `${sign}${size} ns`
  if (size < 999_500) return `${sign}${three(size, 1e3)} µs`
  if (size < 999_500_000) return `${sign}${three(size, 1e6)} ms`
  if (size < 60e9) return `${sign}${three(size, 1e9)} s`
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
  return n < 999.5e6 ? `${three(n, 1e6)} MB` : `${three(n, 1e9)} GB`
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

/** The day of a moment, on the reader's clock. */
export function day(origin: string, offsetS: number): string {
  return new Date(Date.parse(origin) + offsetS * 1e3).toISOString().slice(0, 10)
}

/** How far the reader's clock is from UTC: `UTC`, `+02:00`. */
export function zone(offsetS: number): string {
  const minutes = Math.abs(Math.round(offsetS / 60))
  const two = (n: number) => String(n).padStart(2, "0")
  return minutes === 0 ? "UTC" : `${offsetS < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

export const kinds = ["setup", "exchange", "one-way", "subscription"]
export const sides = ["client", "server", "path", "unknown"]
export const confidences = ["possible", "likely", "certain"]
export const confidence: Record<string, string> = {
  certain: "certain: the packets allow no other explanation",
  likely: "likely: the usual explanation of such packets",
  possible: "possible: other explanations fit as well",
}
