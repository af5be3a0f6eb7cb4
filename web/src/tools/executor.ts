/** Where a tool runs, in words. */
import type { TurnState } from "@everturn/client";
import { tools } from "../app/app";
import { useStore } from "../app/store";
import { words } from "../app/words";
import { plain } from "../gates/hidden";
import type { IconName } from "../ui/kit";

const useWords = words(
  {
    function: "the server", mcp: (name: string) => `MCP server ${name}`, client: "a client (this browser or a program)", browser: "the browser", files: "files", code: (name: string) => `sandboxed code (${name})`, web: "the web", agent: "another agent", builtin: "Everturn",
    read: "only reads", write: "changes something", once: "cannot be repeated",
  },
  {
    function: "服务器", mcp: (name: string) => `MCP 服务器 ${name}`, client: "客户端（本浏览器或程序）", browser: "浏览器", files: "文件", code: (name: string) => `沙箱代码（${name}）`, web: "网络", agent: "另一个代理", builtin: "Everturn",
    read: "只读", write: "会更改内容", once: "不可重复",
  },
);

export interface Executor {
  readonly icon: IconName;
  readonly label: string;
  readonly effects: string;
}

/** `origin` as a result tells it, else as the tool has it now. */
export function useExecutor(tool: string, origin = "", effects = "", turn?: TurnState): Executor {
  const t = useWords();
  const known = useStore(tools)?.tools.find((one) => one.name === tool);
  const isClient = turn?.options.clients?.some((one) => one.name === tool) || (!known && tool === "browser_js_eval");
  const from = origin || (isClient ? "client" : known?.origin) || "";
  const effect = effects || turn?.options.clients?.find((one) => one.name === tool)?.effects || known?.effects || "";
  const said = effect === "read" || effect === "write" || effect === "once" ? t[effect] : "";
  const [kind = "", name = ""] = split(from);
  switch (kind) {
    case "":
      return { icon: "tool", label: "", effects: said };
    case "mcp":
      return { icon: "plug", label: t.mcp(plain(name)), effects: said };
    case "client":
      return { icon: "browser", label: /^browser_|^(?:list_directory|read_file|write_file)$/.test(tool) ? t.browser : t.client, effects: said };
    case "code":
      return { icon: "server", label: t.code(plain(name)), effects: said };
    case "function":
    case "files":
    case "web":
    case "agent":
    case "builtin":
      return { icon: kind === "files" ? "file" : kind === "agent" ? "branch" : kind === "web" ? "link" : "tool", label: t[kind], effects: said };
    default:
      return { icon: "tool", label: plain(from), effects: said };
  }
}

function split(origin: string): [string, string] {
  const at = origin.indexOf(":");
  return at < 0 ? [origin, ""] : [origin.slice(0, at), origin.slice(at + 1)];
}
