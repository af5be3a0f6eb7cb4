/** Gate row: one of many gates on a line, with its arguments and the two short answers. Opened, it shows the whole card. */
import type { GateState } from "@everturn/client";
import { useMemo, useRef, useState } from "preact/hooks";
import { hasRole, tools } from "../app/app";
import { useStore } from "../app/store";
import { GateViewers } from "../app/viewers";
import { Badge, Button, ErrorLine, Icon } from "../ui/components";
import { argumentLine, rowWarnings } from "./batch";
import { MIN_STILL_MS, useClickGuard } from "./clickGuard";
import { Expiry, problemText } from "./expiry";
import { focusNextGate } from "./focus";
import { escapeInvisible } from "./invisibleChars";
import { actionForKey, isTypingIn, type GateAction } from "./keys";
import { useGateTexts } from "./texts";
import { useAnswer } from "./useAnswer";
import "./gates.css";
import "./batch.css";
import { useTexts } from "../locales/gateBatch.gen";

const KEYS: ReadonlySet<GateAction> = new Set<GateAction>(["once", "deny"]);

/** `isNamed`: nothing beside it names the tool. */
export function GateRow({ session, gateState, title, isNamed, isOpen, onToggle }: {
  session: string; gateState: GateState; title?: string; isNamed: boolean; isOpen: boolean; onToggle: () => void;
}) {
  const [t, g] = [useTexts(), useGateTexts()];
  const { gate } = gateState;
  const row = useRef<HTMLDivElement>(null);
  const focused = useRef(0);
  const [wasTooEarly, setTooEarly] = useState(false);
  const { status, problem, send } = useAnswer(session, gate);
  const canAnswer = hasRole("approver") && status === "open" && !isOpen;
  const [isReady, checkReady] = useClickGuard(row, canAnswer);
  const schema = useStore(tools)?.tools.find((tool) => tool.name === gate.tool)?.schema;
  const { risks, isCut } = useMemo(() => rowWarnings(gate), [gate]);
  const answer = (action: GateAction) => {
    const isNow = checkReady();
    setTooEarly(!isNow);
    if (isNow) void send(action === "once" ? { allow: "once" } : { deny: true }).then((isTaken) => isTaken && focusNextGate(row.current));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const action = canAnswer && event.target === row.current ? actionForKey(event, isTypingIn(event.target), KEYS) : null;
    if (event.target === row.current && event.key === "Enter") return onToggle();
    if (!action) return;
    event.preventDefault();
    if (performance.now() - focused.current < MIN_STILL_MS) return setTooEarly(true);
    event.stopPropagation();
    answer(action);
  };
  const tool = escapeInvisible(gate.tool);
  const label = `${gate.kind === "egress" ? g.egress(tool) : g.call(tool)} ${title ?? ""}`.trim();
  return (
    <div class="gate-row" ref={row} tabIndex={-1} role="group" aria-label={label} data-gate-row={gate.id} data-tool={gate.tool} data-steady={isReady}
      onKeyDown={onKeyDown} onFocusIn={(event) => { if (!row.current?.contains(event.relatedTarget as Node | null)) focused.current = performance.now(); }}>
      <Button kind="quiet" little class="toggle" icon="chevron" aria-expanded={isOpen} aria-label={isOpen ? t.less : t.more} onClick={onToggle} />
      {isNamed && <span class="name">{tool}</span>}
      <span class="line ellipsis grow" dir="auto" onClick={onToggle}>{argumentLine(gate, schema)}</span>
      {title !== undefined && <span class="small muted ellipsis where" dir="auto">{escapeInvisible(title)}</span>}
      {risks > 0 && <Badge tone="bad" icon="alert">{t.risks(risks)}</Badge>}
      {isCut && !isOpen && <span class="small muted cut">{t.cut}</span>}
      <Expiry at={gate.expires ?? 0} t={g} />
      {canAnswer && (
        <span class="row quick">
          <Button little kind="primary" icon="check" aria-disabled={!isReady} onClick={() => answer("once")}>{g.once} <kbd>Y</kbd></Button>
          <Button little kind="danger" icon="close" aria-disabled={!isReady} onClick={() => answer("deny")}>{g.denyNow} <kbd>N</kbd></Button>
        </span>
      )}
      {status !== "open" && <span class="small muted" role="status">{status === "sending" ? g.sending : <><Icon name="check" /> {t.answered}</>}</span>}
      {!isOpen && <GateViewers gate={gate.id} />}
      {problem && <ErrorLine>{problemText(problem.code, problem.isAway, escapeInvisible(problem.message), g)}</ErrorLine>}
      {canAnswer && wasTooEarly && <span class="small too-early" role="status">{g.early}</span>}
    </div>
  );
}
