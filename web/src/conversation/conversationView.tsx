/** Conversation view: transcript, connection status and composer of a session. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { isOver, path, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client, hasRole, getSessionFollower, mayWrite, readOnlySessions } from "../app/app";
import { lazy } from "../app/lazy";
import { navigate } from "../app/route";
import { useStore, useTopics } from "../app/store";
import { serveBrowserTools } from "../sandbox/serveTools";
import { sessions } from "../pages/sessions";
import { newestLeaf } from "../tree/branches";
import { Button, Icon, Spinner } from "../ui/components";
import { Composer, ContextGauge } from "./composer";
import { ConnectionLine } from "./connection";
import { ConversationHeader } from "./header";
import { Transcript } from "./transcript";
import "./conversation.css";
import "./newConversation.css";
import { useTexts } from "../locales/conversationView.gen";

const AdminAccess = lazy(async () => (await import("./adminAccess")).AdminAccess, true);

export function ConversationView({ session: id, message }: { session: string; message?: string }) {
  const t = useTexts();
  const session = getSessionFollower(id);
  useTopics(session, "tree", "connection");
  useStore(readOnlySessions);
  const [edited, setEdited] = useState<string | null>(null);
  useEffect(() => {
    session.start();
    const stop = serveBrowserTools(session);
    return () => {
      stop();
      session.pause();
    };
  }, [session]);
  const { state } = session;
  const all = runningTurns(session);
  const running = all.at(-1);
  const stoppable = all.filter((turn) => turn === running || (turn.command && turn.command === running?.command)).map((turn) => turn.id);
  useStopKey(session, stoppable);
  if (session.connection === "gone") return <SessionGone session={session} />;
  if (!state.seq) return <div class="conversation loading"><Spinner label={t.loading} />{session.connection === "lost" && <p class="muted" role="status">{t.unloaded}</p>}</div>;
  const selected = path(state);
  const isOnOtherBranch = message !== undefined && state.messages.has(message) && !state.deleted.has(message) && !selected.some((selectedMessage) => selectedMessage.id === message);
  const messages = isOnOtherBranch ? path(state, newestLeaf(state, message)) : selected;
  const editLast = () => setEdited(messages.findLast((message) => message.role === "user" && !message.hidden)?.id ?? null);
  return (
    <div class="conversation">
      <ConversationHeader session={session} />
      <Transcript session={session} messages={messages} marked={message} edited={edited} onEdit={setEdited} />
      <div class="bottom">
        <ConnectionLine session={session} isRunning={running !== undefined} />
        <Quarantined session={id} />
        {isOnOtherBranch ? (
          <p class="other-branch" role="status">
            <Icon name="branch" /><span class="grow">{t.other}</span>
            {mayWrite(id) && <Button little onClick={() => void attempt(client.select(id, { message: messages.at(-1)?.id ?? null })).then(() => navigate({ page: "session", session: id }))}>{t.here}</Button>}
            <Button little kind="quiet" onClick={() => navigate({ page: "session", session: id })}>{t.back}</Button>
          </p>
        ) : mayWrite(id) ? <Composer session={session} running={running} stoppable={stoppable} onUp={editLast} /> : <div class="small muted viewer"><p>{hasRole("member") ? t.read_only : t.viewer}</p><ContextGauge session={session} /></div>}
      </div>
    </div>
  );
}

/** Says why nothing happens in a quarantined session. */
function Quarantined({ session }: { session: string }) {
  const t = useTexts();
  const view = useStore(sessions.visible).find(({ id }) => id === session);
  return view?.quarantined ? <p class="connection-line" role="status"><Icon name="alert" />{t.quarantined}</p> : null;
}

/** The running turns of a session: one, or those of models that answer side by side. */
function runningTurns(session: SessionFollower): TurnState[] {
  return [...session.state.turns.values()].filter((turn) => !isOver(turn) && turn.phase !== "idle");
}

/** Esc stops the running turn, and those beside it, where it has nothing else to close: from the moment the turn is shown as running. */
function useStopKey(session: SessionFollower, turns: readonly string[]): void {
  useLayoutEffect(() => {
    if (!turns.length || !mayWrite(session.id)) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.repeat) return;
      if (document.querySelector("dialog[open], [aria-haspopup][aria-expanded=true], .shell[data-side=open]")) return;
      const element = document.activeElement;
      if (element instanceof HTMLElement && element.matches("input, textarea, select") && !element.matches("textarea.composer-text")) return;
      event.preventDefault();
      void attempt(Promise.all(turns.map((turn) => client.cancel(session.id, turn))));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [session, turns.join()]);
}

function SessionGone({ session }: { session: SessionFollower }) {
  const t = useTexts();
  const [isAsked, setAsked] = useState(false);
  const { problem } = session;
  const text = problem?.code === "unshared" ? t.lost : problem?.status && problem.status !== 404 ? problem.message : t.gone;
  return (
    <div class="page">
      <div class="inner">
        <h1>{text}</h1>
        <p class="row wrap">
          <Button icon="add" onClick={() => navigate({ page: "new" })}>{t.fresh}</Button>
          {hasRole("owner") && problem?.code !== "erased" && <Button icon="eye" onClick={() => setAsked(true)}>{t.admin}</Button>}
        </p>
        {isAsked && <AdminAccess session={session.id} onClose={() => setAsked(false)} />}
      </div>
    </div>
  );
}
