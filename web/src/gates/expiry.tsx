/** Time left to answer a gate: in minutes first, in seconds at the end. */
import { useEffect, useState } from "preact/hooks";
import { format } from "../app/texts";
import { Badge } from "../ui/components";
import type { GateTexts } from "./texts";

export function Expiry({ at, t }: { at: number; t: GateTexts }) {
  const [, tick] = useState(0);
  const left = at - Date.now() / 1000;
  useEffect(() => {
    if (!at || left < -5) return;
    const timer = setTimeout(() => tick((count) => count + 1), left < 300 ? 1000 : 30_000);
    return () => clearTimeout(timer);
  });
  if (!at || left > 30 * 86_400) return null;
  const text = left <= 0 ? t.expired : t.expires(left < 7200 ? format.seconds(Math.ceil(left)) : `${Math.round(left / 3600)} h`);
  return <Badge tone={left < 60 ? "bad" : left < 600 ? "warn" : undefined} icon="clock" title={format.moment(at)}>{text}</Badge>;
}

export function problemText(code: string, isUnreachable: boolean, text: string, t: GateTexts): string {
  switch (code) {
    case "answered_otherwise":
    case "gate_closed":
    case "gate_expired":
    case "unknown_gate":
    case "hash_mismatch":
      return t[code];
    default:
      return isUnreachable ? t.away : t.other(text);
  }
}
