/** One schedule: when it runs, its next times and last runs, and what the user may do with it. */
import { useEffect, useState } from "preact/hooks";
import type { ScheduleRunView, ScheduleView, TurnView } from "@everturn/client";
import { attempt, hasRole, me, toast } from "../../app/app";
import { hrefFor } from "../../app/route";
import { useStore } from "../../app/store";
import { format } from "../../app/texts";
import { Badge, Button, Disclosure, type Tone } from "../../ui/components";
import { DeleteButton } from "../admin/page";
import { deleteSchedule, fetchTurn, pauseSchedule, resumeSchedule, runSchedule } from "./api";
import { NextTimes } from "./form";
import { moment, timesInWords } from "./words";
import { useTexts } from "../../locales/schedules.gen";

/** Whether a schedule is the user's own: their message, and their conversations. */
export function isOwn(view: ScheduleView): boolean {
  const user = me.value;
  return user !== null && user !== "anonymous" && view.by === user.user;
}

const isFixed = (view: ScheduleView) => view.origin === "config";
/** Of the user, of the configuration, or of a program: not of another person. */
const isShared = (view: ScheduleView) => !view.by || isFixed(view);

export function ScheduleCard({ view, onEdit, reload }: { view: ScheduleView; onEdit: () => void; reload: () => void }) {
  const t = useTexts();
  useStore(me);
  const [isBusy, setBusy] = useState(false);
  const isReadable = isOwn(view) || isShared(view);
  const mayChange = hasRole("member") && (isOwn(view) || hasRole("owner"));
  const name = view.text.trim().split("\n", 1)[0]?.slice(0, 80) || view.id;
  const act = async (request: Promise<unknown>) => {
    setBusy(true);
    await attempt(request);
    setBusy(false);
    reload();
  };
  const run = async () => {
    setBusy(true);
    const started = await attempt(runSchedule(view.id));
    setBusy(false);
    if (started) toast(started.turn ? t.started : started.problem || t.starting);
    reload();
  };
  return (
    <article aria-label={name}>
      <div class="row wrap">
        <span class="name grow">{isReadable ? <bdi>{name}</bdi> : <code>{view.id}</code>}</span>
        {isFixed(view) && <Badge icon="lock">{t.fixed}</Badge>}
        {view.is_paused ? <Badge tone="warn">{t.paused}</Badge> : view.due ? <Badge tone="good">{t.active}</Badge> : <Badge>{t.finished}</Badge>}
      </div>
      <p>{timesInWords(view, t)} <span class="muted">· {view.timezone}{view.agent && ` · ${view.agent}`}</span></p>
      {!view.is_paused && view.due > 0 && <p class="next"><span class="muted">{t.next}</span> <time dateTime={new Date(view.due * 1000).toISOString()}>{moment(view.due, view.timezone)}</time> <span class="muted">({format.ago(view.due)})</span></p>}
      {!isReadable && <p class="small muted">{t.private}</p>}
      {isReadable && view.text.trim().length > name.length && <pre class="text small" tabIndex={0} dir="auto">{view.text}</pre>}
      <p class="small muted">
        {isFixed(view) ? t.setIn : view.by ? t.createdBy(view.by, format.moment(view.created)) : t.createdAt(format.moment(view.created))} {t.counts(view.started)} {view.missed > 0 && t.missed(view.missed)}
      </p>
      {mayChange && (
        <div class="row wrap">
          {(isOwn(view) || isShared(view)) && <Button icon="send" disabled={isBusy} aria-label={`${t.run}: ${name}`} onClick={() => void run()}>{t.run}</Button>}
          {view.is_paused
            ? <Button icon="redo" disabled={isBusy} aria-label={`${t.resume}: ${name}`} onClick={() => void act(resumeSchedule(view.id))}>{t.resume}</Button>
            : view.due > 0 && <Button icon="stop" disabled={isBusy} aria-label={`${t.pause}: ${name}`} onClick={() => void act(pauseSchedule(view.id))}>{t.pause}</Button>}
          {isReadable && !isFixed(view) && <Button icon="edit" aria-label={`${t.edit}: ${name}`} onClick={onEdit}>{t.edit}</Button>}
          {!isFixed(view) && <DeleteButton name={name} label={t.remove} what={t.removeWhat} onDelete={() => deleteSchedule(view.id)} onDone={reload} />}
        </div>
      )}
      <Disclosure summary={<span>{t.details(view.runs.length)}</span>}>
        <div class="details">
          {view.cron && !view.is_paused && hasRole("member") && <NextTimes cron={view.cron} zone={view.timezone} until={view.until} isBare />}
          {view.cron && <p class="small muted"><code>{view.cron}</code> · {t.ifMissed(view.catch_up === "skip" ? t.catchUpSkip : view.catch_up === "all" ? t.catchUpAll(view.max_catch_up) : t.catchUpOnce)}</p>}
          <Runs view={view} isReadable={isOwn(view)} />
        </div>
      </Disclosure>
    </article>
  );
}

