/** A gate as a card: what asks and why, the very bytes that would run, and the answers. The last word is the person's. */
import { openGates, type GateState } from "@everturn/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { may, me, sessionOf, toast } from "../app/app";
import { useStore, useTopics } from "../app/store";
import { say } from "../app/words";
import { diff, isDiff, readDiff } from "../tools/diff";
import { Diff } from "../tools/diffview";
import { useExecutor } from "../tools/executor";
import { Badge, Button, ErrorLine, Fold, Icon, type IconName } from "../ui/kit";
import { announce } from "./announce";
import { AnsweredGate, whoIs } from "./answered";
import { useAnswering, type Said } from "./answering";
import { Always, Deny, Edit, Fill, Question, Words } from "./answers";
import { Arguments, Block } from "./exact";
import type { GateProps } from "./gate";
import { plain } from "./hidden";
import { parse } from "./json";
import { actionOf, isTypingIn, type GateAction } from "./keys";
import { sayWhy } from "./reasons";
import { Review } from "./review";
import { useRiskWords } from "./risk-words";
import { hintsFor, type Hint } from "./risks";
import { STILL, useSteady } from "./steady";
import { useGateWords, type GateWords } from "./words";
import "./gates.css";

const ICONS: Readonly<Record<string, IconName>> = { call: "lock", egress: "send", loop: "redo", hand: "edit", result: "eye", question: "inbox", form: "inbox", client: "browser" };

export function AskedGate({ session, asked, title }: GateProps) {
  const { gate } = asked;
  const follower = sessionOf(gate.session || session);
  useTopics(follower, `turn:${gate.turn}`);
  useStore(me);
  const turn = follower.state.turns.get(gate.turn);
  const now = turn?.gates.get(gate.id) ?? asked;
  const isOpen = now.verdict === null && asked.verdict === null && (!turn?.gates.has(gate.id) || openGates(turn).some((one) => one.gate.id === gate.id));
  return isOpen ? <OpenGate session={session} asked={now} title={title} /> : <ClosedGate asked={now.verdict ? now : asked} />;
}

function ClosedGate({ asked }: { asked: GateState }) {
  return <div class="gate-closed" data-gate={asked.gate.id}><AnsweredGate asked={asked} /></div>;
}

export function headOf({ gate }: GateState, t: GateWords): string {
  const tool = plain(gate.tool);
  return gate.kind === "result" && gate.failed ? t.failedResult(tool) : t[gate.kind ?? "call"](tool);
}

type Mode = "" | "always" | "deny" | "edit" | "words";

