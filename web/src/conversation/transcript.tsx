/** Transcript: the messages of the shown branch, the newest rendered first. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Message, SessionFollower, TurnState } from "@everturn/client";
import { attempt } from "../app/app";
import { lazy } from "../app/lazy";
import { comparisonAtEnd } from "../tree/comparison";
import { Button } from "../ui/components";
import { TurnFooter, isCompactionTurn } from "./turnFooter";
import { useMemoizedNodes } from "./useMemoizedNodes";
import { MessageView } from "./message";
import { useTexts } from "../locales/transcript.gen";

const ComparisonView = lazy(async () => (await import("./comparisonView")).ComparisonView);

interface Props {
  session: SessionFollower;
  messages: Message[];
  marked: string | undefined;
  edited: string | null;
  onEdit: (message: string | null) => void;
}

const INITIAL_COUNT = 24; // messages that are rendered first
const BATCH_SIZE = 10; // messages per idle callback after that

export function Transcript({ session, messages, marked, edited, onEdit }: Props) {
  const t = useTexts();
  const memoize = useMemoizedNodes();
  const { scroller, content, isScrolledUp, toNewest } = useStickToBottom(marked !== undefined);
  const first = useBackfill(messages, marked);
  useLoadMarked(session, marked);
  useScrollToMessage(marked, first === 0 && messages.length > 0 && (!session.hasEarlier || session.state.messages.has(marked ?? "")));
  const comparison = comparisonAtEnd(session.state, messages);
  const rendered = messages.slice(first, comparison ? comparison.at + 1 : undefined).flatMap(({ id, turn = "" }) => {
    const [isEdited, isMarked] = [edited === id, marked === id];
    const view = memoize(id, [isEdited, isMarked], () => <MessageView key={id} session={session} id={id} isEdited={isEdited} isMarked={isMarked} onEdit={onEdit} />);
    // The footer of a turn is under its last message; another answer to the same message is another turn.
    if (session.state.turns.get(turn)?.tip !== id || comparison?.turns.includes(turn)) return [view];
    return [view, memoize(`end:${turn}`, [], () => <TurnFooter key={`end:${turn}`} session={session} id={turn} />)];
  });
  if (comparison) rendered.push(<ComparisonView key={`comparison:${comparison.turns[0]}`} session={session} turns={comparison.turns} marked={marked} />);
  const compacting = compactionBelow(session, messages.at(-1));
  if (compacting) rendered.push(<TurnFooter key={`end:${compacting.id}`} session={session} id={compacting.id} />);
  return (
    <div class="scroller" ref={scroller}>
      <h2 class="visually-hidden">{t.log}</h2>
      <div class="transcript" role="log" aria-live="polite" aria-relevant="additions" aria-label={t.log} ref={content}>
        {first > 0 ? <p class="small muted earlier">{t.earlier(first)}</p> : session.hasEarlier && <Earlier session={session} text={t.load} />}
        {rendered}
      </div>
      {isScrolledUp && <div class="to-newest"><Button little icon="chevron" onClick={toNewest}>{t.newest}</Button></div>}
    </div>
  );
}

/** The newest turn, if it only compacts the conversation and has not added its message yet: it has no message to stand under. */
function compactionBelow({ state }: SessionFollower, last: Message | undefined): TurnState | undefined {
  const turn = [...state.turns.values()].at(-1);
  return turn && last && isCompactionTurn(turn) && turn.tip === last.id && turn.id !== last.turn ? turn : undefined;
}

/** Loads the turns before the shown ones when it comes into view, or when it is pressed. */
function Earlier({ session, text }: { session: SessionFollower; text: string }) {
  const place = useRef<HTMLParagraphElement>(null);
  const load = () => void attempt(session.loadEarlier());
  useEffect(() => {
    const observer = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && load(), { rootMargin: "400px 0px 0px 0px" });
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, [session, session.state.start]); // again after a page that did not fill the screen
  return <p class="small muted earlier" ref={place}><Button little kind="quiet" onClick={load}>{text}</Button></p>;
}

/** Load earlier turns until the message that a link names is among them. */
function useLoadMarked(session: SessionFollower, marked: string | undefined): void {
  const { start, messages } = session.state;
  useEffect(() => {
    if (marked && start > 1 && !messages.has(marked)) void attempt(session.loadEarlier());
  }, [session, marked, start]);
}

/** Index of the first rendered message: the last ones at once, the rest when the browser is idle. */
function useBackfill(messages: Message[], marked: string | undefined): number {
  const [shownCount, setShownCount] = useState(INITIAL_COUNT);
  const isFar = marked !== undefined && messages.findIndex((message) => message.id === marked) < messages.length - shownCount;
  const first = isFar ? 0 : Math.max(0, messages.length - shownCount);
  useEffect(() => {
    if (!first) return;
    const more = () => setShownCount((count) => count + BATCH_SIZE);
    if (!("requestIdleCallback" in window)) {
      const timer = setTimeout(more, 50);
      return () => clearTimeout(timer);
    }
    const due = requestIdleCallback(more, { timeout: 500 });
    return () => cancelIdleCallback(due);
  }, [first]);
  return first;
}

/** Stick to the bottom while the user is at the bottom; do not move after the user has scrolled up. */
function useStickToBottom(startsUnstuck: boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sticks = useRef(!startsUnstuck);
  const [isScrolledUp, setScrolledUp] = useState(false);
  const toNewest = () => {
    sticks.current = true;
    setScrolledUp(false);
    scroller.current!.scrollTop = scroller.current!.scrollHeight;
  };
  useLayoutEffect(() => {
    const box = scroller.current!;
    let height = box.scrollHeight;
    let top = box.scrollTop;
    const onScroll = () => {
      const left = box.scrollHeight - box.clientHeight - box.scrollTop;
      // Growing content moves the bottom away; only scrolling up unsticks.
      if (left < 48) sticks.current = true;
      else if (box.scrollTop < top - 1 && box.scrollHeight >= height) sticks.current = false;
      [height, top] = [box.scrollHeight, box.scrollTop];
      setScrolledUp(left > 240 && !sticks.current);
    };
    const observer = new ResizeObserver(() => {
      if (sticks.current) box.scrollTop = box.scrollHeight;
      else setScrolledUp(box.scrollHeight - box.clientHeight - box.scrollTop > 240);
    });
    observer.observe(content.current!);
    observer.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      box.removeEventListener("scroll", onScroll);
    };
  }, []);
  return { scroller, content, isScrolledUp, toNewest };
}

/** Scroll to the message that a link names. */
function useScrollToMessage(marked: string | undefined, isReady: boolean): void {
  useEffect(() => {
    if (!marked || !isReady) return;
    const found = document.getElementById(`m-${marked}`);
    found?.scrollIntoView({ block: "start" });
    if (!document.activeElement?.closest(".find-bar")) found?.focus({ preventScroll: true }); // who searches goes on typing there
  }, [marked, isReady]);
}
