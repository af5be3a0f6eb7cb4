/** Hash router: the current page, parsed from the part of the URL after `#`. */
import { Store } from "./store";

export type Route =
  | { page: "new" }
  | { page: "link"; link: string }
  | { page: "invite"; token: string }
  | { page: "admin"; section: string }
  | { page: "session"; session: string; message?: string }
  | { page: "compare"; session: string; left: string; right: string }
  | { page: "trace"; session: string; turn: string; other?: string }
  | { page: "tree"; session: string }
  | { page: "mcp"; login?: McpLoginAnswer }
  | { page: "unknown" }
  | { page: "inbox" | "permissions" | "memory" | "prompts" | "schedules" | "usage" | "settings" };

/** What the authorization server of an MCP server gave to this browser. */
export interface McpLoginAnswer { state: string; code: string; error: string; iss: string }

const PAGES = ["inbox", "permissions", "mcp", "memory", "prompts", "schedules", "usage", "settings"] as const;

export function parseRoute(hash: string): Route {
  const [page = "", ...rest] = hash.replace(/^#?\/?/, "").split("/").map(decode);
  if (page === "s" && rest[0]) {
    const [session, kind, left, right] = rest;
    if (kind === "compare" && left && right) return { page: "compare", session, left, right };
    if (kind === "trace" && left) return { page: "trace", session, turn: left, other: right || undefined };
    if (kind === "tree") return { page: "tree", session };
    return kind === "m" && left ? { page: "session", session, message: left } : { page: "session", session };
  }
  if (page === "link" && rest[0]) return { page, link: rest[0] };
  if (page === "invite" && rest[0]) return { page, token: rest[0] };
  if (page === "mcp" && rest[0]) return { page, login: { state: rest[0], code: rest[1] ?? "", error: rest[2] ?? "", iss: rest[3] ?? "" } };
  if (page === "admin") return { page, section: rest[0] ?? "" };
  const known = PAGES.find((known) => known === page);
  return known ? { page: known } : { page: !page || page.startsWith("?") ? "new" : "unknown" };
}

export function hrefFor(route: Route): string {
  switch (route.page) {
    case "new":
      return "#/";
    case "link":
      return `#/link/${encodeURIComponent(route.link)}`;
    case "invite":
      return `#/invite/${encodeURIComponent(route.token)}`;
    case "admin":
      return route.section ? `#/admin/${encodeURIComponent(route.section)}` : "#/admin";
    case "session":
      return `#/s/${encodeURIComponent(route.session)}${route.message ? `/m/${encodeURIComponent(route.message)}` : ""}`;
    case "compare":
      return `#/s/${[route.session, "compare", route.left, route.right].map(encodeURIComponent).join("/")}`;
    case "trace":
      return `#/s/${[route.session, "trace", route.turn, ...(route.other ? [route.other] : [])].map(encodeURIComponent).join("/")}`;
    case "tree":
      return `#/s/${encodeURIComponent(route.session)}/tree`;
    default:
      return `#/${route.page}`;
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export const route = new Store<Route>(parseRoute(location.hash));
addEventListener("hashchange", () => route.set(parseRoute(location.hash)));

/** `isReplacing`: the page before is not in the history. */
export function navigate(to: Route, isReplacing = false): void {
  if (isReplacing) location.replace(hrefFor(to));
  else location.hash = hrefFor(to);
}
