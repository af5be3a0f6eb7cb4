/** Form of a schedule: its message, agent and times, with the next times as the server computes them. */
import { useEffect, useState } from "preact/hooks";
import type { ScheduleDefinition, ScheduleView } from "@everturn/client";
import { agents, attempt, errorMessage, me } from "../../app/app";
import { useStore } from "../../app/store";
import { sessionTitle } from "../../app/titles";
import { Button, Field } from "../../ui/components";
import { sessions } from "../sessions";
import { useDebounced } from "../useDebounced";
import { createSchedule, planTimes, replaceSchedule } from "./api";
import { cronOf, planOf, REPEATS, type Plan, type Repeat } from "./cron";
import { cronWords, moment, weekdayName } from "./words";
import { fromWallClock, isZone, localZone, toWallClock, zones } from "./zonedTime";
import { useTexts } from "../../locales/schedules.gen";

const DAY = 86_400;
const NEW: Plan = { repeat: "daily", time: "09:00", weekday: 1, day: 1, cron: "0 9 * * *" };

export function ScheduleForm({ view, onDone, onCancel }: { view?: ScheduleView; onDone: () => void; onCancel: () => void }) {
  const t = useTexts();
  const known = useStore(agents)?.agents ?? [];
  const [id, setId] = useState("");
  const [text, setText] = useState(view?.text ?? "");
  const [agent, setAgent] = useState(view?.agent ?? known.find((row) => row.is_default)?.name ?? "");
  const [plan, setPlan] = useState<Plan>(!view ? NEW : view.cron ? planOf(view.cron) : { ...NEW, repeat: "once" });
  const [zone, setZone] = useState(view?.timezone ?? localZone());
  const [at, setAt] = useState(view?.at ? toWallClock(view.at, view.timezone) : toWallClock(Date.now() / 1000 + DAY, zone));
  const [catchUp, setCatchUp] = useState<ScheduleView["catch_up"]>(view?.catch_up ?? "once");
  const [session, setSession] = useState(view?.session ?? "");
  const [isBusy, setBusy] = useState(false);
  const change = (changed: Partial<Plan>) => setPlan({ ...plan, ...changed });
  const cron = cronOf(plan);
  const save = async () => {
    setBusy(true);
    const { max_catch_up, overlap, until, metadata, priority } = view ?? {};
    const definition: ScheduleDefinition = {
      max_catch_up, overlap, until, metadata, priority, text, agent, session, cron, timezone: zone.trim(), catch_up: catchUp, at: plan.repeat === "once" ? fromWallClock(at, zone.trim()) : 0,
    };
    const saved = await attempt(view ? replaceSchedule(view.id, definition) : createSchedule({ ...definition, id: id.trim() }));
    setBusy(false);
    if (saved) onDone();
  };
  return (
    <form class="card editor" aria-label={view ? t.edit : t.create} onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <Field label={t.message} hint={t.messageHint}><textarea class="input" rows={4} dir="auto" required autoFocus maxLength={100_000} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      <div class="fields">
        <Field label={t.repeats}>
          <select class="input" value={plan.repeat} onChange={(event) => change({ repeat: event.currentTarget.value as Repeat, cron: cron || plan.cron })}>
            {REPEATS.map((name) => <option key={name} value={name} selected={name === plan.repeat}>{t[name]}</option>)}
          </select>
        </Field>
        {plan.repeat === "weekly" && (
          <Field label={t.weekday}>
            <select class="input" value={plan.weekday} onChange={(event) => change({ weekday: Number(event.currentTarget.value) })}>
              {[1, 2, 3, 4, 5, 6, 0].map((day) => <option key={day} value={day} selected={day === plan.weekday}>{weekdayName(day)}</option>)}
            </select>
          </Field>
        )}
        {plan.repeat === "monthly" && <Field label={t.dayOfMonth} hint={plan.day > 28 ? t.shortMonths : undefined}><input class="input" type="number" required min={1} max={31} value={plan.day} onInput={(event) => change({ day: Number(event.currentTarget.value) })} /></Field>}
        {plan.repeat === "hourly" && (
          <Field label={t.minute}><input class="input" type="number" required min={0} max={59} value={Number(plan.time.split(":")[1])} onInput={(event) => change({ time: `00:${event.currentTarget.value || 0}` })} /></Field>
        )}
        {(plan.repeat === "daily" || plan.repeat === "workdays" || plan.repeat === "weekly" || plan.repeat === "monthly") && (
          <Field label={t.time}><input class="input" type="time" required value={plan.time} onInput={(event) => change({ time: event.currentTarget.value })} /></Field>
        )}
        {plan.repeat === "custom" && <Field label={t.cron} hint={t.cronHint}><input class="input mono" required maxLength={200} spellcheck={false} value={plan.cron} onInput={(event) => change({ cron: event.currentTarget.value })} /></Field>}
        {plan.repeat === "once" && <Field label={t.at}><input class="input" type="datetime-local" required value={at} onInput={(event) => setAt(event.currentTarget.value)} /></Field>}
        <Field label={t.timezone} hint={isZone(zone.trim()) ? undefined : t.unknownZone}>
          <input class="input" required list="schedule-zones" maxLength={100} spellcheck={false} value={zone} onInput={(event) => setZone(event.currentTarget.value)} />
        </Field>
      </div>
      <datalist id="schedule-zones">{zones().map((name) => <option key={name} value={name} />)}</datalist>
      {cron && isZone(zone.trim()) && <NextTimes cron={cron} zone={zone.trim()} until={view?.until ?? 0} />}
      <div class="fields">
        <Field label={t.agent}>
          <select class="input" value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            {known.map((row) => <option key={row.name} value={row.name} selected={row.name === agent}>{row.name}</option>)}
          </select>
        </Field>
        <ConversationField value={session} onPick={setSession} />
        {plan.repeat !== "once" && (
          <Field label={t.catchUp} hint={t.catchUpHint}>
            <select class="input" value={catchUp} onChange={(event) => setCatchUp(event.currentTarget.value as ScheduleView["catch_up"])}>
              {([["once", t.catchUpOnce], ["skip", t.catchUpSkip], ["all", t.catchUpAll(view?.max_catch_up ?? 10)]] as const).map(([name, label]) => <option key={name} value={name} selected={name === catchUp}>{label}</option>)}
            </select>
          </Field>
        )}
        {!view && <Field label={t.name} hint={t.nameHint}><input class="input" maxLength={64} pattern="[A-Za-z0-9][A-Za-z0-9_\-]*" spellcheck={false} value={id} onInput={(event) => setId(event.currentTarget.value)} /></Field>}
      </div>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy || !text.trim()}>{t.save}</Button>
        <Button onClick={onCancel}>{t.cancel}</Button>
      </div>
    </form>
  );
}

