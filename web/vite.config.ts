import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin, type ProxyOptions } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// `npm run dev` beside a running server. It accepts changes from its own origin only, so requests get that origin.
const server = process.env["EVERTURN_URL"] ?? "http://127.0.0.1:8000";
const apiProxy: ProxyOptions = {
  target: server,
  changeOrigin: true,
  configure: (proxy) => void proxy.on("proxyReq", (request) => request.hasHeader("origin") && request.setHeader("origin", new URL(server).origin)),
};

// Kinds of mermaid diagrams that are not bundled (decision 0246): with their layout engines and parsers they would be three
// quarters of the library. Their code blocks stay code.
const OMITTED = new RegExp(
  "/(?:mindmap-definition|architectureDiagram|c4Diagram|blockDiagram|sankeyDiagram|requirementDiagram|kanban-definition|swimlanes|" +
    "wardleyDiagram|vennDiagram|ishikawaDiagram|cynefinDiagram|railroadDiagram|ebnfDiagram|abnfDiagram|pegDiagram|infoDiagram|" +
    "pieDiagram|gitGraphDiagram|cose-bilkent|diagram-)[^/]*\\.mjs$",
);
const omitDiagrams: Plugin = {
  name: "omit-diagrams",
  enforce: "pre",
  resolveId: (id) => (OMITTED.test(id) || id === "katex" ? "\0omitted" : null),
  load: (id) => (id === "\0omitted" ? 'throw new Error("this kind of diagram is not drawn here");' : null),
};

// What `main.tsx` imports is one script and one style: each file more is a request with headers, and compresses by itself. The
// highlighter is a file of its own because the bundler put its helpers beside it otherwise, and every conversation fetched both.
const CHUNKS = [
  { name: "index", tags: ["$initial" as const] },
  { name: "highlighter", test: /highlight\.js.(?:lib|es).core\.js/ },
];

// The web UI is built into the Python package, from where `everturn serve` serves it and the wheel includes it.
export default defineConfig({
  base: "/",
  resolve: { alias: { "@everturn/client": here("./client/src/index.ts") } },
  build: {
    outDir: here("../src/everturn/server/web"),
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0, // nothing inline: the Content-Security-Policy allows no `data:` script, style or font
    modulePreload: { polyfill: false }, // the polyfill is an inline script
    target: "es2022",
    sourcemap: false,
    manifest: true,
    rolldownOptions: { output: { codeSplitting: { groups: CHUNKS } } },
  },
  // Mermaid: one script, which the preview frame is given as text.
  worker: { format: "iife", plugins: () => [omitDiagrams], rolldownOptions: { output: { codeSplitting: false } } },
  // The tables that the terminal UI shares are files of the Python package.
  server: { fs: { allow: [here("."), here("../src/everturn/terminal/tui/gates")] }, proxy: { "/api": apiProxy, "/login": apiProxy, "/sandbox": apiProxy } },
});
