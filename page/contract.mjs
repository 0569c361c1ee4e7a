// Which types does the page's data have? They are made from the schema; `npm run contract` writes them anew.
import { readFileSync, writeFileSync } from "node:fs"
import { compile } from "json-schema-to-typescript"

const schema = JSON.parse(readFileSync(new URL("../docs/schema/tcpwhy.page.3.schema.json", import.meta.url)))
const options = { style: { semi: false }, bannerComment: "// Made from docs/schema/tcpwhy.page.3.schema.json by `npm run contract`." }
writeFileSync(new URL("src/contract.ts", import.meta.url), await compile(schema, "Page", options))
