/** How the connection stands. A turn does not need it: it goes on without anybody who looks. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { useTopics } from "../app/store";
import { words } from "../app/words";
import { Icon, Spinner } from "../ui/kit";

const useWords = words(
  { lost: "The connection is lost; trying to get it back.", goesOn: "The turn goes on meanwhile.", back: "Connected again. Nothing is missing." },
  { lost: "连接已断开，正在重新连接。", goesOn: "这一轮仍在继续。", back: "已重新连接，没有遗漏。" },
);

const SHOWN = 3000; // milliseconds for which it says that it is back
const GRACE = 700; // a break shorter than this is nobody's concern

export function ConnectionLine({ session, isRunning }: { session: SessionFollower; isRunning: boolean }) {
  const t = useWords();
  useTopics(session, "connection");
  const [shown, setShown] = useState<"" | "lost" | "back">("");
  const last = useRef<"" | "lost" | "back">("");
  last.current = shown;
  const { connection } = session;
  useEffect(() => {
    if (connection === "lost") {
      const timer = setTimeout(() => setShown("lost"), GRACE);
      return () => clearTimeout(timer);
    }
    if (connection !== "open" || last.current !== "lost") return;
    setShown("back");
    const timer = setTimeout(() => setShown(""), SHOWN);
    return () => clearTimeout(timer);
  }, [connection]);
  return (
    <div role="status" aria-live="polite" data-connection={connection}>
      {shown === "lost" && <p class="connection-line"><Spinner />{t.lost} {isRunning && t.goesOn}</p>}
      {shown === "back" && <p class="connection-line back"><Icon name="check" />{t.back}</p>}
    </div>
  );
}
