import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// From a registry it would be a dependency; here it is a sibling package.
const client = fileURLToPath(new URL("../../client/src/index.ts", import.meta.url));

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@everturn/client": client } },
  server: { proxy: { "/api": "http://127.0.0.1:8000", "/login": "http://127.0.0.1:8000" } },
  test: { environment: "happy-dom", include: ["tests/*.test.tsx"] },
});
