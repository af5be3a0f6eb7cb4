/** Two branches side by side. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { path, type Message, type SessionState, type Usage } from "@everturn/client";
import { attempt, client, may, sessionOf } from "../app/app";
import { go, link } from "../app/route";
import { useTopics } from "../app/store";
import { say, words } from "../app/words";
import { Button, ErrorLine, Fold, Spinner } from "../ui/kit";
import { aligned, partingOf } from "./branching";
import { Compared, Said } from "./compared";
import { usageOf } from "./totals";
import "./compare.css";

const useWords = words(
  {
    title: "Compare two branches", back: "Back to the conversation", common: (count: number) => (count === 1 ? "1 message in common" : `${count} messages in common`),
    differences: "Show differences", left: "Left", right: "Right", go: "Go on here", gone: "One of these branches is no longer there.",
    messages: (count: number) => (count === 1 ? "1 message" : `${count} messages`), tokens: (given: string, got: string) => `${given} in, ${got} out`,
    swap: "Swap sides", loading: "Loading", same: "Both are the same branch.", selected: "selected", which: "Which branch is shown",
  },
  {
    title: "比较两个分支", back: "返回对话", common: (count: number) => `${count} 条相同的消息`,
    differences: "显示差异", left: "左", right: "右", go: "从这里继续", gone: "其中一个分支已不存在。",
    messages: (count: number) => `${count} 条消息`, tokens: (given: string, got: string) => `输入 ${given}，输出 ${got}`,
    swap: "交换左右", loading: "加载中", same: "两边是同一个分支。", selected: "当前", which: "显示哪个分支",
  },
);

type Side = "left" | "right";

export function Compare({ session: id, left, right }: { session: string; left: string; right: string }) {
  const t = useWords();
  const session = sessionOf(id);
  useTopics(session, "tree", "connection");
  useEffect(() => {
    session.start();
    return () => session.pause();
  }, [session]);
  const [isDiff, setDiff] = useState(false);
  const [side, setSide] = useState<Side>("left"); // that a narrow screen shows
  const { state } = session;
  const isThere = [left, right].every((leaf) => state.messages.has(leaf) && !state.deleted.has(leaf));
  const parting = useMemo(() => (isThere ? partingOf(state, left, right) : null), [isThere, state, state.seq, left, right]);
  return (
    <div class="page compare" data-side={side}>
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          <a class="button little" href={link({ page: "session", session: id })}>{t.back}</a>
        </div>
        {session.problem && <ErrorLine>{session.problem.message}</ErrorLine>}
        {!parting && (session.connection === "loading" ? <Spinner label={t.loading} /> : <p>{t.gone}</p>)}
        {parting && (
          <>
            <div class="row wrap tools">
              <label class="row"><input type="checkbox" checked={isDiff} onChange={(event) => setDiff(event.currentTarget.checked)} /> {t.differences}</label>
              <Button little kind="quiet" icon="compare" onClick={() => go({ page: "compare", session: id, left: right, right: left })}>{t.swap}</Button>
              <div class="switch row" role="group" aria-label={t.which}>
                {(["left", "right"] as const).map((one) => (
                  <Button key={one} little kind={one === side ? "primary" : undefined} aria-pressed={one === side} onClick={() => setSide(one)}>{t[one]}</Button>
                ))}
              </div>
            </div>
            {parting.common.length > 0 && (
              <Fold class="card common" summary={<span>{t.common(parting.common.length)}</span>}>
                {parting.common.map((message) => <Said key={message.id} message={message} />)}
              </Fold>
            )}
            {!parting.left.length && !parting.right.length && <p class="muted">{t.same}</p>}
            <div class="sides heads">
              <Head state={state} id={id} side="left" leaf={left} own={parting.left} />
              <Head state={state} id={id} side="right" leaf={right} own={parting.right} />
            </div>
            {aligned(parting.left, parting.right).map(([one, other]) => (
              <Compared key={`${one?.id} ${other?.id}`} left={one} right={other} isDiff={isDiff} />
            ))}
          </>
        )}
      </div>
    </div>
  );
}

/** What a branch came to, and the way on. */
function Head({ state, id, side, leaf, own }: { state: SessionState; id: string; side: Side; leaf: string; own: readonly Message[] }) {
  const t = useWords();
  const isSelected = state.leaf !== null && path(state).some((one) => one.id === leaf);
  const select = async () => {
    const isDone = isSelected || (await attempt(client.select(id, { message: leaf }).then(() => true)));
    if (isDone) go({ page: "session", session: id });
  };
  return (
    <div class={`side ${side} card head`}>
      <strong>{t[side]}{isSelected && <span class="badge accent">{t.selected}</span>}</strong>
      <Totals messages={own} />
      {(may("member") || isSelected) && <Button little icon="branch" onClick={() => void select()}>{t.go}</Button>}
    </div>
  );
}

function Totals({ messages }: { messages: readonly Message[] }) {
  const t = useWords();
  const used: Usage = usageOf(messages);
  return (
    <span class="small muted grow">
      {t.messages(messages.length)}
      {(used.input || used.output) ? ` · ${t.tokens(say.number(used.input ?? 0), say.number(used.output ?? 0))}` : ""}
      {used.cost ? ` · ${say.cost(used.cost)}` : ""}
    </span>
  );
}
