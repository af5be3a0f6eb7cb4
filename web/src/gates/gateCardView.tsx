/** Gate card: which tool asks and why, exactly what would run, and the answers. */
import { openGates, type GateState, type TurnState } from "@everturn/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { hasRole, me, getSessionFollower, toast } from "../app/app";
import { settings } from "../app/settings";
import { useStore, useTopics } from "../app/store";
import { format } from "../app/texts";
import { GateViewers } from "../app/viewers";
import { diff, isDiff, readDiff } from "../tools/diff";
import { Diff } from "../tools/diffView";
import { useExecutor } from "../tools/executor";
import { Badge, Button, ErrorLine, Disclosure, Icon, type IconName } from "../ui/components";
import { announce } from "./announce";
import { AnsweredGate, actorName } from "./answeredGate";
import { useAnswer, type GateAnswer } from "./useAnswer";
import { AlwaysAllowPanel, DenyPanel, EditPanel, FormPanel, QuestionText, TextPanel } from "./answerPanels";
import { Arguments, TextBlock } from "./visibleText";
import { escapeInvisible } from "./invisibleChars";
import { parseJson } from "./json";
import { actionForKey, isTypingIn, type GateAction } from "./keys";
import { reasonText } from "./reasons";
import { Review } from "./review";
import { useRiskTexts } from "./riskTexts";
import { hintsFor, type Hint } from "./risks";
import { MIN_STILL_MS, useClickGuard } from "./clickGuard";
import { COMPACT_FROM, isBatchable } from "./batch";
import { Expiry, problemText } from "./expiry";
import { focusIfIdle, focusNextGate } from "./focus";
import { GateRow } from "./gateRow";
import { useGateTexts, type GateTexts } from "./texts";
import "./gates.css";

const ICONS: Readonly<Record<string, IconName>> = { call: "lock", egress: "send", loop: "redo", manual: "edit", result: "eye", question: "inbox", form: "inbox", client: "browser", limit: "clock" };

export interface GateCardProps {
  /** The session that shows it; the gate itself names its own session. */
  session: string;
  gateState: GateState;
  title?: string;
  /** It stands in the card of its call, which names the tool. */
  isInCard?: boolean;
  /** Whether it is a row; without, it is one if its step opened several gates side by side. */
  isRow?: boolean;
}

export function GateCardView({ session, gateState, title, isInCard = false, isRow }: GateCardProps) {
  const { gate } = gateState;
  const follower = getSessionFollower(gate.session || session);
  useTopics(follower, `turn:${gate.turn}`);
  useStore(me);
  const turn = follower.state.turns.get(gate.turn);
  const now = turn?.gates.get(gate.id) ?? gateState;
  const isOpen = now.resolution === null && gateState.resolution === null && (!turn?.gates.has(gate.id) || openGates(turn).some((gateState) => gateState.gate.id === gate.id));
  const density = useStore(settings).gates;
  const [isExpanded, setExpanded] = useState(false);
  if (!isOpen) return <ClosedGate gateState={now.resolution ? now : gateState} />;
  const isCompact = density !== "full" && isBatchable(gate) && (isRow ?? countSiblings(turn, now) >= COMPACT_FROM);
  if (!isCompact) return <OpenGate session={session} gateState={now} title={title} isInCard={isInCard} />;
  return (
    <>
      <GateRow session={session} gateState={now} title={title} isNamed={!isInCard} isOpen={isExpanded} onToggle={() => setExpanded(!isExpanded)} />
      {isExpanded && <OpenGate session={session} gateState={now} title={title} isInCard={isInCard} />}
    </>
  );
}

/** The gates that the step of a gate opened for its calls, answered ones included: a row does not turn into a card under the pointer. */
function countSiblings(turn: TurnState | undefined, { gate }: GateState): number {
  const step = turn?.calls.get(gate.call)?.step;
  return [...(turn?.gates.values() ?? [])].filter((sibling) => isBatchable(sibling.gate) && turn!.calls.get(sibling.gate.call)?.step === step).length;
}

