/** Connection status line. A turn does not need the connection; whether the server itself runs cannot be seen from here. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { useTopics } from "../app/store";
import { Icon, Spinner } from "../ui/components";
import { useTexts } from "../locales/connection.gen";

const RESTORED_SHOWN_FOR = 3000; // milliseconds for which it says that the connection is restored
const GRACE_PERIOD = 700; // milliseconds; a shorter break is not shown

export function ConnectionLine({ session, isRunning }: { session: SessionFollower; isRunning: boolean }) {
  const t = useTexts();
  useTopics(session, "connection");
  const [shown, setShown] = useState<"" | "lost" | "back">("");
  const last = useRef<"" | "lost" | "back">("");
  last.current = shown;
  const { connection } = session;
  useEffect(() => {
    if (connection === "lost") {
      const timer = setTimeout(() => setShown("lost"), GRACE_PERIOD);
      return () => clearTimeout(timer);
    }
    if (connection !== "open" || last.current !== "lost") return;
    setShown("back");
    const timer = setTimeout(() => setShown(""), RESTORED_SHOWN_FOR);
    return () => clearTimeout(timer);
  }, [connection]);
  return (
    <div role="status" aria-live="polite" data-connection={connection}>
      {shown === "lost" && <p class="connection-line"><Spinner />{t.lost} {isRunning && t.goesOn}</p>}
      {shown === "back" && <p class="connection-line back"><Icon name="check" />{t.back}</p>}
    </div>
  );
}
