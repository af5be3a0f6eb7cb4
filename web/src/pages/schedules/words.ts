/** When a schedule runs, in words and as times of its zone. */
import type { ScheduleView } from "@everturn/client";
import { language } from "../../app/texts";
import { useTexts } from "../../locales/schedules.gen";
import { parseCron, type Clock } from "./cron";
import { isZone } from "./zonedTime";

type Texts = ReturnType<typeof useTexts>;

const locale = () => (language.value === "zh" ? "zh-CN" : "en");
const list = (values: readonly string[]) => new Intl.ListFormat(locale(), { type: "conjunction" }).format(values);
const clock = ({ hour, minute }: Clock) => new Date(Date.UTC(2023, 0, 1, hour, minute)).toLocaleTimeString(locale(), { timeStyle: "short", timeZone: "UTC" });

/** The name of a weekday; 0 is Sunday. */
export const weekdayName = (day: number) => new Date(Date.UTC(2023, 0, 1 + day)).toLocaleDateString(locale(), { weekday: "long", timeZone: "UTC" });

/** A moment, in the time zone of the schedule. */
export function moment(seconds: number, zone: string): string {
  const timeZone = isZone(zone) ? zone : "UTC";
  return new Date(seconds * 1000).toLocaleString(locale(), { weekday: "short", year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZone });
}

/** A cron expression in words; "" if only the expression says it. */
export function cronWords(expression: string, t: Texts): string {
  const pattern = parseCron(expression);
  if (!pattern) return "";
  switch (pattern.kind) {
    case "minutes": return t.everyMinutes(pattern.step);
    case "hours": return pattern.step === 1 ? t.everyHour(pattern.minute) : t.everyHours(pattern.minute, pattern.step);
    case "days": return t.everyDay(list(pattern.times.map(clock)));
    case "weekdays": {
      const times = list(pattern.times.map(clock));
      return pattern.days.join() === "1,2,3,4,5" ? t.everyWorkday(times) : t.everyWeek(list(pattern.days.map(weekdayName)), times);
    }
    case "months": return t.everyMonth(pattern.day, list(pattern.times.map(clock)));
    case "years": {
      const day = new Date(Date.UTC(2024, pattern.month - 1, pattern.day)).toLocaleDateString(locale(), { month: "long", day: "numeric", timeZone: "UTC" });
      return t.everyYear(day, list(pattern.times.map(clock)));
    }
  }
}

/** When a schedule runs: its expression in words, or its one time. */
export function timesInWords(schedule: Pick<ScheduleView, "cron" | "at" | "timezone">, t: Texts): string {
  return schedule.cron ? cronWords(schedule.cron, t) || t.cronTimes(schedule.cron) : t.onceAt(moment(schedule.at, schedule.timezone));
}
