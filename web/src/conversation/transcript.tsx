/** All messages of the branch that is looked at, the newest first to be drawn. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Message, SessionFollower } from "@everturn/client";
import { words } from "../app/words";
import { Button } from "../ui/kit";
import { TurnFoot } from "./ending";
import { useKept } from "./kept";
import { MessageView } from "./message";

const useWords = words(
  { log: "Conversation", newest: "Newest message", earlier: (count: number) => `${count} earlier messages…` },
  { log: "对话", newest: "最新消息", earlier: (count: number) => `还有 ${count} 条更早的消息…` },
);

interface Props {
  session: SessionFollower;
  messages: Message[];
  marked: string | undefined;
  edited: string | null;
  onEdit: (message: string | null) => void;
}

const AT_ONCE = 24; // messages that are drawn before the page is shown
const MORE = 10; // at a time after that: few enough that nobody notices

export function Transcript({ session, messages, marked, edited, onEdit }: Props) {
  const t = useWords();
  const keep = useKept();
  const { scroller, content, isAway, toNewest } = useSticking(marked !== undefined);
  const first = useBackwards(messages, marked);
  useMark(marked, first === 0 && messages.length > 0);
  const drawn = messages.slice(first).flatMap(({ id, turn = "" }) => {
    const [isEdited, isMarked] = [edited === id, marked === id];
    const view = keep(id, [isEdited, isMarked], () => <MessageView key={id} session={session} id={id} isEdited={isEdited} isMarked={isMarked} onEdit={onEdit} />);
    // A turn stands where it has come to; another answer to the same message is another turn.
    if (session.state.turns.get(turn)?.tip !== id) return [view];
    return [view, keep(`end:${turn}`, [], () => <TurnFoot key={`end:${turn}`} session={session} id={turn} />)];
  });
  return (
    <div class="scroller" ref={scroller}>
      <div class="transcript" role="log" aria-live="polite" aria-relevant="additions" aria-label={t.log} ref={content}>
        {first > 0 && <p class="small muted earlier">{t.earlier(first)}</p>}
        {drawn}
      </div>
      {isAway && <div class="to-newest"><Button little icon="chevron" onClick={toNewest}>{t.newest}</Button></div>}
    </div>
  );
}

/** From which message on the branch is drawn: the last ones at once, the rest when the browser has time. */
function useBackwards(messages: Message[], marked: string | undefined): number {
  const [drawn, setDrawn] = useState(AT_ONCE);
  const isFar = marked !== undefined && messages.findIndex((one) => one.id === marked) < messages.length - drawn;
  const first = isFar ? 0 : Math.max(0, messages.length - drawn);
  useEffect(() => {
    if (!first) return;
    const more = () => setDrawn((count) => count + MORE);
    if (!("requestIdleCallback" in window)) {
      const timer = setTimeout(more, 50);
      return () => clearTimeout(timer);
    }
    const due = requestIdleCallback(more, { timeout: 500 });
    return () => cancelIdleCallback(due);
  }, [first]);
  return first;
}

/** Stay at the end while somebody is at the end, and leave them alone where they have scrolled to. */
function useSticking(isElsewhere: boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticks = useRef(!isElsewhere);
  const [isAway, setAway] = useState(false);
  const toNewest = () => {
    sticks.current = true;
    setAway(false);
    scroller.current!.scrollTop = scroller.current!.scrollHeight;
  };
  useLayoutEffect(() => {
    const box = scroller.current!;
    let height = box.scrollHeight;
    let top = box.scrollTop;
    const onScroll = () => {
      const left = box.scrollHeight - box.clientHeight - box.scrollTop;
      // What grows above or below moves the end away; only somebody who scrolls up leaves it.
      if (left < 48) sticks.current = true;
      else if (box.scrollTop < top - 1 && box.scrollHeight >= height) sticks.current = false;
      [height, top] = [box.scrollHeight, box.scrollTop];
      setAway(left > 240 && !sticks.current);
    };
    const grown = new ResizeObserver(() => {
      if (sticks.current) box.scrollTop = box.scrollHeight;
      else setAway(box.scrollHeight - box.clientHeight - box.scrollTop > 240);
    });
    grown.observe(content.current!);
    grown.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      grown.disconnect();
      box.removeEventListener("scroll", onScroll);
    };
  }, []);
  return { scroller, content, isAway, toNewest };
}

/** Go to the message that a link names. */
function useMark(marked: string | undefined, isReady: boolean): void {
  useEffect(() => {
    if (!marked || !isReady) return;
    const found = document.getElementById(`m-${marked}`);
    found?.scrollIntoView({ block: "start" });
    found?.focus({ preventScroll: true });
  }, [marked, isReady]);
}