function ClosedGate({ gateState }: { gateState: GateState }) {
  return <div class="gate-closed" data-gate={gateState.gate.id}><AnsweredGate gateState={gateState} /></div>;
}

export function gateTitle({ gate }: GateState, t: GateTexts): string {
  const tool = escapeInvisible(gate.tool);
  if (gate.kind === "question") return t.question;
  if (gate.kind === "limit") return t.limit;
  return gate.kind === "result" && gate.failed ? t.failedResult(tool) : t[gate.kind ?? "call"](tool);
}

type Mode = "" | "always" | "deny" | "edit" | "words";

function OpenGate({ session, gateState, title, isInCard }: GateCardProps) {
  const t = useGateTexts();
  const { gate, claim } = gateState;
  const kind = gate.kind ?? "call";
  const card = useRef<HTMLElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const [mode, setMode] = useState<Mode>("");
  const [wasTooEarly, setTooEarly] = useState(false); // a click or key came too early
  const reviewAnswer = useRef<() => GateAnswer>(() => ({ allow: "once" })); // the answer with the redactions of a review
  // If another answer came first, say so even though the card already shows that answer.
  const { status, problem, send } = useAnswer(session, gate, (error) => error.code === "answered_otherwise" && toast(t.answered_otherwise));
  const [isGuardReady, checkReady] = useClickGuard(bar, status === "open");
  const focused = useRef(0); // since when this has the keyboard focus
  const isForMember = kind === "form" || kind === "client" || kind === "limit";
  const isMine = hasRole(isForMember ? "member" : "approver");
  const isRedacted = kind === "result" && !gate.output;
  const canAnswer = isMine && !isRedacted && status === "open";
  const head = gateTitle(gateState, t);
  useEffect(() => announce(gate.id, t.asked(title ? `${escapeInvisible(title)}: ${head}` : head)), [gate.id]);
  useEffect(() => focusIfIdle(card.current), []);
  useEffect(() => {
    if (mode && !bar.current?.contains(document.activeElement)) bar.current?.querySelector<HTMLElement>(".panel :is(input, select, textarea)")?.focus();
  }, [mode]);
  const can = useMemo(() => new Set(canAnswer ? actionsOf(gateState) : []), [canAnswer, gateState]);
  const confirmReady = () => {
    const isReady = checkReady();
    setTooEarly(!isReady);
    return isReady;
  };
  const answer = (answerBody: GateAnswer) => {
    if (canAnswer && confirmReady()) void send(answerBody).then((isTaken) => isTaken && focusNextGate(card.current));
  };
  const act = (action: GateAction) => {
    if (action === "once") answer(reviewAnswer.current());
    else setMode(action);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && mode) {
      event.stopPropagation();
      setMode("");
      return card.current?.focus();
    }
    const action = mode ? null : actionForKey(event, isTypingIn(event.target), can);
    if (!action) return;
    event.preventDefault();
    // The focus moves from one gate to the next: a key pressed twice is meant for the first of them.
    if (performance.now() - focused.current < MIN_STILL_MS) return setTooEarly(true);
    if (!confirmReady()) return;
    event.stopPropagation();
    act(action);
  };
  const panel = { gate, isReady: isGuardReady, onSend: answer, onBack: () => { setMode(""); card.current?.focus(); } };
  return (
    <section class={`gate ${kind}`} ref={card} tabIndex={-1} data-gate={gate.id} data-open data-kind={kind} data-steady={isGuardReady} aria-label={head} onKeyDown={onKeyDown}
      onFocusIn={(event) => { if (!card.current?.contains(event.relatedTarget as Node | null)) focused.current = performance.now(); }}>
      <header class="row wrap">
        <Icon name={ICONS[kind] ?? "lock"} />
        <h3 class="grow">{isInCard && isBatchable(gate) ? <>{kind === "egress" ? t.egressThis : t.callThis}<span class="visually-hidden"> {escapeInvisible(gate.tool)}</span></> : head}</h3>
        <Expiry at={gate.expires ?? 0} t={t} />
      </header>
      <GateContext session={session} gateState={gateState} t={t} />
      <GateArguments session={session} gateState={gateState} t={t} isEditing={mode === "edit"} />
      {claim && claim.until > Date.now() / 1000 && <p class="small">{t.claimed(actorName(claim.by.split("~")[0], t))} <span class="muted">{t.until(format.time(claim.until))}</span></p>}
      {problem && <ErrorLine>{problemText(problem.code, problem.isAway, escapeInvisible(problem.message), t)}</ErrorLine>}
      {!isMine && <p class="small muted not-allowed"><Icon name="lock" /> {isForMember ? t.cannotMember : t.cannot}</p>}
      {isRedacted && <p class="small muted">{t.veiled}</p>}
      {status !== "open" && <p class="small muted" role="status">{status === "sending" ? t.sending : t.sent}</p>}
      <div ref={bar} class="answers">
        {canAnswer && mode === "always" && <AlwaysAllowPanel {...panel} />}
        {canAnswer && mode === "deny" && <DenyPanel {...panel} />}
        {canAnswer && mode === "edit" && <EditPanel {...panel} />}
        {canAnswer && mode === "words" && <TextPanel {...panel} isResult={kind !== "question" && kind !== "form"} />}
        {canAnswer && !isRedacted && kind === "result" && (
          <div hidden={mode !== ""}><Review gate={gate} session={gate.session || session} isReady={isGuardReady} answerRef={reviewAnswer} onSend={answer} onWithhold={() => setMode("deny")} /></div>
        )}
        {canAnswer && kind === "form" && gate.form && <div hidden={mode !== ""}><FormPanel gate={gate} isReady={isGuardReady} onSend={answer} onDeny={() => setMode("deny")} /></div>}
        {canAnswer && mode === "" && kind !== "result" && !(kind === "form" && gate.form) && (
          <AnswerButtons gateState={gateState} t={t} isReady={isGuardReady} can={can} onAct={(action) => confirmReady() && act(action)} onWords={() => confirmReady() && setMode("words")} />
        )}
      </div>
      <GateViewers gate={gate.id} />
      {canAnswer && <p class="small too-early" role="status">{wasTooEarly && t.early}</p>}
    </section>
  );
}

