/** How many questions wait: in the title of the page, and (by leave) as a notification. */
import type { GateView } from "@everturn/client";
import { useEffect } from "preact/hooks";
import { inbox, sessionOf } from "../app/app";
import { go, route } from "../app/route";
import { settings } from "../app/settings";
import { language, words } from "../app/words";
import { announce } from "./announce";
import { fresh, titleOf } from "./badge-model";
import { plain } from "./hidden";

const useWords = words(
  {
    asks: (tool: string) => `${tool} asks`, review: (tool: string) => `${tool}: a result to be read`, question: "A question for you", untitled: "A conversation",
    standing: (n: number) => (n === 1 ? "One question waits for an answer." : `${n} questions wait for an answer.`),
  },
  { asks: (tool: string) => `${tool} 请求批准`, review: (tool: string) => `${tool}：结果待审阅`, question: "有一个问题", untitled: "一个对话", standing: (n: number) => `有 ${n} 个问题等待回答。` },
);

const WAIT = 700; // milliseconds in which a tab that is looked at says so

export function useBadge(): void {
  const t = useWords();
  useEffect(() => {
    const known = new Set<string>();
    const told = new Set<string>(); // by any tab
    let isFirst = true;
    let stopTitle = () => {};
    const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("everturn-gates");
    if (tabs) tabs.onmessage = ({ data }) => typeof data === "string" && told.add(data);

    const draw = () => {
      const count = inbox.gates.filter(({ gate }) => gate.kind !== "client").length;
      const at = route.value;
      const title = "session" in at ? sessionOf(at.session).state.title || inbox.sessions.get(at.session)?.title || "" : "";
      document.title = titleOf(count, plain(title));
    };
    const heed = () => {
      stopTitle();
      const at = route.value;
      stopTitle = "session" in at ? sessionOf(at.session).subscribe("tree", draw) : () => {};
      draw();
    };
    const look = () => {
      draw();
      const news = fresh(inbox.gates, known);
      if (isFirst && inbox.gates.length) announce("standing", t.standing(inbox.gates.length));
      else if (!isFirst) news.forEach(tell);
      if (inbox.isOpen) isFirst = false;
    };
    const tell = (one: GateView) => {
      if (!document.hidden && document.hasFocus()) {
        tabs?.postMessage(one.gate.id);
        return announce(one.gate.id, saying(one));
      }
      setTimeout(() => !told.has(one.gate.id) && notify(one), WAIT * (0.5 + Math.random()));
    };
    const saying = ({ gate }: GateView) => (gate.kind === "result" ? t.review(plain(gate.tool)) : gate.tool ? t.asks(plain(gate.tool)) : t.question);
    const notify = (one: GateView) => {
      if (!settings.value.notify || typeof Notification === "undefined" || Notification.permission !== "granted") return;
      tabs?.postMessage(one.gate.id);
      // Only what asks, never what it was given: notifications are seen by others, and kept by the system.
      const shown = new Notification(saying(one), { body: plain(one.title) || t.untitled, tag: one.gate.id, lang: language.value });
      shown.onclick = () => {
        window.focus();
        go({ page: "session", session: one.session });
        setTimeout(() => document.querySelector<HTMLElement>(`.gate[data-gate="${CSS.escape(one.gate.id)}"]`)?.focus(), 800);
        shown.close();
      };
    };
    // Alt+G: to the question that waits on this page.
    const onKey = (event: KeyboardEvent) => {
      if (event.code !== "KeyG" || !event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      const gate = document.querySelector<HTMLElement>(".gate[data-open]");
      if (!gate) return;
      event.preventDefault();
      gate.focus();
    };
    const stops = [inbox.subscribe("gates", look), inbox.subscribe("sessions", draw), route.subscribe(heed), language.subscribe(draw)];
    addEventListener("keydown", onKey);
    heed();
    return () => {
      stops.forEach((stop) => stop());
      stopTitle();
      tabs?.close();
      removeEventListener("keydown", onKey);
    };
  }, [t]);
}
