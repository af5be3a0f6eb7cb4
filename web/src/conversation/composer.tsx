/** Composer: the message box with its attachments, and the stop button. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { newKey, textOf, type Message, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client } from "../app/app";
import { lazy } from "../app/lazy";
import { navigate } from "../app/route";
import { AgentPicker } from "../pages/pickers";
import { Button, Menu, Spinner } from "../ui/components";
import { comparedModels, setComparedModels } from "./comparedModels";
import { ComparedLine, CompareButton } from "./compareModels";
import { AttachmentList } from "./attachmentList";
import { saveDraft, readDraft, type Draft } from "./drafts";
import { usePageDrop } from "./dropZone";
import { ParametersButton } from "./parametersButton";
import type { DictateProps } from "../audio/dictateButton";
import { fetchAudio } from "../audio/server";
import { Queue } from "./queue";
import { COMPACT, compactFocus, useSend } from "./send";
import { useUploads } from "./uploads";
import "./composer.css";
import { useTexts } from "../locales/composer.gen";

export const ContextGauge = lazy(async () => (await import("./contextGauge")).ContextGauge, true);

/** It is fetched only from a server that transcribes; without an answer of the server, the next composer asks again. */
const DictateButton = lazy<DictateProps>(async () => {
  const audio = await fetchAudio();
  if (!audio) throw new Error("audio");
  return audio.transcription ? (await import("../audio/dictateButton")).DictateButton : () => null;
}, true);

const PromptPicker = lazy(async () => (await import("./promptPicker")).PromptPicker, true);

interface Props {
  session?: SessionFollower;
  running?: TurnState;
  /** The turns that the stop button stops: those of a comparison run side by side. */
  stoppable?: readonly string[];
  /** The message that is edited: sending makes a new version of it. */
  edited?: Message;
  onDone?: () => void;
  /** ↑ in an empty box. */
  onUp?: () => void;
  /** A suggested text; each new object is put into the box. */
  suggested?: { readonly text: string } | null;
  /** The new conversation is in no list, and is erased after a day. */
  isTemporary?: boolean;
}

const EMPTY_DRAFT: Draft = { text: "", files: [] };

export function Composer({ session, running, stoppable, edited, onDone, onUp, suggested, isTemporary = false }: Props) {
  const t = useTexts();
  const draftKey = session?.id ?? "";
  const [first] = useState(() => (edited ? { ...EMPTY_DRAFT, text: textOf(edited.parts) } : readDraft(draftKey)));
  const [text, setText] = useState(first.text);
  const [sent, setSent] = useState(0);
  const uploads = useUploads(first.files);
  const isOver = usePageDrop(edited !== undefined, uploads.add);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const sending = useSend(session, edited, first.pending ?? null, (done) => {
    setSent((count) => count + 1);
    if (edited) return onDone?.();
    saveDraft(draftKey, EMPTY_DRAFT);
    if (!session) navigate({ page: "session", session: done.session });
  }, t.unknown);
  useAutoGrow(box, text);
  useEditedFiles(session, edited, uploads.add);
  // Before paint: a page that is closed right after a key press has saved the draft.
  useLayoutEffect(() => {
    if (!edited) saveDraft(draftKey, { text, files: uploads.files, ...(sending.pending && { pending: sending.pending }) });
  }, [text, uploads.files.length, sending.pending]);
  useEffect(() => {
    if (!suggested) return;
    setText(suggested.text);
    box.current?.focus();
  }, [suggested]);
  useEffect(() => {
    // A phone would open its keyboard over half of the screen.
    if (edited || matchMedia("(pointer: fine)").matches) box.current?.focus({ preventScroll: true });
  }, []);

  const isReady = (text.trim() !== "" || uploads.files.length > 0) && !uploads.isBusy && (!sending.pending || sending.problem !== "");
  const send = (busy: "queue" | "steer" = "queue") => {
    if (!isReady || sending.pending) return;
    const models = edited ? undefined : comparedModels.value.get(draftKey);
    sending.send({ key: newKey(), text: text.trim(), files: uploads.files, busy: models ? "queue" : busy, ...(models && { models }), ...(isTemporary && { temporary: true }) });
    if (edited) return;
    setComparedModels(draftKey, []);
    setText("");
    uploads.set([]);
  };
  const isPrefix = text.startsWith("/") && COMPACT.startsWith(text);
  const hasHint = session !== undefined && !edited && (isPrefix || compactFocus(text) !== null);
  const insert = (inserted: string) => {
    setText(inserted);
    box.current?.focus();
  };
  const insertDictated = (heard: string) => {
    setText((now) => (now && !/\s$/.test(now) ? `${now} ${heard}` : now + heard));
    box.current?.focus();
  };
  const complete = () => insert(`${COMPACT} `);
  const takeBack = () => {
    const back = sending.discard();
    if (!back || edited) return;
    if (back.models) setComparedModels(draftKey, back.models);
    setText((now) => [back.text, now].filter(Boolean).join("\n\n"));
    uploads.set([...back.files, ...uploads.files]);
    box.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // An Enter that ends an IME composition is not ours; Safari reports it by the key code only.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      send(event.ctrlKey || event.metaKey ? (running ? "steer" : "queue") : "queue");
    } else if (event.key === "Tab" && !event.shiftKey && hasHint && isPrefix) {
      event.preventDefault();
      complete();
    } else if (event.key === "ArrowUp" && !text && onUp) {
      event.preventDefault();
      onUp();
    } else if (event.key === "Escape" && edited) {
      event.preventDefault();
      event.stopPropagation();
      onDone?.();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    uploads.add(event.clipboardData.files);
  };
  return (
    <form class={`composer ${edited ? "edits" : ""} ${running ? "runs" : ""} ${isOver ? "over" : ""}`} onSubmit={(event) => { event.preventDefault(); send(); }}>
      {isOver && <div class="drop-overlay" aria-hidden="true"><span>{t.drop}</span></div>}
      {session && !edited && <Queue session={session} running={running?.id} sent={sent} onBack={(back) => setText((now) => [now, back].filter(Boolean).join("\n\n"))} />}
      {sending.pending && !edited && <UnsentMessage text={sending.pending.text} problem={sending.problem} onRetry={sending.retry} onBack={takeBack} />}
      {sending.problem && edited && <p class="error-line" role="alert">{t.failed} {sending.problem}</p>}
      {hasHint && (
        <p class="slash-hint small muted" id="slash-hint" role="status">
          <span><code>{COMPACT} [{t.keep}]</code> {t.compact}</span>
          {isPrefix && <Button little kind="quiet" onClick={complete}>{t.complete} <kbd>Tab</kbd></Button>}
        </p>
      )}
      {!edited && /^\/\S*$/.test(text) && <PromptPicker typed={text} isCommand={hasHint} onPick={insert} />}
      <div class="box">
        <AttachmentList uploads={uploads} />
        {!edited && <ComparedLine session={session?.id} />}
        <textarea class="composer-text" ref={box} rows={1} dir="auto" value={text} aria-label={edited ? t.edit : t.ask} aria-describedby={hasHint ? "slash-hint" : undefined}
          placeholder={isOver ? t.drop : running ? t.more : t.ask} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} onPaste={onPaste} />
        <div class="tools">
          <input type="file" multiple hidden ref={picker} onChange={(event) => { uploads.add(event.currentTarget.files ?? []); event.currentTarget.value = ""; }} />
          <Button kind="quiet" little icon="attach" aria-label={t.attach} onClick={() => picker.current?.click()} />
          <DictateButton session={session?.id} onText={insertDictated} />
          {!edited && <ParametersButton session={session?.id} />}
          {!edited && !running && <CompareButton session={session?.id} />}
          <div class="grow choice">{!edited && <AgentPicker session={session?.id} />}</div>
          {session && !edited && <ContextGauge session={session} />}
          {edited && <Button little kind="quiet" onClick={() => onDone?.()}>{t.cancel}</Button>}
          {running && session && !edited && <StopButton session={session.id} turns={stoppable ?? [running.id]} />}
          {running && !edited && text.trim() && <Button little disabled={!isReady || !!sending.pending} title={t.steerTitle} onClick={() => send("steer")}>{t.steer}</Button>}
          <Button type="submit" kind="primary" little icon={sending.pending && !sending.problem ? undefined : "send"} disabled={!isReady || (!!sending.pending && !edited)}
            aria-label={edited ? t.save : running ? t.queue : t.send} title={edited ? t.save : running ? t.queue : t.send}
            onClick={edited && sending.pending ? (event) => { event.preventDefault(); sending.retry(); } : undefined}>
            {sending.pending && !sending.problem ? <Spinner label={t.sending} /> : null}
          </Button>
        </div>
      </div>
    </form>
  );
}