function AnswerButtons({ gateState, t, isReady, can, onAct, onWords }: {
  gateState: GateState; t: GateTexts; isReady: boolean; can: ReadonlySet<GateAction>; onAct: (action: GateAction) => void; onWords: () => void;
}) {
  const kind = gateState.gate.kind ?? "call";
  const isAsking = kind === "question" || kind === "form";
  const isLimit = kind === "limit";
  return (
    <div class="row wrap actions" aria-disabled={!isReady}>
      {kind === "manual" && <Button kind="primary" icon="edit" onClick={onWords}>{t.didIt}</Button>}
      {can.has("once") && <Button kind={kind === "manual" ? undefined : "primary"} icon="check" onClick={() => onAct("once")}>{kind === "manual" ? t.letTool : isLimit ? t.continueTurn : isAsking ? t.yes : t.once} <kbd>Y</kbd></Button>}
      {can.has("always") && <Button onClick={() => onAct("always")}>{t.always} <kbd>A</kbd></Button>}
      {can.has("deny") && <Button kind="danger" icon="close" onClick={() => onAct("deny")}>{isLimit ? t.endTurn : isAsking ? `${t.no} …` : t.deny} <kbd>N</kbd></Button>}
      {can.has("edit") && <Button icon="edit" onClick={() => onAct("edit")}>{t.edit} <kbd>E</kbd></Button>}
      {isAsking && <Button kind="quiet" onClick={onWords}>{t.inWords}</Button>}
      {(kind === "call" || kind === "egress" || kind === "loop") && <Button kind="quiet" onClick={onWords}>{t.didIt}</Button>}
    </div>
  );
}

