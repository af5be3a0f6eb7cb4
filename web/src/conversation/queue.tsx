/** Messages that wait until the turn before them is over. */
import { useEffect, useState } from "preact/hooks";
import type { QueuedView, SessionFollower } from "@everturn/client";
import { attempt, client } from "../app/app";
import { useTopics } from "../app/store";
import { words } from "../app/words";
import { Badge, Button, Icon } from "../ui/kit";
import { visible } from "./plain";

const useWords = words(
  { queued: "Waiting to be sent", next: "next", steers: "joins at the next step", back: "Take back", now: "Stop and send now", files: (count: number) => (count === 1 ? "1 file" : `${count} files`) },
  { queued: "等待发送", next: "下一条", steers: "将在下一步加入", back: "收回", now: "停止并立即发送", files: (count: number) => `${count} 个文件` },
);

/** `sent` counts what was sent from here: each may be in the queue now. */
export function Queue({ session, running, sent, onBack }: { session: SessionFollower; running: string | undefined; sent: number; onBack: (text: string) => void }) {
  const t = useWords();
  useTopics(session, "tree");
  const [queued, setQueued] = useState<readonly QueuedView[]>([]);
  const { seq } = session.state;
  const head = running ?? "";
  useEffect(() => {
    if (!head && !queued.length) return;
    let isOver = false;
    const look = () => void client.queue(session.id).then((list) => !isOver && setQueued(list.queued), () => {});
    look();
    const timer = setInterval(look, 5000); // others may write here too, and a queue is not in the log
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [head, sent, queued.length > 0, session.state.leaf]);
  const waiting = queued.filter((one) => !session.state.messages.has(one.message));
  if (!waiting.length || !seq) return null;
  const takeBack = async (one: QueuedView) => {
    await attempt(client.cancel(session.id, one.turn));
    setQueued((list) => list.filter((other) => other.turn !== one.turn));
    if (one.text) onBack(one.text);
  };
  return (
    <ul class="queue" aria-label={t.queued}>
      {waiting.map((one, at) => (
        <li key={one.turn}>
          <Icon name="clock" />
          <span class="ellipsis grow" dir="auto">{visible(one.text)}{one.files.length > 0 && ` (${t.files(one.files.length)})`}</span>
          {one.steers ? <Badge tone="accent">{t.steers}</Badge> : at === 0 && <Badge>{t.next}</Badge>}
          {at === 0 && running && !one.steers && <Button little kind="quiet" onClick={() => void attempt(client.cancel(session.id, running))}>{t.now}</Button>}
          <Button little kind="quiet" onClick={() => void takeBack(one)}>{t.back}</Button>
        </li>
      ))}
    </ul>
  );
}
