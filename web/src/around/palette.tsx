/** Ctrl-K (or Cmd-K): everything by name. What it needs is fetched when it is first opened. */
import { useEffect } from "preact/hooks";
import { Store, useStore } from "../app/store";
import { lazy } from "../app/lazy";

const isOpen = new Store(false);

export const openPalette = () => isOpen.set(true);

const Commands = lazy(async () => (await import("./commands")).Commands);

export function Palette() {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isIt = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (!isIt || event.isComposing) return;
      event.preventDefault();
      if (isOpen.value) isOpen.set(false);
      else if (!document.querySelector("dialog[open]")) isOpen.set(true); // a question that is asked comes first
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return useStore(isOpen) ? <Commands onClose={() => isOpen.set(false)} /> : null;
}