function ConversationField({ value, onPick }: { value: string; onPick: (session: string) => void }) {
  const t = useTexts();
  const user = useStore(me);
  const own = useStore(sessions.visible).filter((row) => !row.by || (user && user !== "anonymous" && row.by === user.user)).slice(0, 50);
  return (
    <Field label={t.conversation}>
      <select class="input" value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        <option value="" selected={!value}>{t.newConversation}</option>
        {value && !own.some((row) => row.id === value) && <option value={value} selected>{value}</option>}
        {own.map((row) => <option key={row.id} value={row.id} selected={row.id === value}>{sessionTitle(row.id, row.title) || row.id}</option>)}
      </select>
    </Field>
  );
}

/** The next times of an expression, in words and as times. */
export function NextTimes({ cron, zone, until, isBare = false }: { cron: string; zone: string; until: number; isBare?: boolean }) {
  const t = useTexts();
  const key = useDebounced(`${cron}\n${zone}`, 300);
  const [times, setTimes] = useState<readonly number[]>([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isCurrent = true;
    const [expression = "", timezone = ""] = key.split("\n");
    planTimes(expression, timezone, until).then(
      (planned) => isCurrent && (setTimes(planned.times), setProblem(planned.problem)),
      (error: unknown) => isCurrent && (setTimes([]), setProblem(errorMessage(error))),
    );
    return () => void (isCurrent = false);
  }, [key, until]);
  const words = isBare ? "" : cronWords(cron, t);
  return (
    <div class="next-times" role={isBare ? undefined : "status"}>
      {words && <p>{words}</p>}
      {problem ? <p class="small attention">{problem}</p> : times.length > 0 && (
        <>
          <p class="small muted">{t.nextTimes(zone)}</p>
          <ul class="small times">{times.map((time) => <li key={time}>{moment(time, zone)}</li>)}</ul>
        </>
      )}
    </div>
  );
}
