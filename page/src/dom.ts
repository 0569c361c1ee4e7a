// How is the page put together? Elements from code, text as text: no string is ever markup.

type Child = Node | string | null | undefined | false
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value)
    else if (value === true) element.setAttribute(name, "")
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value))
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children)
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children)
}

/** A width in percent, which the policy against styles in markup leaves to code. */
export function wide<E extends HTMLElement>(element: E, share: number): E {
  element.style.width = `${(share * 100).toFixed(3)}%`
  return element
}

/** A table behind a picture: for screen readers, for those who want the numbers, and to copy. */
export function table(caption: string, head: string[], rows: Child[][], numeric: number[] = []): HTMLElement {
  const cell = (tag: "td" | "th", child: Child, at: number) =>
    h(tag, { class: numeric.includes(at) ? "number" : null, scope: tag === "th" ? "col" : null }, child)
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...head.map((text, at) => cell("th", text, at)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((child, at) => cell("td", child, at)))))))
}

export function behind(summary: string, ...children: Child[]): HTMLElement {
  return h("details", {}, h("summary", {}, summary), ...children)
}

/** A button that copies a text. */
export function copies(text: string): HTMLElement {
  const said = h("span", { role: "status", class: "said" })
  const copy = () => {
    const done = () => (said.textContent = "copied")
    const field = h("textarea", { class: "away" })
    field.value = text
    document.body.append(field)
    field.select()
    if (document.execCommand("copy")) done()
    field.remove()
  }
  return h("span", { class: "copies" }, h("button", { type: "button", class: "link", click: copy, "aria-label": `Copy: ${text}` }, "Copy"), " ", said)
}

/** A command to copy. */
export function command(text: string): HTMLElement {
  return h("div", { class: "command" }, h("code", { tabindex: 0 }, text), copies(text))
}

/** What may come behind the next picture: tables beside one that somebody moves. */
export function later(draw: () => void): () => void {
  let waits = false
  return () => {
    if (waits) return
    waits = true
    requestAnimationFrame(() => setTimeout(() => {
      waits = false
      draw()
    }))
  }
}