const SHOWN = 5; // runs whose turn is asked for at first

function Runs({ view, isReadable }: { view: ScheduleView; isReadable: boolean }) {
  const t = useTexts();
  const [most, setMost] = useState(SHOWN);
  if (!view.runs.length) return <p class="small muted">{t.noRuns}</p>;
  return (
    <>
      <h3 class="small">{t.lastRuns}</h3>
      <ul class="runs">{view.runs.slice(0, most).map((run) => <Run key={run.planned} run={run} zone={view.timezone} isReadable={isReadable} />)}</ul>
      {view.runs.length > most && <div class="row"><Button little onClick={() => setMost(view.runs.length)}>{t.allRuns(view.runs.length)}</Button></div>}
    </>
  );
}

function Run({ run, zone, isReadable }: { run: ScheduleRunView; zone: string; isReadable: boolean }) {
  const t = useTexts();
  const [turn, setTurn] = useState<TurnView | "gone" | null>(null);
  const isAsked = isReadable && run.turn !== "";
  const isRunning = isAsked && (turn === null || (turn !== "gone" && phaseOf(turn) === "running"));
  useEffect(() => {
    if (!isRunning) return;
    let timer = 0;
    let isCurrent = true;
    const ask = () => fetchTurn(run.session, run.turn).then(
      (found) => { if (isCurrent) { setTurn(found); timer = window.setTimeout(() => void ask(), 2000); } },
      () => { if (isCurrent) setTurn("gone"); },
    );
    void ask();
    return () => { isCurrent = false; clearTimeout(timer); };
  }, [isRunning, run.session, run.turn]);
  const problem = run.problem || (turn && turn !== "gone" ? turn.problem?.text : "");
  return (
    <li>
      <span class="when">{moment(run.planned, zone)}</span>
      <RunState run={run} turn={turn} />
      {isAsked && (turn === "gone" ? <span class="small muted">{t.erased}</span> : <a href={hrefFor({ page: "session", session: run.session })}>{t.open}</a>)}
      {problem && <span class="small attention problem">{problem}</span>}
    </li>
  );
}

function RunState({ run, turn }: { run: ScheduleRunView; turn: TurnView | "gone" | null }) {
  const t = useTexts();
  if (run.outcome === "skipped") return <Badge>{t.skipped}</Badge>;
  if (run.outcome === "refused") return <Badge tone="bad">{t.refused}</Badge>;
  if (!turn || turn === "gone") return <Badge>{t.wasStarted}</Badge>;
  const [tone, text] = ({
    done: ["good", t.done], failed: ["bad", t.failed], cancelled: [undefined, t.cancelled], waiting: ["warn", t.waits], running: ["accent", t.running],
  } satisfies Record<string, [Tone | undefined, string]>)[phaseOf(turn)] as [Tone | undefined, string];
  return <Badge tone={tone}>{text}</Badge>;
}

function phaseOf({ phase }: TurnView): "done" | "failed" | "cancelled" | "waiting" | "running" {
  if (phase === "completed") return "done";
  if (phase === "error") return "failed";
  return phase === "cancelled" || phase === "waiting" ? phase : "running";
}
