// What does every view get?

import type { Cause } from "./causes"
import type { Data } from "./load"
import type { More } from "./more"
import type { Store } from "./state"

export interface Context {
  /** What this page has been given. */
  whole: Data
  /** Of exchanges and connections what there is to say of what is zoomed into: more than the whole has, where more can be had. */
  data: Data
  causes: Cause[]
  byName: Map<string, Cause>
  store: Store
  /** Whoever can be asked for more; nobody in a file. */
  more: More | null
}