function UnsentMessage({ text, problem, onRetry, onBack }: { text: string; problem: string; onRetry: () => void; onBack: () => void }) {
  const t = useTexts();
  return (
    <div class={`unsent ${problem ? "bad" : ""}`} role={problem ? "alert" : "status"}>
      {!problem && <Spinner />}
      <span class="grow">
        <span class="ellipsis" dir="auto">{text}</span>
        <span class="small">{problem ? `${t.failed} ${problem}` : t.sending}</span>
      </span>
      {problem && <Button little onClick={onRetry}>{t.again}</Button>}
      {problem && <Button little kind="quiet" onClick={onBack}>{t.back}</Button>}
    </div>
  );
}

function StopButton({ session, turns }: { session: string; turns: readonly string[] }) {
  const t = useTexts();
  const turn = turns.join();
  const [stoppingTurn, setStoppingTurn] = useState("");
  const stop = async (hard: boolean) => {
    setStoppingTurn(turn);
    const cancelled = Promise.all(turns.map((each) => client.cancel(session, each, { hard }))).then(() => true);
    if ((await attempt(cancelled)) === undefined) setStoppingTurn("");
  };
  return (
    <div class="stop">
      <Button little icon="stop" disabled={stoppingTurn === turn} title={t.stopTitle} onClick={() => void stop(false)}>{t.stop}</Button>
      <Menu up end button={{ icon: "more", label: t.stopMore }} items={[{ label: t.hard, icon: "stop", onSelect: () => void stop(true) }]} />
    </div>
  );
}

const MAX_HEIGHT = 320;

function useAutoGrow(box: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, MAX_HEIGHT)}px`;
  }, [text]);
}

/** The files of the edited message belong to the new version as well: they are uploaded again. */
function useEditedFiles(session: SessionFollower | undefined, edited: Message | undefined, add: (files: Iterable<File>) => void): void {
  useEffect(() => {
    for (const part of edited?.parts ?? []) {
      if (part.type !== "file" || !session) continue;
      void attempt(client.blob(session.id, part.blob)).then((bytes) => bytes && add([new File([bytes], part.name ?? "", { type: part.media_type })]));
    }
  }, []);
}
