/** A diff, drawn: the sign says what the colour says. */
import { words } from "../app/words";
import { Exact } from "../gates/exact";
import type { DiffLine } from "./diff";

const useWords = words({ diff: "What changes", added: "added", removed: "removed" }, { diff: "变更内容", added: "新增", removed: "删除" });

const CLASS = { "+": "added", "-": "removed", "@": "at", h: "head", " ": "" } as const;

export function Diff({ lines }: { lines: readonly DiffLine[] }) {
  const t = useWords();
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={t.diff}>
      {lines.map((line, at) => (
        <div key={at} class={`line ${CLASS[line.sign]}`}>
          <span class="sign">{line.sign === "h" || line.sign === "@" ? "" : line.sign}</span>
          <span>
            {line.sign === "+" && <span class="visually-hidden">{t.added}: </span>}
            {line.sign === "-" && <span class="visually-hidden">{t.removed}: </span>}
            <Exact text={line.text} />
          </span>
        </div>
      ))}
    </pre>
  );
}
