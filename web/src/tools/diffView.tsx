/** Diff view: the sign says what the colour says. */
import { VisibleText } from "../gates/visibleText";
import type { DiffLine } from "./diff";
import { useTexts } from "../locales/diffView.gen";

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
