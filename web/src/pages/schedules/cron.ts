/** Cron expressions as people say them. What has no common form stays an expression (`null`). */

export type Pattern =
  | { kind: "minutes"; step: number }
  | { kind: "hours"; step: number; minute: number }
  | { kind: "days"; times: readonly Clock[] }
  | { kind: "weekdays"; days: readonly number[]; times: readonly Clock[] } // 0: Sunday
  | { kind: "months"; day: number; times: readonly Clock[] }
  | { kind: "years"; month: number; day: number; times: readonly Clock[] };
export interface Clock { hour: number; minute: number }

const LAST: readonly number[] = [59, 23, 31, 12, 7];

export function parseCron(expression: string): Pattern | null {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  if (day === "*" && month === "*" && weekday === "*" && hour === "*") {
    if (minute === "*") return { kind: "minutes", step: 1 };
    const step = stepOf(minute, 60);
    if (step) return { kind: "minutes", step };
    const [at, ...more] = numbers(minute, 0) ?? [];
    return at === undefined || more.length ? null : { kind: "hours", step: 1, minute: at };
  }
  const minutes = numbers(minute, 0);
  if (minutes?.length !== 1) return null;
  const at = minutes[0]!;
  if (day === "*" && month === "*" && weekday === "*") {
    const step = stepOf(hour, 24);
    if (step) return { kind: "hours", step, minute: at };
  }
  const hours = numbers(hour, 1);
  if (!hours) return null;
  const times = hours.map((value) => ({ hour: value, minute: at }));
  if (day === "*" && month === "*") {
    if (weekday === "*") return { kind: "days", times };
    const days = numbers(weekday, 4)?.map((value) => value % 7);
    return days ? { kind: "weekdays", days: [...new Set(days)].sort((a, b) => a - b), times } : null;
  }
  const days = numbers(day, 2);
  if (weekday !== "*" || days?.length !== 1 || days[0]! < 1) return null;
  if (month === "*") return { kind: "months", day: days[0]!, times };
  const months = numbers(month, 3);
  return months?.length === 1 && months[0]! >= 1 ? { kind: "years", month: months[0]!, day: days[0]!, times } : null;
}

/** `*\/15`, where 15 divides the whole: others are not regular. */
function stepOf(field: string, whole: number): number {
  const step = Number(/^\*\/(\d{1,2})$/.exec(field)?.[1] ?? 0);
  return step > 1 && whole % step === 0 ? step : 0;
}

/** The numbers of a list such as `1-3,5`. */
function numbers(field: string, index: number): number[] | null {
  const found: number[] = [];
  for (const part of field.split(",")) {
    const match = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(part);
    if (!match) return null;
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (from > to || to > LAST[index]!) return null;
    for (let value = from; value <= to; value++) found.push(value);
  }
  return found;
}

export const REPEATS = ["once", "hourly", "daily", "workdays", "weekly", "monthly", "custom"] as const;
export type Repeat = (typeof REPEATS)[number];

/** What the form has instead of an expression. `time` is `HH:MM`; of an hourly schedule, the minutes of it count. */
export interface Plan { repeat: Repeat; time: string; weekday: number; day: number; cron: string }

export function planOf(cron: string): Plan {
  const plan: Plan = { repeat: "custom", time: "09:00", weekday: 1, day: 1, cron };
  const pattern = parseCron(cron);
  if (!pattern || pattern.kind === "minutes" || pattern.kind === "years") return plan;
  if (pattern.kind === "hours") return pattern.step === 1 ? { ...plan, repeat: "hourly", time: clockText({ hour: 0, minute: pattern.minute }) } : plan;
  if (pattern.times.length !== 1) return plan;
  const time = clockText(pattern.times[0]!);
  if (pattern.kind === "days") return { ...plan, repeat: "daily", time };
  if (pattern.kind === "months") return { ...plan, repeat: "monthly", time, day: pattern.day };
  if (pattern.days.join() === "1,2,3,4,5") return { ...plan, repeat: "workdays", time };
  return pattern.days.length === 1 ? { ...plan, repeat: "weekly", time, weekday: pattern.days[0]! } : plan;
}

export function cronOf({ repeat, time, weekday, day, cron }: Plan): string {
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  switch (repeat) {
    case "once": return "";
    case "hourly": return `${minute} * * * *`;
    case "daily": return `${minute} ${hour} * * *`;
    case "workdays": return `${minute} ${hour} * * 1-5`;
    case "weekly": return `${minute} ${hour} * * ${weekday}`;
    case "monthly": return `${minute} ${hour} ${day} * *`;
    case "custom": return cron.trim();
  }
}

const clockText = ({ hour, minute }: Clock) => `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
