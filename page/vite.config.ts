import { defineConfig } from "vite"

// One script and one style, which embed.mjs puts into the page: it opens without a network.
export default defineConfig({
  base: "./",
  build: {
    target: "es2023",
    outDir: "dist",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: { output: { entryFileNames: "page.js", assetFileNames: "page[extname]" } },
  },
})
