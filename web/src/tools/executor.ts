/** Executor of a tool: where it runs, as label and icon. */
import type { CallRecord, TurnState } from "@everturn/client";
import { tools } from "../app/app";
import { useStore } from "../app/store";
import { escapeInvisible } from "../gates/invisibleChars";
import type { IconName } from "../ui/components";
import { useTexts } from "../locales/executor.gen";

export interface Executor {
  readonly icon: IconName;
  readonly label: string;
  readonly effect: string; // "": not known
}

/** `origin` of the result, else the current origin of the tool. The effect is that of the started call, else the declared one. */
export function useExecutor(tool: string, origin = "", call?: CallRecord, turn?: TurnState): Executor {
  const t = useTexts();
  const known = useStore(tools)?.tools.find((candidate) => candidate.name === tool);
  const isClient = turn?.options.clients?.some((candidate) => candidate.name === tool) || (!known && tool === "browser_js_eval");
  const from = origin || (isClient ? "client" : known?.origin) || "";
  const effect = effectOf(call, turn?.options.clients?.find((candidate) => candidate.name === tool) ?? known, t);
  const [kind = "", name = ""] = split(from);
  switch (kind) {
    case "":
      return { icon: "tool", label: "", effect };
    case "mcp":
      return { icon: "plug", label: t.mcp(escapeInvisible(name)), effect };
    case "client":
      return { icon: "browser", label: /^browser_|^(?:list_directory|read_file|write_file)$/.test(tool) ? t.browser : t.client, effect };
    case "code":
      return { icon: "server", label: t.code(escapeInvisible(name)), effect };
    case "function":
    case "files":
    case "web":
    case "agent":
    case "builtin":
      return { icon: kind === "files" ? "file" : kind === "agent" ? "branch" : kind === "web" ? "link" : "tool", label: t[kind], effect };
    default:
      return { icon: "tool", label: escapeInvisible(from), effect };
  }
}

function effectOf(call: CallRecord | undefined, declared: { readonly read_only?: boolean; readonly idempotent?: boolean } | undefined, t: ReturnType<typeof useTexts>): string {
  const flags = call?.started ? { read_only: call.readOnly, idempotent: call.idempotent } : declared;
  if (!flags) return "";
  return flags.read_only ? t.readOnly : flags.idempotent ? t.idempotent : t.atMostOnce;
}

function split(origin: string): [string, string] {
  const colon = origin.indexOf(":");
  return colon < 0 ? [origin, ""] : [origin.slice(0, colon), origin.slice(colon + 1)];
}
