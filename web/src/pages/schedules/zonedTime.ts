/** Wall-clock times of a time zone, as `datetime-local` fields have them, and seconds since 1970. */

/** The time zone of the browser. */
export const localZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** All time zones that the browser knows. */
export const zones = (): readonly string[] => ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

export function isZone(zone: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

/** `2030-01-15T09:00` in a zone. A time that the clocks skip becomes the one as long after the gap began. */
export function fromWallClock(text: string, zone: string): number {
  const wall = Date.parse(`${text.length === 16 ? `${text}:00` : text}Z`);
  if (Number.isNaN(wall)) return 0;
  let at = wall - offset(wall, zone);
  at = wall - offset(at, zone); // the offset may differ on the other side of a change
  return at / 1000;
}

export function toWallClock(seconds: number, zone: string): string {
  return seconds ? new Date(seconds * 1000 + offset(seconds * 1000, zone)).toISOString().slice(0, 16) : "";
}

/** The difference to UTC at a time, in milliseconds. */
function offset(at: number, zone: string): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: isZone(zone) ? zone : "UTC", hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  }).formatToParts(at);
  const [year, month, day, hour, minute, second] = ["year", "month", "day", "hour", "minute", "second"].map((type) => Number(parts.find((part) => part.type === type)!.value));
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000;
}
