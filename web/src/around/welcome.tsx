/** How a new installation gets a model: by a key that was found, from a server that was found, or not yet. */
import { useCallback, useState } from "preact/hooks";
import type { SetupView, WayIn } from "@everturn/client";
import { agents, client, may, toast } from "../app/app";
import { change } from "../app/settings";
import { words } from "../app/words";
import { Button, CopyButton, ErrorLine, Fold, Icon, Spinner } from "../ui/kit";
import { setup, useEvery, useRead } from "./calls";
import { OFFLINE } from "./first";
import { withModel } from "./ruling";
import "./welcome.css";

const useWords = words(
  {
    title: "No model is set up yet",
    about: "Until there is one, an offline demo answers. It needs no key and no network: ask it for the time, or to note something, and see how calls and questions look.",
    others: "Whoever operates this server can set one up.",
    looking: "Looking for keys and for model servers on this machine", again: "Look again", demo: "Stay with the demo", close: "Dismiss",
    key: (name: string) => `Use the key in ${name}`, server: (name: string) => `Use ${name} on this machine`,
    write: (file: string, isThere: boolean) => (isThere ? `Add this to ${file}` : `Write this into a new file, ${file}`),
    inTable: (agent: string) => `There is a table [agents.${agent}] already: set its model there.`,
    live: "It holds as soon as the file is saved; this page notices.", restart: "Then start the server again.",
    example: "Any other model of this vendor can be named as well.", model: "Model", copy: "Copy", copied: "Copied",
    none: "No key was found in the environment of the server, and no model server answers on this machine.",
    withKey: "With a key: stop the server, and start it with the key in its environment.", withServer: "With a model of your own: start Ollama, llama.cpp, LM Studio or vLLM on the server’s machine, and look again.",
    done: (model: string) => `${model} answers from now on.`,
  },
  {
    title: "尚未设置模型",
    about: "在此之前由离线演示作答。它不需要密钥，也不需要网络：可以问它时间，或让它记点什么，看看调用和询问是什么样子。",
    others: "请联系此服务器的运维人员设置模型。",
    looking: "正在查找密钥和本机的模型服务", again: "重新查找", demo: "继续使用演示", close: "关闭",
    key: (name: string) => `使用 ${name} 中的密钥`, server: (name: string) => `使用本机的 ${name}`,
    write: (file: string, isThere: boolean) => (isThere ? `添加到 ${file}` : `写入新文件 ${file}`),
    inTable: (agent: string) => `已有 [agents.${agent}] 表：请在其中设置 model。`,
    live: "保存文件后立即生效，本页会自动更新。", restart: "然后重新启动服务器。",
    example: "也可以填写该供应商的其他模型。", model: "模型", copy: "复制", copied: "已复制",
    none: "服务器的环境中没有找到密钥，本机也没有模型服务响应。",
    withKey: "使用密钥：停止服务器，将密钥放入环境变量后重新启动。", withServer: "使用自己的模型：在服务器所在机器上启动 Ollama、llama.cpp、LM Studio 或 vLLM，然后重新查找。",
    done: (model: string) => `从现在起由 ${model} 作答。`,
  },
);

const COMMAND = "OPENAI_API_KEY=… everturn serve --model openai:gpt-5.2";

export function Welcome() {
  const t = useWords();
  const isOperator = may("operator");
  const read = useRead(async () => (isOperator ? setup() : undefined), isOperator);
  const notice = useCallback(async () => {
    const found = await client.agents().catch(() => null);
    const model = found?.agents.find((one) => one.is_default)?.model ?? OFFLINE;
    if (!found || model === OFFLINE) return;
    agents.set(found);
    toast(t.done(model));
  }, [t]);
  useEvery(isOperator ? 3 : 0, notice);
  const leave = () => change({ isWelcomed: true });
  return (
    <section class="card welcome" aria-labelledby="the-welcome">
      <div class="row">
        <h2 id="the-welcome" class="grow">{t.title}</h2>
        <Button kind="quiet" little icon="close" aria-label={t.close} onClick={leave} />
      </div>
      <p class="muted">{t.about}</p>
      {!isOperator && <p>{t.others}</p>}
      {isOperator && !read.value && !read.problem && <p class="row small muted"><Spinner /> {t.looking}</p>}
      {read.problem && <ErrorLine>{read.problem}</ErrorLine>}
      {read.value && <Ways view={read.value} />}
      <div class="row wrap">
        <Button onClick={leave}>{t.demo}</Button>
        {isOperator && <Button kind="quiet" icon="redo" onClick={read.again}>{t.again}</Button>}
      </div>
    </section>
  );
}

function Ways({ view }: { view: SetupView }) {
  const t = useWords();
  if (view.ways.length === 0)
    return (
      <div class="ways">
        <p>{t.none}</p>
        <ul class="hints">
          <li>{t.withKey} <Snippet text={COMMAND} /></li>
          <li>{t.withServer}</li>
        </ul>
      </div>
    );
  return <div class="ways">{view.ways.map((way, at) => <Way key={`${way.kind} ${way.name}`} way={way} view={view} isFirst={at === 0} />)}</div>;
}

function Way({ way, view, isFirst }: { way: WayIn; view: SetupView; isFirst: boolean }) {
  const t = useWords();
  const first = way.models[0] ?? "";
  const [chosen, choose] = useState(first);
  const model = way.models.includes(chosen) ? chosen : first;
  const toml = model === first ? way.toml : withModel(way.toml, first, model);
  return (
    <Fold class="way" open={isFirst} summary={<><Icon name={way.kind === "key" ? "lock" : "server"} /><span class="grow"><strong>{way.kind === "key" ? t.key(way.name) : t.server(way.name)}</strong> {way.address && <span class="small muted">{way.address}</span>}</span></>}>
      <div class="steps">
        {way.models.length > 1 && (
          <label class="row small">
            {t.model}
            <select class="input" value={model} onChange={(event) => choose(event.currentTarget.value)}>
              {way.models.map((one) => <option key={one} value={one}>{one}</option>)}
            </select>
          </label>
        )}
        <p class="small">{t.write(view.file, view.has_file)}</p>
        <Snippet text={toml} />
        <p class="small muted">
          {view.has_agent && <>{t.inTable(view.agent)} </>}
          {way.needs_restart ? t.restart : t.live}
          {way.kind === "key" && <> {t.example}</>}
        </p>
      </div>
    </Fold>
  );
}

function Snippet({ text }: { text: string }) {
  const t = useWords();
  return <div class="snippet"><pre>{text}</pre><CopyButton text={text} label={t.copy} done={t.copied} /></div>;
}
