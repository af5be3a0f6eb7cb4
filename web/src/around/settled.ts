import { useEffect, useState } from "preact/hooks";

/** A value that follows another once that is quiet. */
export function useSettled<T>(value: T, milliseconds = 200): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
