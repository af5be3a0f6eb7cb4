/** What a model thought on the way: open while it thinks, folded after. */
import { words } from "../app/words";
import { Fold } from "../ui/kit";
import { Markdown } from "./markdown";

const useWords = words(
  { thinking: "Thinking…", thought: "Thought", sealed: "Thought; the provider keeps what it was to itself" },
  { thinking: "思考中…", thought: "思考过程", sealed: "思考过程（内容由模型提供方保密）" },
);

export function Reasoning({ text, isLive }: { text: string; isLive: boolean }) {
  const t = useWords();
  // No time is told: the log has none, and what a page measures is lost when it is loaded again.
  const summary = <span>{isLive ? t.thinking : t.thought}</span>;
  if (!text.trim()) return isLive ? <p class="reasoning small muted">{t.thinking}</p> : <p class="reasoning small muted">{t.sealed}</p>;
  return (
    <Fold class={`reasoning ${isLive ? "live" : ""}`} open={isLive} summary={summary}>
      <div class="thought"><Markdown text={text} isLive={isLive} /></div>
    </Fold>
  );
}
