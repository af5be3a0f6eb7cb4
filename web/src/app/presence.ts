/** Presence: tells the server what this tab shows, and keeps who else looks at it.
 *
 * A look that is not repeated ends on the server after ten seconds. A hidden tab looks at nothing.
 */
import { newKey, type LookAt, type ViewerView } from "@everturn/client";
import { client, inbox, me } from "./app";
import { route } from "./route";
import { settings } from "./settings";
import { Store } from "./store";

export const viewers = new Store<readonly ViewerView[]>([]);

const PERIOD = 5000;
const MAX_PLACES = 20; // as on the server
const MAX_GATES_IN_VIEW = 3;
const TAB = newKey().slice(0, 16);

/** Start to report; returns the function that stops it. */
export function watchPresence(): () => void {
  let last: readonly LookAt[] = [];
  let newest = 0;
  const report = async () => {
    const number = ++newest;
    const isLooking = !document.hidden && settings.value.presence && me.value !== null && me.value !== "anonymous";
    const at = isLooking ? shownPlaces() : [];
    leave(last.filter((before) => !at.some((place) => isSame(place, before))));
    last = at;
    const found = at.length ? await client.look({ tab: TAB, at }).then((view) => view.viewers, () => []) : [];
    if (number === newest && JSON.stringify(found) !== JSON.stringify(viewers.value)) viewers.set(found);
  };
  const stop = () => {
    leave(last);
    last = [];
  };
  const later = () => void setTimeout(() => void report(), 300); // the page of a new route is drawn first
  const timer = setInterval(() => void report(), PERIOD);
  const onVisibility = () => void report();
  const stops = [route.subscribe(later), settings.subscribe(onVisibility), inbox.subscribe("gates", later)];
  document.addEventListener("visibilitychange", onVisibility);
  addEventListener("pagehide", stop);
  later();
  return () => {
    newest += 1;
    clearInterval(timer);
    for (const each of stops) each();
    document.removeEventListener("visibilitychange", onVisibility);
    removeEventListener("pagehide", stop);
    stop();
  };
}

function leave(places: readonly LookAt[]): void {
  if (places.length) client.look({ tab: TAB, at: places, has_left: true }).catch(() => {}); // it ends by itself as well
}

const isSame = (left: LookAt, right: LookAt) => left.session === right.session && (left.gate ?? "") === (right.gate ?? "");

/** The conversation and the open gates that are on the screen. */
function shownPlaces(): LookAt[] {
  const shown = route.value;
  const session = "session" in shown ? shown.session : "";
  const gates = shown.page === "session" || shown.page === "inbox" ? gatesInView() : [];
  const places: LookAt[] = session ? [{ session }] : [];
  for (const gate of gates) {
    const owner = inbox.gates.find((view) => view.gate.id === gate)?.session ?? session;
    if (owner) places.push({ session: owner, gate });
  }
  return places.slice(0, MAX_PLACES);
}

/** Open gates on the screen. Of rows, and of many cards, a person looks at the one under the pointer or with the focus. */
function gatesInView(): string[] {
  const all = [...document.querySelectorAll<HTMLElement>("[data-gate][data-open], [data-gate-row]")].filter((card) => {
    const { top, bottom } = card.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const looked = all.length > MAX_GATES_IN_VIEW ? all.filter((card) => card.matches(":focus-within, :hover")) : all;
  return [...new Set(looked.map((card) => card.dataset["gate"] ?? card.dataset["gateRow"]!))];
}