function OpenGate({ session, asked, title }: GateProps) {
  const t = useGateWords();
  const { gate, claim } = asked;
  const kind = gate.kind ?? "call";
  const card = useRef<HTMLElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const [mode, setMode] = useState<Mode>("");
  const [isEarly, setEarly] = useState(false); // something was pressed before it could be meant for this
  const reviewed = useRef<() => Said>(() => ({ allow: "once" })); // with what was taken out of a result
  // Who loses a race is told so even though the card shows the other answer by then.
  const { standing, problem, send } = useAnswering(session, gate, (error) => error.code === "answered_otherwise" && toast(t.answered_otherwise));
  const [isSteady, look] = useSteady(bar, standing === "open");
  const focused = useRef(0); // since when keys come here
  const isForMember = kind === "form" || kind === "client";
  const isMine = may(isForMember ? "member" : "approver");
  const isVeiled = kind === "result" && !gate.output;
  const canAnswer = isMine && !isVeiled && standing === "open";
  const head = headOf(asked, t);
  useEffect(() => announce(gate.id, t.asked(title ? `${plain(title)}: ${head}` : head)), [gate.id]);
  useEffect(() => offerFocus(card.current), []);
  useEffect(() => {
    if (mode && !bar.current?.contains(document.activeElement)) bar.current?.querySelector<HTMLElement>(".panel :is(input, select, textarea)")?.focus();
  }, [mode]);
  const can = useMemo(() => new Set(canAnswer ? actionsOf(asked) : []), [canAnswer, asked]);
  const isMeant = () => {
    const isSo = look();
    setEarly(!isSo);
    return isSo;
  };
  const answer = (said: Said) => {
    if (canAnswer && isMeant()) void send(said).then((isTaken) => isTaken && nextGate(card.current));
  };
  const act = (action: GateAction) => {
    if (action === "once") answer(reviewed.current());
    else setMode(action);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && mode) {
      event.stopPropagation();
      setMode("");
      return card.current?.focus();
    }
    const action = mode ? null : actionOf(event, isTypingIn(event.target), can);
    if (!action) return;
    event.preventDefault();
    // The focus goes from one question to the next: a key that was pressed twice is meant for the first of them.
    if (performance.now() - focused.current < STILL) return setEarly(true);
    if (!isMeant()) return;
    event.stopPropagation();
    act(action);
  };
  const panel = { gate, isReady: isSteady, onSend: answer, onBack: () => { setMode(""); card.current?.focus(); } };
  return (
    <section class={`gate ${kind}`} ref={card} tabIndex={-1} data-gate={gate.id} data-open data-kind={kind} data-steady={isSteady} aria-label={head} onKeyDown={onKeyDown}
      onFocusIn={(event) => { if (!card.current?.contains(event.relatedTarget as Node | null)) focused.current = performance.now(); }}>
      <header class="row wrap">
        <Icon name={ICONS[kind] ?? "lock"} />
        <h3 class="grow">{head}</h3>
        <Expiry at={gate.expires ?? 0} t={t} />
      </header>
      <About session={session} asked={asked} t={t} />
      <What session={session} asked={asked} t={t} isEditing={mode === "edit"} />
      {claim && claim.until > Date.now() / 1000 && <p class="small">{t.claimed(whoIs(claim.by.split("~")[0], t))} <span class="muted">{t.until(say.time(claim.until))}</span></p>}
      {problem && <ErrorLine>{sayProblem(problem.code, problem.isAway, problem.message, t)}</ErrorLine>}
      {!isMine && <p class="small muted cannot"><Icon name="lock" /> {isForMember ? t.cannotMember : t.cannot}</p>}
      {isVeiled && <p class="small muted">{t.veiled}</p>}
      {standing !== "open" && <p class="small muted" role="status">{standing === "sending" ? t.sending : t.sent}</p>}
      <div ref={bar} class="answers">
        {canAnswer && mode === "always" && <Always {...panel} />}
        {canAnswer && mode === "deny" && <Deny {...panel} />}
        {canAnswer && mode === "edit" && <Edit {...panel} />}
        {canAnswer && mode === "words" && <Words {...panel} isResult={kind !== "question" && kind !== "form"} />}
        {canAnswer && !isVeiled && kind === "result" && (
          <div hidden={mode !== ""}><Review gate={gate} session={gate.session || session} isReady={isSteady} said={reviewed} onSend={answer} onWithhold={() => setMode("deny")} /></div>
        )}
        {canAnswer && kind === "form" && gate.form && <div hidden={mode !== ""}><Fill gate={gate} isReady={isSteady} onSend={answer} onDeny={() => setMode("deny")} /></div>}
        {canAnswer && mode === "" && kind !== "result" && !(kind === "form" && gate.form) && (
          <Buttons asked={asked} t={t} isReady={isSteady} can={can} onAct={(action) => isMeant() && act(action)} onWords={() => isMeant() && setMode("words")} />
        )}
      </div>
      {canAnswer && <p class="small early" role="status">{isEarly && t.early}</p>}
    </section>
  );
}

function Buttons({ asked, t, isReady, can, onAct, onWords }: {
  asked: GateState; t: GateWords; isReady: boolean; can: ReadonlySet<GateAction>; onAct: (action: GateAction) => void; onWords: () => void;
}) {
  const kind = asked.gate.kind ?? "call";
  const isAsking = kind === "question" || kind === "form";
  return (
    <div class="row wrap actions" aria-disabled={!isReady}>
      {kind === "hand" && <Button kind="primary" icon="edit" onClick={onWords}>{t.hand2}</Button>}
      {can.has("once") && <Button kind={kind === "hand" ? undefined : "primary"} icon="check" onClick={() => onAct("once")}>{kind === "hand" ? t.letTool : isAsking ? t.yes : t.once} <kbd>Y</kbd></Button>}
      {can.has("always") && <Button onClick={() => onAct("always")}>{t.always} <kbd>A</kbd></Button>}
      {can.has("deny") && <Button kind="danger" icon="close" onClick={() => onAct("deny")}>{isAsking ? `${t.no} …` : t.deny} <kbd>N</kbd></Button>}
      {can.has("edit") && <Button icon="edit" onClick={() => onAct("edit")}>{t.edit} <kbd>E</kbd></Button>}
      {isAsking && <Button kind="quiet" onClick={onWords}>{t.inWords}</Button>}
      {(kind === "call" || kind === "egress" || kind === "loop") && <Button kind="quiet" onClick={onWords}>{t.hand2}</Button>}
    </div>
  );
}

/** What can be said with one key. */
function actionsOf({ gate }: GateState): GateAction[] {
  const kind = gate.kind ?? "call";
  if (kind === "client" || (kind === "form" && gate.form)) return ["deny"];
  if (kind === "result" || kind === "question" || kind === "form") return ["once", "deny"];
  const always: GateAction[] = gate.offers?.length ? ["always"] : [];
  return kind === "hand" ? ["once", "deny"] : ["once", ...always, "deny", "edit"];
}

