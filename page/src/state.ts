// What is selected and shown? It stands in the address's fragment, so that a view can be sent.

export interface State {
  cause: string | null
  service: string | null
  client: string | null
  /** Nanoseconds since the origin. */
  t: [number, number] | null
  /** Elapsed nanoseconds. */
  e: [number, number] | null
  /** A connection's number, and one of its exchanges. */
  c: number | null
  x: number | null
}

const NOTHING: State = { cause: null, service: null, client: null, t: null, e: null, c: null, x: null }

function read(): State {
  const words = new URLSearchParams(location.hash.slice(1))
  const range = (name: string): [number, number] | null => {
    const [from, to] = (words.get(name) ?? "").split("..").map(Number)
    return Number.isFinite(from) && Number.isFinite(to) && words.has(name) ? [from, to] : null
  }
  const number = (name: string) => (/^\d+$/.test(words.get(name) ?? "") ? Number(words.get(name)) : null)
  return { cause: words.get("cause"), service: words.get("service"), client: words.get("client"), t: range("t"), e: range("e"), c: number("c"), x: number("x") }
}

export class Store {
  state: State = read()
  private readonly listeners: ((state: State, before: State, fresh: boolean) => void)[] = []

  constructor() {
    addEventListener("hashchange", () => this.take(read()))
  }

  /** `fresh`: nothing else is selected, and there is more to say of it. */
  on(listener: (state: State, before: State, fresh: boolean) => void) {
    this.listeners.push(listener)
  }

  change(some: Partial<State>) {
    const state = { ...this.state, ...some }
    const words = new URLSearchParams()
    for (const [name, value] of Object.entries(state)) {
      if (value !== null) words.set(name, Array.isArray(value) ? value.map(Math.round).join("..") : String(value))
    }
    history.replaceState(null, "", `#${words}`)
    this.take(state)
  }

  clear() {
    this.change({ ...NOTHING, c: this.state.c, x: this.state.x })
  }

  refresh() {
    for (const listener of this.listeners) listener(this.state, this.state, true)
  }

  private take(state: State) {
    const before = this.state
    this.state = state
    for (const listener of this.listeners) listener(state, before, false)
  }
}

/** Kept from report to report, where the browser keeps anything for files. */
export const remembered = {
  get(name: string): string | null {
    try {
      return localStorage.getItem(`tcpwhy.${name}`)
    } catch {
      return null
    }
  },
  set(name: string, value: string) {
    try {
      localStorage.setItem(`tcpwhy.${name}`, value)
    } catch {
      // It is forgotten then.
    }
  },
}
