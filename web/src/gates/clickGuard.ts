/** Click guard: blocks clicks on something that has just appeared or moved under the pointer. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

export const MIN_STILL_MS = 400; // milliseconds
const CHECK_INTERVAL = 100;
const MOVE_TOLERANCE = 3; // pixels

export interface Position {
  readonly x: number;
  readonly y: number;
}

/** Tracks since when an element has not moved. */
export class ClickGuard {
  private position: Position | null = null;
  private since: number;

  constructor(now: number) {
    this.since = now;
  }

  /** Update the position; `byUser`: the user moved it, by scrolling. */
  update(position: Position, now: number, byUser = false): void {
    const before = this.position;
    const hasMoved = before !== null && (Math.abs(before.x - position.x) > MOVE_TOLERANCE || Math.abs(before.y - position.y) > MOVE_TOLERANCE);
    this.position = position;
    if (hasMoved && !byUser) this.since = now;
  }

  /** It became visible again. */
  reset(now: number): void {
    this.since = now;
  }

  isReady(now: number): boolean {
    return now - this.since >= MIN_STILL_MS;
  }
}

/** Watch an element while it is `on`: [whether it may be clicked, the same checked right now]. */
export function useClickGuard(ref: RefObject<HTMLElement | null>, on: boolean): [boolean, () => boolean] {
  const [isReady, setReady] = useState(false);
  const guard = useRef<ClickGuard | null>(null);
  const scrolled = useRef(0);
  const checkNow = useCallback(() => {
    const box = ref.current?.getBoundingClientRect();
    const now = performance.now();
    if (!box || !guard.current) return false;
    guard.current.update({ x: box.left, y: box.top }, now, now - scrolled.current < MIN_STILL_MS);
    return guard.current.isReady(now);
  }, [ref]);
  useEffect(() => {
    if (!on) return;
    guard.current = new ClickGuard(performance.now());
    const timer = setInterval(() => document.hidden || setReady(checkNow()), CHECK_INTERVAL);
    const onUserScroll = () => void (scrolled.current = performance.now());
    const onVisible = () => guard.current?.reset(performance.now());
    addEventListener("wheel", onUserScroll, { passive: true });
    addEventListener("touchmove", onUserScroll, { passive: true });
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      clearInterval(timer);
      removeEventListener("wheel", onUserScroll);
      removeEventListener("touchmove", onUserScroll);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [on, checkNow]);
  return [isReady, checkNow];
}