function About({ session, asked: { gate }, t }: { session: string; asked: GateState; t: GateWords }) {
  const kind = gate.kind ?? "call";
  const executor = useExecutor(gate.tool, "", "", sessionOf(gate.session || session).state.turns.get(gate.turn));
  const where = kind === "hand" ? t.byYou : kind !== "question" && executor.label ? t.from(executor.label) : "";
  const why = kind === "egress" ? t.egressWhy : kind === "client" ? t.clientWhy : kind === "form" || kind === "question" ? "" : gate.why;
  return (
    <div class="about small">
      {why && <p>{sayWhy(why)}</p>}
      <p class="row wrap">
        {where && <Badge icon={kind === "hand" ? "edit" : executor.icon}>{where}</Badge>}
        {executor.effects && <Badge>{executor.effects}</Badge>}
        {gate.session && gate.session !== session && <Badge icon="branch">{t.below}</Badge>}
      </p>
    </div>
  );
}

function What({ session: _, asked: { gate }, t, isEditing }: { session: string; asked: GateState; t: GateWords; isEditing: boolean }) {
  const kind = gate.kind ?? "call";
  const value = useMemo(() => parse(gate.arguments), [gate.arguments]);
  const hints = useMemo(() => (kind === "result" || kind === "question" || kind === "form" ? [] : hintsFor(gate.tool, value)), [gate, value]);
  if (kind === "question" || kind === "form") return <Question text={gate.arguments || gate.why || ""} />;
  if (kind === "result")
    return <Fold summary={<span class="small">{t.ranWith}</span>}><Arguments text={gate.arguments} /></Fold>;
  const edit = isEdit(value) && !gate.preview ? diff(value.old_text, value.new_text) : null;
  return (
    <>
      <p class="label">{t.exactly}</p>
      <Arguments text={gate.arguments} />
      <Hints hints={hints} />
      {(gate.preview || edit) && <p class="label">{t.preview}</p>}
      {gate.preview && isEditing && <p class="small warn">{t.previewEdited}</p>}
      {gate.preview ? isDiff(gate.preview) ? <Diff lines={readDiff(gate.preview)} /> : <Block text={gate.preview} /> : edit && <Diff lines={edit} />}
    </>
  );
}

export const isEdit = (value: unknown): value is { old_text: string; new_text: string } =>
  typeof value === "object" && value !== null && typeof (value as { old_text?: unknown }).old_text === "string" && typeof (value as { new_text?: unknown }).new_text === "string";

function Hints({ hints }: { hints: readonly Hint[] }) {
  const t = useRiskWords();
  if (!hints.length) return null;
  return (
    <ul class="hints">
      {hints.map((hint, at) => (
        <li key={at} class={hint.level}>
          <Icon name="alert" />
          <span><b>{t[hint.level]}:</b> <code>{plain(hint.code === "lines" ? hint.where : hint.found)}</code> {t[hint.code]}</span>
        </li>
      ))}
      <li class="muted">{t.none}</li>
    </ul>
  );
}

/** How long is left: in minutes from afar, in seconds at the end. */
function Expiry({ at, t }: { at: number; t: GateWords }) {
  const [, tick] = useState(0);
  const left = at - Date.now() / 1000;
  useEffect(() => {
    if (!at || left < -5) return;
    const timer = setTimeout(() => tick((count) => count + 1), left < 300 ? 1000 : 30_000);
    return () => clearTimeout(timer);
  });
  if (!at || left > 30 * 86_400) return null;
  const text = left <= 0 ? t.expired : t.expires(left < 7200 ? say.seconds(Math.ceil(left)) : `${Math.round(left / 3600)} h`);
  return <Badge tone={left < 60 ? "bad" : left < 600 ? "warn" : undefined} icon="clock" title={say.moment(at)}>{text}</Badge>;
}

function sayProblem(code: string, isAway: boolean, text: string, t: GateWords): string {
  switch (code) {
    case "answered_otherwise":
    case "gate_closed":
    case "gate_expired":
    case "unknown_gate":
    case "hash_mismatch":
      return t[code];
    default:
      return isAway ? t.away : t.other(plain(text));
  }
}

/** The focus goes to a question only from nowhere: who writes goes on writing. */
function offerFocus(card: HTMLElement | null): void {
  const at = document.activeElement;
  if (card && (!at || at === document.body || at.id === "main")) card.focus({ preventScroll: true });
}

/** After an answer: to the next question, if there is one. */
function nextGate(from: HTMLElement | null): void {
  if (!from?.contains(document.activeElement) && document.activeElement !== document.body) return;
  const all = [...document.querySelectorAll<HTMLElement>(".gate[data-open]")];
  const next = all[all.indexOf(from!) + 1] ?? all.find((one) => one !== from);
  (next ?? document.getElementById("main"))?.focus();
}

