/** Turn footer: the status of a running turn, or how it ended. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isOver, openGates, type SessionFollower, type TurnState } from "@everturn/client";
import { attempt, client, inbox, hasRole } from "../app/app";
import { useTopics } from "../app/store";
import { format, defineTexts } from "../app/texts";
import { GateCard } from "../gates/gateCard";
import { Button, Icon, Spinner, type IconName } from "../ui/components";
import { showControls } from "./textEscapes";

const useTexts = defineTexts(
  {
    preparing: "Getting ready", thinking: "Thinking", writing: "Writing", calling: "Preparing a call", waiting: "Waiting for you", asks: (count: number) => (count === 1 ? "One question waits for an answer" : `${count} questions wait for an answer`),
    suspended: "Waiting for something from outside", running: (count: number) => (count === 1 ? "One tool is running" : `${count} tools are running`), client: "Waiting for a browser or an app to do its part",
    deciding: "Going on", finalizing: "Finishing", restarted: "The connection to the model broke; it starts again",
    cancelled: "Stopped.", hard: "Stopped, and its tools were ended.",
    stillRunning: (count: number) => (count === 1 ? "One tool still runs. Its result will be attached to its call when it comes." : `${count} tools still run. Their results will be attached to their calls when they come.`),
    late: (count: number) => (count === 1 ? "One result came after the end; it stands at its call." : `${count} results came after the end; they stand at their calls.`),
    failed: "The turn failed", request: "The model provider rejected the request", key: "The model provider did not accept the API key", quota: "The account at the model provider has no credit left", context: "The conversation is too long for this model", unknown_model: "The model provider does not offer this model", rate: "The model provider limits how often it may be asked", server: "The model provider reports a problem of its own", again: "Try again", limit: (scope: string) => `A limit of ${scope} is reached`,
    turn: "this turn", session: "this conversation", tenant: "all conversations", parent: "the parent turn",
    steps: (count: number) => `The turn has had its ${count} steps; the last one was asked to conclude without tools.`,
    loop: "A loop was stopped: the same calls came round again and again.", reports: "A plugin reports a problem", deadline: "It had its time",
  },
  {
    preparing: "准备中", thinking: "思考中", writing: "书写中", calling: "正在准备调用", waiting: "等待您的答复", asks: (count: number) => `有 ${count} 个问题等待答复`,
    suspended: "等待外部事件", running: (count: number) => `${count} 个工具正在运行`, client: "等待浏览器或应用完成它的部分",
    deciding: "继续中", finalizing: "收尾中", restarted: "与模型的连接中断，正在重新开始",
    cancelled: "已停止。", hard: "已停止，其工具也已终止。",
    stillRunning: (count: number) => `仍有 ${count} 个工具在运行。结果到达后会附在对应的调用上。`,
    late: (count: number) => `有 ${count} 个结果在结束之后到达，已附在对应的调用上。`,
    failed: "这一轮失败了", request: "模型提供方拒绝了请求", key: "模型提供方不接受此 API 密钥", quota: "模型提供方账户的额度已用完", context: "对话对此模型来说太长", unknown_model: "模型提供方没有此模型", rate: "模型提供方限制了请求频率", server: "模型提供方自身出现问题", again: "重试", limit: (scope: string) => `已达到${scope}的限额`,
    turn: "本轮", session: "本对话", tenant: "全部对话", parent: "上级轮次",
    steps: (count: number) => `这一轮的 ${count} 步已用完；最后一步被要求不用工具直接总结。`,
    loop: "循环已被制止：同样的调用反复出现。", reports: "插件报告了问题", deadline: "时间已用完",
  },
);

interface Props {
  session: SessionFollower;
  id: string;
}

/** Shown under the last message of a turn. */
export function TurnFooter({ session, id }: Props) {
  useTopics(session, `turn:${id}`, `live:${id}`);
  const turn = session.state.turns.get(id);
  if (!turn) return null;
  const gates = [...turn.gates.values()].filter(({ gate }) => !gate.call || !turn.calls.has(gate.call));
  return (
    <>
      {gates.map((gateState) => <GateCard key={gateState.gate.id} session={session.id} gateState={gateState} />)}
      {isOver(turn) ? <TurnEnd session={session} turn={turn} /> : <TurnStatus turn={turn} />}
    </>
  );
}

/** What the turn is doing, and for how long. */
function TurnStatus({ turn }: { turn: TurnState }) {
  const status = useTurnStatus(turn);
  const now = useNow();
  const since = turn.started ? Math.max(0, now - turn.started) : 0;
  return (
    <p class={`turn-status ${status.isWaiting ? "waiting" : ""}`} role="status">
      {status.isWaiting ? <Icon name="wait" /> : <Spinner />}
      <span>{status.text}</span>
      <span class="muted" aria-hidden="true">{since >= 1 ? format.seconds(Math.floor(since)).replace(/\.0 /, " ") : ""}</span>
    </p>
  );
}

