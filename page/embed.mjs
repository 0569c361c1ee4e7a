// One file that opens offline: the built script and style put into the page, each allowed by its hash, and all else forbidden.
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"

const at = (path) => new URL(path, import.meta.url)
const script = readFileSync(at("dist/page.js"), "utf8").trim()
const style = readFileSync(at("dist/page.css"), "utf8").trim()
for (const [text, end] of [[script, "</script"], [style, "</style"]]) {
  if (text.toLowerCase().includes(end) || text.includes("<!--")) throw new Error(`${end} within what it would end`)
}
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ")
const page = readFileSync(at("index.html"), "utf8")
  .replace('<meta charset="utf-8">', () => `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
  .replace("</head>", () => `<style>${style}</style>\n</head>`)
  .replace(/<script type="module".*<\/script>/, () => `<script type="application/octet-stream" id="data">@DATA@</script>\n<script type="module">${script}</script>`)
writeFileSync(process.argv[2] ?? at("../crates/page/built/page.html"), page)
