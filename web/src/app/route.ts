/** Where in the page somebody is: what stands behind the `#`. */
import { Store } from "./store";

export type Route =
  | { page: "new" }
  | { page: "session"; session: string; message?: string }
  | { page: "compare"; session: string; left: string; right: string }
  | { page: "inbox" | "permissions" | "mcp" | "usage" | "settings" };

const PAGES = ["inbox", "permissions", "mcp", "usage", "settings"] as const;

export function parse(hash: string): Route {
  const [page = "", ...rest] = hash.replace(/^#?\/?/, "").split("/").map(decode);
  if (page === "s" && rest[0]) {
    const [session, kind, left, right] = rest;
    if (kind === "compare" && left && right) return { page: "compare", session, left, right };
    return kind === "m" && left ? { page: "session", session, message: left } : { page: "session", session };
  }
  const known = PAGES.find((one) => one === page);
  return known ? { page: known } : { page: "new" };
}

export function link(route: Route): string {
  switch (route.page) {
    case "new":
      return "#/";
    case "session":
      return `#/s/${encodeURIComponent(route.session)}${route.message ? `/m/${encodeURIComponent(route.message)}` : ""}`;
    case "compare":
      return `#/s/${[route.session, "compare", route.left, route.right].map(encodeURIComponent).join("/")}`;
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

export const route = new Store<Route>(parse(location.hash));
addEventListener("hashchange", () => route.set(parse(location.hash)));

export function go(to: Route): void {
  location.hash = link(to);
}
