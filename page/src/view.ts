// What does every view get?

import type { Cause } from "./causes"
import type { Data } from "./load"
import type { Store } from "./state"

export interface Context {
  data: Data
  causes: Cause[]
  byName: Map<string, Cause>
  store: Store
}
