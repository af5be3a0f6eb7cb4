// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  function: "the server",
  mcp: (name: string | number) => `MCP server ${name}`,
  client: "a client (this browser or a program)",
  browser: "the browser",
  files: "files",
  code: (name: string | number) => `sandboxed code (${name})`,
  web: "the web",
  agent: "another agent",
  builtin: "Everturn",
  readOnly: "Read-only",
  idempotent: "Makes changes",
  atMostOnce: "Not safe to repeat",
}, {
  function: "服务器",
  mcp: (name: string | number) => `MCP 服务器 ${name}`,
  client: "客户端（本浏览器或程序）",
  browser: "浏览器",
  files: "文件",
  code: (name: string | number) => `沙箱代码（${name}）`,
  web: "网络",
  agent: "另一个智能体",
  builtin: "Everturn",
  readOnly: "只读",
  idempotent: "会更改内容",
  atMostOnce: "不可重复",
});
