/** Onboarding: sets up a model for a new installation, from a key or a local server that was found. */
import { useCallback, useState } from "preact/hooks";
import type { SetupView, ModelSource } from "@everturn/client";
import { agents, client, hasRole, toast } from "../app/app";
import { updateSettings } from "../app/settings";
import { defineTexts } from "../app/texts";
import { Button, CopyButton, ErrorLine, Disclosure, Icon, Spinner } from "../ui/components";
import { fetchSetup, useInterval, useFetch } from "./api";
import { OFFLINE_MODEL } from "./emptyState";
import { withModel } from "./rules";
import "./onboarding.css";

const useTexts = defineTexts(
  {
    title: "No model is set up yet",
    about: "Until there is one, an offline demo answers. It needs no key and no network: ask it for the time, or to note something, and see how calls and questions look.",
    others: "Whoever operates this server can set one up.",
    looking: "Looking for keys and for model servers on this machine", again: "Look again", demo: "Stay with the demo", close: "Dismiss",
    key: (name: string) => `Use the key in ${name}`, server: (name: string) => `Use ${name} on this machine`,
    write: (file: string, exists: boolean) => (exists ? `Add this to ${file}` : `Write this into a new file, ${file}`),
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
    write: (file: string, exists: boolean) => (exists ? `添加到 ${file}` : `写入新文件 ${file}`),
    inTable: (agent: string) => `已有 [agents.${agent}] 表：请在其中设置 model。`,
    live: "保存文件后立即生效，本页会自动更新。", restart: "然后重新启动服务器。",
    example: "也可以填写该供应商的其他模型。", model: "模型", copy: "复制", copied: "已复制",
    none: "服务器的环境中没有找到密钥，本机也没有模型服务响应。",
    withKey: "使用密钥：停止服务器，将密钥放入环境变量后重新启动。", withServer: "使用自己的模型：在服务器所在机器上启动 Ollama、llama.cpp、LM Studio 或 vLLM，然后重新查找。",
    done: (model: string) => `从现在起由 ${model} 作答。`,
  },
);

const COMMAND = "OPENAI_API_KEY=… everturn serve --model openai:gpt-5.2";

export function Onboarding() {
  const t = useTexts();
  const isOperator = hasRole("operator");
  const fetched = useFetch(async () => (isOperator ? fetchSetup() : undefined), isOperator);
  const notice = useCallback(async () => {
    const found = await client.agents().catch(() => null);
    const model = found?.agents.find((agent) => agent.is_default)?.model ?? OFFLINE_MODEL;
    if (!found || model === OFFLINE_MODEL) return;
    agents.set(found);
    toast(t.done(model));
  }, [t]);
  useInterval(isOperator ? 3 : 0, notice);
  const dismiss = () => updateSettings({ isWelcomed: true });
  return (
    <section class="card onboarding" aria-labelledby="onboarding-title">
      <div class="row">
        <h2 id="onboarding-title" class="grow">{t.title}</h2>
        <Button kind="quiet" little icon="close" aria-label={t.close} onClick={dismiss} />
      </div>
      <p class="muted">{t.about}</p>
      {!isOperator && <p>{t.others}</p>}
      {isOperator && !fetched.value && !fetched.problem && <p class="row small muted"><Spinner /> {t.looking}</p>}
      {fetched.problem && <ErrorLine>{fetched.problem}</ErrorLine>}
      {fetched.value && <SetupOptions view={fetched.value} />}
      <div class="row wrap">
        <Button onClick={dismiss}>{t.demo}</Button>
        {isOperator && <Button kind="quiet" icon="redo" onClick={fetched.reload}>{t.again}</Button>}
      </div>
    </section>
  );
}

function SetupOptions({ view }: { view: SetupView }) {
  const t = useTexts();
  if (view.options.length === 0)
    return (
      <div class="setup-options">
        <p>{t.none}</p>
        <ul class="hints">
          <li>{t.withKey} <Snippet text={COMMAND} /></li>
          <li>{t.withServer}</li>
        </ul>
      </div>
    );
  return <div class="setup-options">{view.options.map((option, index) => <SetupOption key={`${option.kind} ${option.name}`} option={option} view={view} isFirst={index === 0} />)}</div>;
}

function SetupOption({ option, view, isFirst }: { option: ModelSource; view: SetupView; isFirst: boolean }) {
  const t = useTexts();
  const first = option.models[0] ?? "";
  const [chosenModel, setChosenModel] = useState(first);
  const model = option.models.includes(chosenModel) ? chosenModel : first;
  const toml = model === first ? option.toml : withModel(option.toml, first, model);
  return (
    <Disclosure class="setup-option" open={isFirst} summary={<><Icon name={option.kind === "key" ? "lock" : "server"} /><span class="grow"><strong>{option.kind === "key" ? t.key(option.name) : t.server(option.name)}</strong> {option.address && <span class="small muted">{option.address}</span>}</span></>}>
      <div class="steps">
        {option.models.length > 1 && (
          <label class="row small">
            {t.model}
            <select class="input" value={model} onChange={(event) => setChosenModel(event.currentTarget.value)}>
              {option.models.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        )}
        <p class="small">{t.write(view.file, view.has_file)}</p>
        <Snippet text={toml} />
        <p class="small muted">
          {view.has_agent && <>{t.inTable(view.agent)} </>}
          {option.needs_restart ? t.restart : t.live}
          {option.kind === "key" && <> {t.example}</>}
        </p>
      </div>
    </Disclosure>
  );
}

function Snippet({ text }: { text: string }) {
  const t = useTexts();
  return <div class="snippet"><pre>{text}</pre><CopyButton text={text} label={t.copy} done={t.copied} /></div>;
}
