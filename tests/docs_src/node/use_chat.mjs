// The page of the guide, without a screen: it says something, and allows what it is asked. {address, key} in, texts out.
import { readFileSync } from "node:fs";
import { Window } from "happy-dom";

const { address, key } = JSON.parse(readFileSync(0, "utf8"));
const window = new Window({ url: "http://127.0.0.1/" });
Object.assign(globalThis, { window, document: window.document });
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { isToolUIPart } = await import("ai");
const { useEverturn } = await import("./protocols_use_chat.mjs");

const asked = new Set();
let latest;
const Page = () => {
  const chat = (latest = useEverturn(address, key, "docs-1"));
  useEffect(() => {
    for (const part of chat.messages.flatMap((message) => message.parts).filter(isToolUIPart)) {
      if (part.state === "approval-requested" && chat.status === "ready" && !asked.has(part.approval.id)) {
        asked.add(part.approval.id);
        chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
      }
    }
  }, [chat.status, chat.messages]);
  return null;
};

createRoot(window.document.createElement("div")).render(createElement(Page));
const texts = () => (latest?.messages ?? []).map((m) => m.parts.filter((p) => p.type === "text").map((p) => p.text).join("|"));
const until = async (is) => {
  for (let look = 0; look < 800; look += 1) {
    if (latest && is()) return;
    await new Promise((go) => setTimeout(go, 10));
  }
  throw new Error(`it never came to that: ${JSON.stringify(latest?.messages)} ${latest?.status} ${latest?.error}`);
};
await until(() => latest.status === "ready");
latest.sendMessage({ text: "Note that lunch is at noon" });
await until(() => latest.status === "ready" && texts().join().includes("what a tool returns."));
latest.sendMessage({ text: "Hello" });
await until(() => latest.status === "ready" && texts().length === 4 && texts()[3].includes("approval first."));
process.stdout.write(JSON.stringify({ texts: texts(), asked: asked.size }));
process.exit(0);
