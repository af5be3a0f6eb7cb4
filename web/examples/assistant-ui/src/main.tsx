/** Minimal chat that shows everything: text, reasoning, calls with approvals, versions, stop. */
import { StrictMode, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import { AssistantRuntimeProvider, BranchPickerPrimitive, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { ActionBarPrimitive, type ToolCallMessagePartProps } from "@assistant-ui/react";
import { Everturn, SessionFollower } from "@everturn/client";
import { useEverturnRuntime } from "./runtime";

const client = new Everturn();

export function Call({ toolName, argsText, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  const isOpen = approval && approval.approved === undefined && !approval.resolution;
  return (
    <div className="call">
      <code>{toolName} {argsText}</code>
      {isOpen && <p role="alert">{approval.prompt}</p>}
      {isOpen && approval.options?.map((option) => (
        <button key={option.id} type="button" title={option.grants?.join(", ")} onClick={() => void respondToApproval({ optionId: option.id })}>
          {option.kind}
        </button>
      ))}
      {result !== undefined && <pre>{String(result)}</pre>}
    </div>
  );
}

const Reasoning = ({ text }: { text: string }) => <details><summary>Reasoning</summary>{text}</details>;
const Text = ({ text }: { text: string }) => <>{text}</>; // as it streams; without it, the text would be typed out slowly
const parts = { Text, Reasoning, tools: { Fallback: Call } };

const UserMessage = () => <MessagePrimitive.Root className="person"><MessagePrimitive.Parts /></MessagePrimitive.Root>;
const SystemMessage = () => <MessagePrimitive.Root className="notice"><MessagePrimitive.Parts /></MessagePrimitive.Root>;

function AssistantMessage() {
  return (
    <MessagePrimitive.Root className="answer">
      <MessagePrimitive.Parts components={parts} />
      <ActionBarPrimitive.Root hideWhenRunning>
        <ActionBarPrimitive.Reload>Again</ActionBarPrimitive.Reload>
        <BranchPickerPrimitive.Root hideWhenSingleBranch>
          <BranchPickerPrimitive.Previous aria-label="Previous version">‹</BranchPickerPrimitive.Previous>
          <BranchPickerPrimitive.Number />/<BranchPickerPrimitive.Count />
          <BranchPickerPrimitive.Next aria-label="Next version">›</BranchPickerPrimitive.Next>
        </BranchPickerPrimitive.Root>
      </ActionBarPrimitive.Root>
    </MessagePrimitive.Root>
  );
}

export function Chat({ session }: { session: SessionFollower }) {
  const runtime = useEverturnRuntime(session);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Viewport>
          <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, SystemMessage }} />
        </ThreadPrimitive.Viewport>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

function Page() {
  const [id, setId] = useState(location.hash.slice(1));
  const session = useMemo(() => (id ? new SessionFollower(client, id, requestAnimationFrame) : null), [id]);
  const createSession = async (text: string) => {
    await client.me(); // loads the CSRF token that changes need
    const sent = await client.startSession({ text });
    location.hash = sent.session;
    setId(sent.session);
  };
  if (session) return <Chat session={session} />;
  return (
    <form onSubmit={(event) => { event.preventDefault(); void createSession(String(new FormData(event.currentTarget).get("text"))); }}>
      <input name="text" aria-label="First message" /> <button>Begin</button>
    </form>
  );
}

const root = document.getElementById("root");
if (root) createRoot(root).render(<StrictMode><Page /></StrictMode>);