function useTurnStatus(turn: TurnState): { text: string; isWaiting: boolean } {
  const t = useTexts();
  const gates = openGates(turn);
  const running = [...turn.calls.values()].filter((call) => call.state === "running" && !call.parent).length;
  useTopics(inbox, "gates");
  const childSessions = [...turn.calls.values()].flatMap((call) => call.children.map((child) => child.session));
  const childGates = inbox.gates.filter(({ session }) => childSessions.some((child) => session === child || session.startsWith(`${child}-`)));
  const personGates = [...gates, ...childGates].filter(({ gate }) => gate.kind !== "client");
  const step = turn.steps.at(-1);
  if (turn.phase === "finalizing") return { text: t.finalizing, isWaiting: false };
  if (personGates.length) return { text: running ? `${t.asks(personGates.length)} · ${t.running(running)}` : t.asks(personGates.length), isWaiting: true };
  if (gates.length || childGates.length) return { text: t.client, isWaiting: true };
  if (running) return { text: t.running(running), isWaiting: false };
  if (turn.phase === "waiting") return { text: t.suspended, isWaiting: true };
  if (turn.phase === "preparing" || turn.phase === "idle") return { text: t.preparing, isWaiting: false };
  if (step && !step.ended) {
    const live = turn.live.at(-1);
    if (!live) return { text: step.restarts ? t.restarted : t.thinking, isWaiting: false };
    return { text: live.kind === "text" ? t.writing : live.kind === "call" ? t.calling : t.thinking, isWaiting: false };
  }
  return { text: t.deciding, isWaiting: false };
}

function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function TurnEnd({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  const calls = [...turn.calls.values()];
  const stillRunning = calls.filter((call) => call.isStillRunning).length;
  const late = calls.filter((call) => call.late).length;
  const isLoop = [...turn.gates.values()].some(({ gate, resolution }) => gate.kind === "loop" && resolution && !resolution.allowed);
  const isLast = turn.steps.at(-1)?.closing && !turn.limit;
  const scope = turn.limit && t[turn.limit.scope];
  return (
    <div class="turn-end">
      {turn.limit && <StatusLine icon="chart" tone="warn" title={t.limit(scope!)}>{showControls(turn.limit.text)}</StatusLine>}
      {isLast && <StatusLine icon="chart" tone="warn">{t.steps(turn.options.max_steps ?? turn.steps.length - 1)}</StatusLine>}
      {isLoop && <StatusLine icon="redo" tone="warn">{t.loop}</StatusLine>}
      {turn.phase === "cancelled" && <StatusLine icon="stop" tone="quiet">{turn.ending?.hard ? t.hard : t.cancelled}</StatusLine>}
      {turn.phase === "error" && <TurnError session={session} turn={turn} />}
      {stillRunning > 0 && <StatusLine icon="wait" tone="quiet" isBusy>{t.stillRunning(stillRunning)}</StatusLine>}
      {late > 0 && <StatusLine icon="clock" tone="quiet">{t.late(late)}</StatusLine>}
      {turn.reports.map((report, index) => <StatusLine key={index} icon="plug" tone="warn" title={t.reports}>{showControls(report.text)}</StatusLine>)}
    </div>
  );
}

function TurnError({ session, turn }: { session: SessionFollower; turn: TurnState }) {
  const t = useTexts();
  const from = turn.input ?? turn.parent;
  const [isRetrying, setRetrying] = useState(false);
  const retry = async () => {
    setRetrying(true);
    await attempt(client.rerun(session.id, from!));
    setRetrying(false);
  };
  return (
    <StatusLine icon="alert" tone="bad" title={errorTitle(turn.problem?.kind ?? "", t)} code={turn.problem?.kind}
      action={from && hasRole("member") ? <Button little icon="redo" disabled={isRetrying} onClick={() => void retry()}>{t.again}</Button> : null}>
      {showControls(turn.problem?.text ?? "")}
    </StatusLine>
  );
}

const KINDS = ["deadline", "request", "key", "quota", "context", "unknown_model", "rate", "server"] as const;

function errorTitle(kind: string, t: ReturnType<typeof useTexts>): string {
  const known = KINDS.find((candidate) => candidate === kind);
  return known ? t[known] : t.failed;
}

export function StatusLine({ icon, tone, title, code, action, isBusy = false, children }: {
  icon: IconName; tone: "quiet" | "warn" | "bad"; title?: string; code?: string; isBusy?: boolean; action?: ComponentChildren; children: ComponentChildren;
}) {
  return (
    <div class={`end-line ${tone}`}>
      {isBusy ? <Spinner /> : <Icon name={icon} />}
      <div class="grow">
        {title && <strong>{title}{code && <code>{code}</code>}</strong>}
        <span dir="auto">{children}</span>
      </div>
      {action}
    </div>
  );
}
