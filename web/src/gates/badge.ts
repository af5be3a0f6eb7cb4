/** Open gates in the title of the tab, and as notifications if the user allows them. */
import type { GateView } from "@everturn/client";
import { useEffect } from "preact/hooks";
import { inbox, getSessionFollower } from "../app/app";
import { appTitle } from "../app/branding";
import { navigate, route } from "../app/route";
import { settings } from "../app/settings";
import { language } from "../app/texts";
import { announce } from "./announce";
import { takeNewGates, documentTitle } from "./badgeModel";
import { OPEN_GATES } from "./focus";
import { escapeInvisible } from "./invisibleChars";
import { useTexts } from "../locales/badge.gen";

const NOTIFY_DELAY = 700; // milliseconds in which a visible tab announces the gate instead

export function useBadge(): void {
  const t = useTexts();
  useEffect(() => {
    const known = new Set<string>();
    const announced = new Set<string>(); // by any tab
    let isFirst = true;
    let stopTitle = () => {};
    const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("everturn-gates");
    if (tabs) tabs.onmessage = ({ data }) => typeof data === "string" && announced.add(data);

    const updateTitle = () => {
      const count = inbox.gates.filter(({ gate }) => gate.kind !== "client").length;
      const currentRoute = route.value;
      const title = "session" in currentRoute ? getSessionFollower(currentRoute.session).state.title || inbox.sessions.get(currentRoute.session)?.title || "" : "";
      document.title = documentTitle(count, escapeInvisible(title), appTitle());
    };
    const followRoute = () => {
      stopTitle();
      const currentRoute = route.value;
      stopTitle = "session" in currentRoute ? getSessionFollower(currentRoute.session).subscribe("tree", updateTitle) : () => {};
      updateTitle();
    };
    const onGates = () => {
      updateTitle();
      const news = takeNewGates(inbox.gates, known);
      if (isFirst && inbox.gates.length) announce("standing", t.standing(inbox.gates.length));
      else if (!isFirst) news.forEach(announceGate);
      if (inbox.isOpen) isFirst = false;
    };
    const announceGate = (gateView: GateView) => {
      if (!document.hidden && document.hasFocus()) {
        tabs?.postMessage(gateView.gate.id);
        return announce(gateView.gate.id, gateText(gateView));
      }
      setTimeout(() => !announced.has(gateView.gate.id) && notify(gateView), NOTIFY_DELAY * (0.5 + Math.random()));
    };
    const gateText = ({ gate }: GateView) => (gate.kind === "result" ? t.review(escapeInvisible(gate.tool)) : gate.kind === "limit" ? t.limit : gate.tool ? t.asks(escapeInvisible(gate.tool)) : t.question);
    const notify = (gateView: GateView) => {
      if (!settings.value.notify || typeof Notification === "undefined" || Notification.permission !== "granted") return;
      tabs?.postMessage(gateView.gate.id);
      // Only which tool asks, never its arguments: notifications are seen by others, and stored by the system.
      const shown = new Notification(gateText(gateView), { body: escapeInvisible(gateView.title) || t.untitled, tag: gateView.gate.id, lang: language.value });
      shown.onclick = () => {
        window.focus();
        navigate({ page: "session", session: gateView.session });
        setTimeout(() => document.querySelector<HTMLElement>(`:is([data-gate="${CSS.escape(gateView.gate.id)}"], [data-gate-row="${CSS.escape(gateView.gate.id)}"])`)?.focus(), 800);
        shown.close();
      };
    };
    // Alt+G: focus the open gate on this page.
    const onKey = (event: KeyboardEvent) => {
      if (event.code !== "KeyG" || !event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
      const gate = document.querySelector<HTMLElement>(OPEN_GATES);
      if (!gate) return;
      event.preventDefault();
      gate.focus();
    };
    const stops = [inbox.subscribe("gates", onGates), inbox.subscribe("sessions", updateTitle), route.subscribe(followRoute), language.subscribe(updateTitle)];
    addEventListener("keydown", onKey);
    followRoute();
    return () => {
      stops.forEach((stop) => stop());
      stopTitle();
      tabs?.close();
      removeEventListener("keydown", onKey);
    };
  }, [t]);
}
