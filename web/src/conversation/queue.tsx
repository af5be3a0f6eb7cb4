/** Message queue: messages that wait until the running turn has ended. */
import { useEffect, useState } from "preact/hooks";
import type { QueuedView, SessionFollower } from "@everturn/client";
import { attempt, client } from "../app/app";
import { useTopics } from "../app/store";
import { Badge, Button, Icon } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/queue.gen";

/** `sent` counts the messages sent from here: each may be in the queue now. */
export function Queue({ session, running, sent, onBack }: { session: SessionFollower; running: string | undefined; sent: number; onBack: (text: string) => void }) {
  const t = useTexts();
  useTopics(session, "tree");
  const [queued, setQueued] = useState<readonly QueuedView[]>([]);
  const { seq } = session.state;
  const head = running ?? "";
  useEffect(() => {
    if (!head && !queued.length) return;
    let isOver = false;
    const refresh = () => void client.queue(session.id).then((list) => !isOver && setQueued(list.queued), () => {});
    refresh();
    const timer = setInterval(refresh, 5000); // others may send here too, and a queue is not in the log
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [head, sent, queued.length > 0, session.state.leaf]);
  const waiting = queued.filter((entry) => !session.state.messages.has(entry.message));
  if (!waiting.length || !seq) return null;
  const takeBack = async (entry: QueuedView) => {
    await attempt(client.cancel(session.id, entry.turn));
    setQueued((list) => list.filter((other) => other.turn !== entry.turn));
    if (entry.text) onBack(entry.text);
  };
  return (
    <ul class="queue" aria-label={t.queued}>
      {waiting.map((entry, index) => (
        <li key={entry.turn}>
          <Icon name="clock" />
          <span class="ellipsis grow" dir="auto">{showControls(entry.text)}{entry.files.length > 0 && ` (${t.files(entry.files.length)})`}</span>
          {entry.steers ? <Badge tone="accent">{t.steers}</Badge> : index === 0 && <Badge>{t.next}</Badge>}
          {index === 0 && running && !entry.steers && <Button little kind="quiet" onClick={() => void attempt(client.cancel(session.id, running))}>{t.now}</Button>}
          <Button little kind="quiet" onClick={() => void takeBack(entry)}>{t.back}</Button>
        </li>
      ))}
    </ul>
  );
}
