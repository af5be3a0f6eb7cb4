/** Runtime for assistant-ui on a session of an Everturn server. */
import { useEffect, useMemo, useRef, useState } from "react";
import { useExternalStoreRuntime, type AppendMessage, type AssistantRuntime, type ThreadMessage } from "@assistant-ui/react";
import { isOver, type SessionFollower, type TurnState } from "@everturn/client";
import { convert, type ConvertedMessages } from "./convert";

const NOTHING: ThreadMessage[] = [];

export function useEverturnRuntime(session: SessionFollower): AssistantRuntime {
  const [version, setVersion] = useState(0);
  const converted = useRef<ConvertedMessages>(new WeakMap());
  useEffect(() => {
    const stop = session.subscribe("*", () => setVersion((before) => before + 1));
    session.start();
    return () => {
      stop();
      session.pause();
    };
  }, [session]);

  const repository = useMemo(() => convert(session.state, converted.current), [session, version]);
  const { client, id } = session;
  const running = runningTurn(session);
  return useExternalStoreRuntime<ThreadMessage>({
    messageRepository: repository,
    isRunning: running !== undefined,
    isLoading: session.connection === "loading",
    onNew: async (message) => void (await client.sendMessage(id, { text: textOf(message) })),
    onEdit: async (message) => void (await client.edit(id, message.sourceId!, { text: textOf(message) })),
    onReload: async (parent) => {
      const answers = session.state.children.get(parent) ?? [];
      if (answers.length) await client.rerun(id, answers.at(-1)!);
    },
    onCancel: async () => {
      if (running) await client.cancel(id, running.id);
    },
    onRespondToToolApproval: async ({ approvalId, approved, optionId, reason }) => {
      const gateState = [...session.state.turns.values()].map((turn) => turn.gates.get(approvalId)).find((gate) => gate !== undefined);
      if (!gateState) return;
      // The hash says what was shown when this was answered: if that has changed, the server refuses it.
      const { hash } = gateState.gate;
      await client.answer(id, approvalId, approved ? { hash, allow: optionId === "always" ? "always" : "once" } : { hash, deny: reason || true });
    },
    setMessages: () => NOTHING, // lets branches be switched; the log says which one is selected, and the next state brings it
    unstable_onBranchChange: ({ headId }) => void client.select(id, { message: headId }),
  });
}

/** The turn that runs on the selected branch. */
function runningTurn(session: SessionFollower): TurnState | undefined {
  const { state } = session;
  const leaf = state.leaf === null ? undefined : state.messages.get(state.leaf);
  const turn = leaf?.turn ? state.turns.get(leaf.turn) : undefined;
  return turn && !isOver(turn) ? turn : undefined;
}

function textOf(message: AppendMessage): string {
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
