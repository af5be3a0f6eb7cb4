/** How the connection stands. A turn does not need it; whether the server itself runs cannot be seen from here. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { useTopics } from "../app/store";
import { words } from "../app/words";
import { Icon, Spinner } from "../ui/kit";

const useWords = words(
  { lost: "The connection is lost; trying to get it back.", goesOn: "The turn does not need this page: it continues on the server, or as soon as the server is back.", back: "Connected again. Nothing is missing." },
  { lost: "连接已断开，正在重新连接。", goesOn: "这一轮不依赖本页面：它会在服务器上继续，或在服务器恢复后继续。", back: "已重新连接，没有遗漏。" },
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
