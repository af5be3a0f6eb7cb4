import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "@everturn/client": fileURLToPath(new URL("./client/src/index.ts", import.meta.url)) } },
  // The limit is there to find what hangs: machines differ in how fast they are.
  test: { include: ["tests/**/*.test.{ts,tsx}", "client/tests/**/*.test.ts"], environment: "node", pool: "threads", testTimeout: 60_000 },
});
