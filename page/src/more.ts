// What can be had beyond what the page was given? From whoever serves it: the exchanges of what is zoomed into, and any connection's packets.

import { fetched, type Data, type Packets } from "./load"
import type { Context } from "./view"

/** Connections whose packets are kept. */
const KEPT = 8
/** So long nothing more is zoomed before something is asked for, in milliseconds. */
const QUIET = 200

export class More {
  private readonly drawn = new Map<number, Data>()

  /** A connection with its packets, where they came. */
  packetsOf(connection: number): Data | undefined {
    return this.drawn.get(connection)
  }

  /** Asks for a connection's packets; whether they came. */
  async askPackets(connection: number): Promise<boolean> {
    if (this.drawn.has(connection)) return false
    const data = await fetched(`data?connection=${connection}`)
    if (data === null || !data.packets.has(connection)) return false
    if (this.drawn.size === KEPT) this.drawn.delete(this.drawn.keys().next().value!)
    this.drawn.set(connection, data)
    return true
  }

  /** What to call when a connection is zoomed; `show` gets each packet of the range, where the whole has rows of several. */
  finer(connection: number, whole: Packets, show: (packets: Packets) => void): (range: [number, number]) => void {
    let [waits, shown]: [number | undefined, boolean] = [undefined, false]
    const last = whole.at_ns[whole.at_ns.length - 1]
    return (range) => {
      clearTimeout(waits)
      if (whole.mergedNs === 0 && whole.omitted === 0) return
      if (range[1] - range[0] > (last - whole.at_ns[0]) / 2) {
        if (shown) show(whole)
        shown = false
        return
      }
      waits = setTimeout(async () => {
        const data = await fetched(`data?connection=${connection}&from=${Math.floor(range[0])}&to=${Math.ceil(range[1])}`)
        const packets = data?.packets.get(connection)
        if (packets === undefined || packets.packet.length === 0) return
        shown = true
        show({ ...packets, rounds: whole.rounds, ways: whole.ways })
      }, QUIET) as unknown as number
    }
  }
}

/** Has the views draw what there is of the selected time, from when on it has come. */
export function follow(context: Context) {
  const { whole, store } = context
  const { report } = whole
  const all = report.setups + report.exchanges + report.one_way + report.subscriptions
  const points = whole.exchanges.stands_for.reduce((sum, stands) => sum + (stands > 0 ? 1 : 0), 0)
  if (context.more === null || points >= all) return
  let [asked, waits]: [string, number | undefined] = ["", undefined]
  const take = (data: Data) => {
    context.data = data
    store.refresh()
  }
  const ask = () => {
    const { t } = store.state
    const query = t === null ? "" : `data?from=${Math.floor(t[0])}&to=${Math.ceil(t[1])}`
    if (query === asked) return
    asked = query
    clearTimeout(waits)
    if (query === "") {
      if (context.data !== whole) take(whole)
      return
    }
    waits = setTimeout(async () => {
      const data = await fetched(query)
      if (data === null || query !== asked) return
      take({ ...whole, connections: data.connections, exchanges: data.exchanges })
    }, QUIET) as unknown as number
  }
  store.on(ask)
  ask()
}
