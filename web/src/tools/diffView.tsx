/** Diff view: the sign says what the colour says. */
import { defineTexts } from "../app/texts";
import { VisibleText } from "../gates/visibleText";
import type { DiffLine } from "./diff";

const useTexts = defineTexts({ diff: "What changes", added: "added", removed: "removed" }, { diff: "变更内容", added: "新增", removed: "删除" });

const CLASS = { "+": "added", "-": "removed", "@": "at", h: "head", " ": "" } as const;

export function Diff({ lines }: { lines: readonly DiffLine[] }) {
  const t = useTexts();
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={t.diff}>
      {lines.map((line, index) => (
        <div key={index} class={`line ${CLASS[line.sign]}`}>
          <span class="sign">{line.sign === "h" || line.sign === "@" ? "" : line.sign}</span>
          <span>
            {line.sign === "+" && <span class="visually-hidden">{t.added}: </span>}
            {line.sign === "-" && <span class="visually-hidden">{t.removed}: </span>}
            <VisibleText text={line.text} />
          </span>
        </div>
      ))}
    </pre>
  );
}
