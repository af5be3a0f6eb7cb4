/** Browser tools of a conversation that is shown: loads what runs them when the first call waits. */
import { isOver, type SessionFollower } from "@everturn/client";
import { waitingCalls } from "./tools";

/** Run the client calls of a session while it is shown; returns the function that stops it. */
export function serveBrowserTools(session: SessionFollower): () => void {
  const stopped = new AbortController();
  const stops = new Map<string, () => void>();
  let checkCalls: (() => void) | null = null;
  let isLoading = false;

  const onChange = () => {
    for (const turn of session.state.turns.values()) {
      if (stops.has(turn.id) === !isOver(turn)) continue;
      stops.get(turn.id)?.();
      if (!stops.delete(turn.id)) stops.set(turn.id, session.subscribe(`turn:${turn.id}`, onChange));
    }
    const mayNeed = () => [...session.state.turns.values()].some((turn) => stops.has(turn.id) && [...turn.calls.values()].some((call) => call.children.length));
    if (checkCalls) checkCalls();
    else if (!isLoading && (waitingCalls(session).length || mayNeed())) {
      isLoading = true;
      void import("./toolRunner").then(
        ({ runClientTools }) => { if (!stopped.signal.aborted) checkCalls = runClientTools(session, stopped.signal); },
        () => { isLoading = false; }, // the next change of the session tries again
      );
    }
  };
  const stopTree = session.subscribe("tree", onChange);
  onChange();
  return () => {
    stopped.abort();
    stopTree();
    for (const stop of stops.values()) stop();
  };
}
