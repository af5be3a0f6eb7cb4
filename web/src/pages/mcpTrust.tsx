/** Trust dialog of an MCP server: what it runs, and which of its tools have changed. */
import { useState } from "preact/hooks";
import type { McpView } from "@everturn/client";
import { errorMessage } from "../app/app";
import { Button, Dialog, ErrorLine } from "../ui/components";
import { trustServer } from "./api";
import { useTexts } from "../locales/mcpTrust.gen";

export function TrustDialog({ view, onClose }: { view: McpView; onClose: () => void }) {
  const t = useTexts();
  const [seen] = useState(view); // the user trusts what was shown, whatever arrives in the meantime
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const changed = seen.tools.filter((tool) => tool.is_changed);
  const agree = async () => {
    setBusy(true);
    try {
      await trustServer(seen, { hash: seen.hash });
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t.title(seen.name)} onClose={onClose} wide>
      <p>{changed.length > 0 ? t.tools : t.start}</p>
      <dl class="facts small">
        <dt>{seen.transport === "stdio" ? t.program : t.address}</dt><dd><code>{seen.runs}</code>{seen.transport === "stdio" && <span class="muted"> {t.args}</span>}</dd>
        <dt>{t.hands}</dt><dd>{seen.variables.length ? seen.variables.map((name) => <code key={name} class="variable">{name}</code>) : <span class="muted">{t.nothing}</span>}</dd>
      </dl>
      {seen.changes.length > 0 && <pre class="changes" tabIndex={0} role="region" aria-label={t.changesLabel}>{seen.changes.map((line, index) => <ChangeLine key={index} line={line} />)}</pre>}
      {changed.length > 0 && seen.changes.length === 0 && (
        <>
          <ul class="plain">{changed.map((tool) => <li key={tool.name}><code>{tool.name}</code></li>)}</ul>
          <p class="small muted">{t.unseen}</p>
        </>
      )}
      {problem && <ErrorLine>{problem}</ErrorLine>}
      <div class="row wrap">
        <Button autoFocus onClick={onClose}>{t.no}</Button>
        <Button kind="primary" icon="check" disabled={isBusy} onClick={() => void agree()}>{t.yes}</Button>
      </div>
    </Dialog>
  );
}

function ChangeLine({ line }: { line: string }) {
  const mark = line.trimStart().slice(0, 2);
  return <span data-mark={mark === "+ " ? "new" : mark === "- " ? "old" : undefined}>{line}{"\n"}</span>;
}
