/** The inside of a conversation: what was said, and where one goes on. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { isOver, path, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client, may, sessionOf } from "../app/app";
import { go } from "../app/route";
import { useTopics } from "../app/store";
import { titleOf } from "../app/titles";
import { words } from "../app/words";
import { serveBrowserTools } from "../sandbox/tools";
import { newestLeaf } from "../tree/branching";
import { Button, Icon, Spinner } from "../ui/kit";
import { Composer } from "./composer";
import { ConnectionLine } from "./connection";
import { Transcript } from "./transcript";
import "./conversation.css";
import "./new.css";

const useWords = words(
  {
    loading: "Opening the conversation", gone: "This conversation is not here any more, or not yours to see.", fresh: "Begin a new one",
    other: "You are looking at another branch than the one that goes on.", here: "Go on from this branch", back: "Back to the other one",
    viewer: "You may read this conversation, but not write in it.", untitled: "Conversation",
  },
  {
    loading: "正在打开对话", gone: "此对话已不存在，或您无权查看。", fresh: "开始新对话",
    other: "您正在查看的不是当前继续的分支。", here: "从此分支继续", back: "回到当前分支",
    viewer: "您可以阅读此对话，但不能发言。", untitled: "对话",
  },
);

export function Inside({ session: id, message }: { session: string; message?: string }) {
  const t = useWords();
  const session = sessionOf(id);
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
  const running = runningIn(session);
  useStopKey(session, running);
  if (session.connection === "gone") return <Gone text={session.problem?.status && session.problem.status !== 404 ? session.problem.message : t.gone} fresh={t.fresh} />;
  if (!state.seq) return <div class="conversation loading"><Spinner label={t.loading} /></div>;
  const selected = path(state);
  const isElsewhere = message !== undefined && state.messages.has(message) && !state.deleted.has(message) && !selected.some((one) => one.id === message);
  const messages = isElsewhere ? path(state, newestLeaf(state, message)) : selected;
  const editLast = () => setEdited(messages.findLast((one) => one.role === "user" && !one.hidden)?.id ?? null);
  return (
    <div class="conversation">
      <h1 class="title ellipsis" dir="auto">{titleOf(id, state.title) || t.untitled}</h1>
      <Transcript session={session} messages={messages} marked={message} edited={edited} onEdit={setEdited} />
      <div class="bottom">
        <ConnectionLine session={session} isRunning={running !== undefined} />
        {isElsewhere ? (
          <p class="other-branch" role="status">
            <Icon name="branch" /><span class="grow">{t.other}</span>
            {may("member") && <Button little onClick={() => void attempt(client.select(id, { message: messages.at(-1)?.id ?? null })).then(() => go({ page: "session", session: id }))}>{t.here}</Button>}
            <Button little kind="quiet" onClick={() => go({ page: "session", session: id })}>{t.back}</Button>
          </p>
        ) : may("member") ? <Composer session={session} running={running} onUp={editLast} /> : <p class="small muted viewer">{t.viewer}</p>}
      </div>
    </div>
  );
}

/** The turn that goes on in a session; there is one at most. */
function runningIn(session: SessionFollower): TurnState | undefined {
  let found: TurnState | undefined;
  for (const turn of session.state.turns.values()) if (!isOver(turn) && turn.phase !== "idle") found = turn;
  return found;
}

/** Esc stops what runs, where nothing else is there to be closed by it: from the moment at which it is drawn as running. */
function useStopKey(session: SessionFollower, running: TurnState | undefined): void {
  useLayoutEffect(() => {
    if (!running || !may("member")) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.repeat) return;
      if (document.querySelector("dialog[open], [aria-haspopup][aria-expanded=true], .shell[data-side=open]")) return;
      const at = document.activeElement;
      if (at instanceof HTMLElement && at.matches("input, textarea, select") && !at.matches("textarea.composer-text")) return;
      event.preventDefault();
      void attempt(client.cancel(session.id, running.id));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [session, running?.id]);
}

function Gone({ text, fresh }: { text: string; fresh: string }) {
  return (
    <div class="page">
      <div class="inner">
        <h1>{text}</h1>
        <p><Button icon="add" onClick={() => go({ page: "new" })}>{fresh}</Button></p>
      </div>
    </div>
  );
}
