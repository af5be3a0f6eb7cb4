/** Conversation view: transcript, connection status and composer of a session. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { isOver, path, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client, hasRole, getSessionFollower } from "../app/app";
import { navigate } from "../app/route";
import { useTopics } from "../app/store";
import { sessionTitle } from "../app/titles";
import { serveBrowserTools } from "../sandbox/tools";
import { newestLeaf } from "../tree/branches";
import { Button, Icon, Spinner } from "../ui/components";
import { Composer, ContextGauge } from "./composer";
import { ConnectionLine } from "./connection";
import { Transcript } from "./transcript";
import "./conversation.css";
import "./newConversation.css";
import { useTexts } from "../locales/conversationView.gen";

export function ConversationView({ session: id, message }: { session: string; message?: string }) {
  const t = useTexts();
  const session = getSessionFollower(id);
  useTopics(session, "tree", "connection");
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
  const running = runningTurn(session);
  useStopKey(session, running);
  if (session.connection === "gone") return <SessionGone text={session.problem?.status && session.problem.status !== 404 ? session.problem.message : t.gone} fresh={t.fresh} />;
  if (!state.seq) return <div class="conversation loading"><Spinner label={t.loading} /></div>;
  const selected = path(state);
  const isOnOtherBranch = message !== undefined && state.messages.has(message) && !state.deleted.has(message) && !selected.some((selectedMessage) => selectedMessage.id === message);
  const messages = isOnOtherBranch ? path(state, newestLeaf(state, message)) : selected;
  const editLast = () => setEdited(messages.findLast((message) => message.role === "user" && !message.hidden)?.id ?? null);
  return (
    <div class="conversation">
      <h1 class="title ellipsis" dir="auto">{sessionTitle(id, state.title) || t.untitled}</h1>
      <Transcript session={session} messages={messages} marked={message} edited={edited} onEdit={setEdited} />
      <div class="bottom">
        <ConnectionLine session={session} isRunning={running !== undefined} />
        {isOnOtherBranch ? (
          <p class="other-branch" role="status">
            <Icon name="branch" /><span class="grow">{t.other}</span>
            {hasRole("member") && <Button little onClick={() => void attempt(client.select(id, { message: messages.at(-1)?.id ?? null })).then(() => navigate({ page: "session", session: id }))}>{t.here}</Button>}
            <Button little kind="quiet" onClick={() => navigate({ page: "session", session: id })}>{t.back}</Button>
          </p>
        ) : hasRole("member") ? <Composer session={session} running={running} onUp={editLast} /> : <div class="small muted viewer"><p>{t.viewer}</p><ContextGauge session={session} /></div>}
      </div>
    </div>
  );
}

/** The running turn of a session; there is at most one. */
function runningTurn(session: SessionFollower): TurnState | undefined {
  let found: TurnState | undefined;
  for (const turn of session.state.turns.values()) if (!isOver(turn) && turn.phase !== "idle") found = turn;
  return found;
}

/** Esc stops the running turn, where it has nothing else to close: from the moment the turn is shown as running. */
function useStopKey(session: SessionFollower, running: TurnState | undefined): void {
  useLayoutEffect(() => {
    if (!running || !hasRole("member")) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.repeat) return;
      if (document.querySelector("dialog[open], [aria-haspopup][aria-expanded=true], .shell[data-side=open]")) return;
      const element = document.activeElement;
      if (element instanceof HTMLElement && element.matches("input, textarea, select") && !element.matches("textarea.composer-text")) return;
      event.preventDefault();
      void attempt(client.cancel(session.id, running.id));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [session, running?.id]);
}

function SessionGone({ text, fresh }: { text: string; fresh: string }) {
  return (
    <div class="page">
      <div class="inner">
        <h1>{text}</h1>
        <p><Button icon="add" onClick={() => navigate({ page: "new" })}>{fresh}</Button></p>
      </div>
    </div>
  );
}
