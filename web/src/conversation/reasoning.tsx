/** What a model thought on the way: open while it thinks, folded after. */
import { useEffect, useRef, useState } from "preact/hooks";
import { say, words } from "../app/words";
import { Fold } from "../ui/kit";
import { Markdown } from "./markdown";

const useWords = words(
  { thinking: "Thinking…", thought: "Thought", took: (time: string) => `Thought for ${time}`, sealed: "Thought; the provider keeps what it was to itself" },
  { thinking: "思考中…", thought: "思考过程", took: (time: string) => `思考了 ${time}`, sealed: "思考过程（内容由模型提供方保密）" },
);

export function Reasoning({ text, isLive }: { text: string; isLive: boolean }) {
  const t = useWords();
  const began = useRef(isLive ? Date.now() : 0);
  const [took, setTook] = useState(0);
  useEffect(() => {
    if (!isLive && began.current && !took) setTook((Date.now() - began.current) / 1000);
  }, [isLive]);
  const summary = <span>{isLive ? t.thinking : took ? t.took(say.seconds(took)) : t.thought}</span>;
  if (!text.trim()) return isLive ? <p class="reasoning small muted">{t.thinking}</p> : <p class="reasoning small muted">{t.sealed}</p>;
  return (
    <Fold class={`reasoning ${isLive ? "live" : ""}`} open={isLive} summary={summary}>
      <div class="thought"><Markdown text={text} isLive={isLive} /></div>
    </Fold>
  );
}
