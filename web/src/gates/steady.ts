/** Whether something has stood still for long enough to be clicked: what moves under a pointer must not be pressed by it. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

export const STILL = 400; // milliseconds
const EVERY = 100;
const NEAR = 3; // pixels

export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Since when something stands where it stands. */
export class Stillness {
  private place: Place | null = null;
  private since: number;

  constructor(now: number) {
    this.since = now;
  }

  /** Say where it is now; `isOwn`: the person has moved it, by scrolling. */
  see(place: Place, now: number, isOwn = false): void {
    const before = this.place;
    const hasMoved = before !== null && (Math.abs(before.x - place.x) > NEAR || Math.abs(before.y - place.y) > NEAR);
    this.place = place;
    if (hasMoved && !isOwn) this.since = now;
  }

  /** It was away, and is seen again. */
  again(now: number): void {
    this.since = now;
  }

  isSteady(now: number): boolean {
    return now - this.since >= STILL;
  }
}

/** Watch an element while it is `on`: [whether it is steady, the same asked at the very moment]. */
export function useSteady(ref: RefObject<HTMLElement | null>, on: boolean): [boolean, () => boolean] {
  const [isSteady, setSteady] = useState(false);
  const still = useRef<Stillness | null>(null);
  const scrolled = useRef(0);
  const look = useCallback(() => {
    const box = ref.current?.getBoundingClientRect();
    const now = performance.now();
    if (!box || !still.current) return false;
    still.current.see({ x: box.left, y: box.top }, now, now - scrolled.current < STILL);
    return still.current.isSteady(now);
  }, [ref]);
  useEffect(() => {
    if (!on) return;
    still.current = new Stillness(performance.now());
    const timer = setInterval(() => document.hidden || setSteady(look()), EVERY);
    const own = () => void (scrolled.current = performance.now());
    const seen = () => still.current?.again(performance.now());
    addEventListener("wheel", own, { passive: true });
    addEventListener("touchmove", own, { passive: true });
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      removeEventListener("wheel", own);
      removeEventListener("touchmove", own);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [on, look]);
  return [isSteady, look];
}
