/** Trust dialog of an MCP server: what it runs, and which of its tools have changed. */
import { useState } from "preact/hooks";
import type { McpView } from "@everturn/client";
import { errorMessage } from "../app/app";
import { defineTexts } from "../app/texts";
import { Button, Dialog, ErrorLine } from "../ui/components";
import { trustServer } from "./api";

const useTexts = defineTexts(
  {
    title: (name: string) => `Trust ${name}?`,
    start: "It will be started, or reached, with what stands here. What it then says of its tools you are shown next; until you trust those too, none of them can be called.",
    tools: "These tools are new, or not what they were. What a server says of its tools is read by the model: look for instructions that do not belong there.",
    program: "Program", address: "Address", hands: "It gets", nothing: "nothing", args: "Its arguments are in the configuration.",
    yes: "Trust it as shown", no: "Not now", unseen: "The server has kept no earlier version to compare with.",
  },
  {
    title: (name: string) => `信任 ${name}？`,
    start: "将按此处所示启动或连接。之后会向您展示它的工具；在您信任这些工具之前，都不能调用。",
    tools: "这些工具是新增的，或与之前不同。模型会读到服务器对工具的描述：请留意其中不该出现的指令。",
    program: "程序", address: "地址", hands: "传入", nothing: "无", args: "其参数见配置文件。",
    yes: "按所示信任", no: "暂不", unseen: "服务器没有保存可供对比的早期版本。",
  },
);

export function TrustDialog({ view, onClose }: { view: McpView; onClose: () => void }) {
  const t = useTexts();
  const [seen] = useState(view); // the user trusts what was shown, whatever arrives in the meantime
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const changed = seen.tools.filter((tool) => tool.is_changed);
  const agree = async () => {
    setBusy(true);
    try {
      await trustServer(seen.name, { hash: seen.hash });
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
      {seen.changes.length > 0 && <pre class="changes">{seen.changes.map((line, index) => <ChangeLine key={index} line={line} />)}</pre>}
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
