/** Reasoning of a model: open while it streams, collapsed afterwards. */
import { Disclosure } from "../ui/components";
import { Markdown } from "./markdown";
import { useTexts } from "../locales/reasoning.gen";

export function Reasoning({ text, isLive }: { text: string; isLive: boolean }) {
  const t = useTexts();
  // No duration is shown: the log has none, and one that is measured here would be lost on reload.
  const summary = <span>{isLive ? t.thinking : t.thought}</span>;
  if (!text.trim()) return isLive ? <p class="reasoning small muted">{t.thinking}</p> : <p class="reasoning small muted">{t.sealed}</p>;
  return (
    <Disclosure class={`reasoning ${isLive ? "live" : ""}`} open={isLive} summary={summary}>
      <div class="thought"><Markdown text={text} isLive={isLive} /></div>
    </Disclosure>
  );
}