/** Answers that have a key. */
function actionsOf({ gate }: GateState): GateAction[] {
  const kind = gate.kind ?? "call";
  if (kind === "client" || (kind === "form" && gate.form)) return ["deny"];
  if (kind === "result" || kind === "question" || kind === "form" || kind === "limit") return ["once", "deny"];
  const always: GateAction[] = gate.offers?.length ? ["always"] : [];
  return kind === "manual" ? ["once", "deny"] : ["once", ...always, "deny", "edit"];
}

function GateContext({ session, gateState: { gate }, t }: { session: string; gateState: GateState; t: GateTexts }) {
  const kind = gate.kind ?? "call";
  const executor = useExecutor(gate.tool, "", undefined, getSessionFollower(gate.session || session).state.turns.get(gate.turn));
  const where = kind === "manual" ? t.byYou : gate.call && executor.label ? t.from(executor.label) : "";
  const why = kind === "egress" ? t.egressWhy : kind === "client" ? t.clientWhy : kind === "form" || kind === "question" || kind === "limit" ? "" : gate.why;
  if (kind === "limit") return null; // it is about the turn, and no call
  return (
    <div class="about small">
      {why && <p>{reasonText(why)}</p>}
      <p class="row wrap">
        {where && <Badge icon={kind === "manual" ? "edit" : executor.icon}>{where}</Badge>}
        {executor.effect && <Badge>{executor.effect}</Badge>}
        {gate.session && gate.session !== session && <Badge icon="branch">{t.subagent}</Badge>}
      </p>
    </div>
  );
}

function GateArguments({ session: _, gateState: { gate }, t, isEditing }: { session: string; gateState: GateState; t: GateTexts; isEditing: boolean }) {
  const kind = gate.kind ?? "call";
  const value = useMemo(() => parseJson(gate.arguments), [gate.arguments]);
  const hints = useMemo(() => (kind === "result" || kind === "question" || kind === "form" || kind === "limit" ? [] : hintsFor(gate.tool, value)), [gate, value]);
  if (kind === "limit") return <p>{t.limitAbout((value as { max_steps?: number } | null)?.max_steps ?? 0)}</p>;
  if (kind === "question" || kind === "form") return <QuestionText text={gate.arguments || gate.why || ""} />;
  if (kind === "result")
    return <Disclosure summary={<span class="small">{t.ranWith}</span>}><Arguments text={gate.arguments} tool={gate.tool} /></Disclosure>;
  const edit = isTextEdit(value) && !gate.preview ? diff(value.old_text, value.new_text) : null;
  return (
    <>
      <p class="label">{t.exactly}</p>
      <Arguments text={gate.arguments} tool={gate.tool} />
      <Hints hints={hints} />
      {(gate.preview || edit) && <p class="label">{t.preview}</p>}
      {gate.preview && isEditing && <p class="small warn">{t.previewEdited}</p>}
      {gate.preview ? isDiff(gate.preview) ? <Diff lines={readDiff(gate.preview)} /> : <TextBlock text={gate.preview} /> : edit && <Diff lines={edit} />}
    </>
  );
}

export const isTextEdit = (value: unknown): value is { old_text: string; new_text: string } =>
  typeof value === "object" && value !== null && typeof (value as { old_text?: unknown }).old_text === "string" && typeof (value as { new_text?: unknown }).new_text === "string";

function Hints({ hints }: { hints: readonly Hint[] }) {
  const t = useRiskTexts();
  if (!hints.length) return null;
  return (
    <ul class="hints">
      {hints.map((hint, index) => (
        <li key={index} class={hint.level}>
          <Icon name="alert" />
          <span><b>{t[hint.level]}:</b> <code>{escapeInvisible(hint.code === "lines" ? hint.where : hint.found)}</code> {t[hint.code]}</span>
        </li>
      ))}
      <li class="muted">{t.none}</li>
    </ul>
  );
}
