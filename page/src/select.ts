// Which exchanges are selected, and what do they come to?

import type { Cause } from "./causes"
import type { Data } from "./load"
import type { State } from "./state"

export function hostOf(endpoint: string): string {
  return endpoint.slice(0, endpoint.lastIndexOf(":"))
}

/** Rows of the exchanges that the state selects; `but` leaves one condition out. What others stand for is drawn on its connection alone. */
export function selected(data: Data, causes: Cause[], state: State, but?: keyof State): Int32Array {
  const { exchanges, connections } = data
  const cause = but === "cause" || state.cause === null ? -1 : causes.findIndex((cause) => cause.name === state.cause)
  const of = (name: "service" | "client") => (but === name ? null : state[name])
  const [service, client] = [of("service"), of("client")]
  const fits = new Uint8Array(connections.count)
  for (let row = 0; row < connections.count; row++) {
    fits[row] = Number(
      (service === null || connections.endpoints[connections.server[row]] === service) &&
      (client === null || hostOf(connections.endpoints[connections.client[row]]) === client))
  }
  const [t, e] = [but === "t" ? null : state.t, but === "t" ? null : state.e]
  const rows = new Int32Array(exchanges.count)
  let count = 0
  for (let i = 0; i < exchanges.count; i++) {
    if (!fits[exchanges.connection[i]] || exchanges.stands_for[i] === 0) continue
    if (t !== null && (exchanges.start_ns[i] < t[0] || exchanges.start_ns[i] > t[1])) continue
    if (e !== null && (exchanges.elapsed_ns[i] < e[0] || exchanges.elapsed_ns[i] > e[1])) continue
    if (cause >= 0 && !has(data, i, cause)) continue
    rows[count++] = i
  }
  return rows.subarray(0, count)
}

function has(data: Data, row: number, cause: number): boolean {
  const { billAt, bill_cause } = data.exchanges
  for (let at = billAt[row]; at < billAt[row + 1]; at++) if (bill_cause[at] === cause) return true
  return false
}

/** How many exchanges rows stand for, and what they took together, by cause. */
export function sums(data: Data, rows: Int32Array) {
  const { exchanges } = data
  const byCause = new Float64Array(data.page.causes.length)
  let [count, elapsed] = [0, 0]
  for (const row of rows) {
    const k = exchanges.stands_for[row]
    count += k
    elapsed += k * exchanges.elapsed_ns[row]
    for (let at = exchanges.billAt[row]; at < exchanges.billAt[row + 1]; at++) byCause[exchanges.bill_cause[at]] += k * exchanges.bill_ns[at]
  }
  return { count, elapsed, byCause }
}
