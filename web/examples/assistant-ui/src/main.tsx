/** As little of a chat as shows everything: text, reasoning, calls that ask, versions, stop. */
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
const Text = ({ text }: { text: string }) => <>{text}</>; // as it comes; without it, it would be typed out slowly
const parts = { Text, Reasoning, tools: { Fallback: Call } };

const Person = () => <MessagePrimitive.Root className="person"><MessagePrimitive.Parts /></MessagePrimitive.Root>;
const Notice = () => <MessagePrimitive.Root className="notice"><MessagePrimitive.Parts /></MessagePrimitive.Root>;

function Answer() {
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
          <ThreadPrimitive.Messages components={{ UserMessage: Person, AssistantMessage: Answer, SystemMessage: Notice }} />
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
  const begin = async (text: string) => {
    await client.me(); // brings what changes need
    const sent = await client.begin({ text });
    location.hash = sent.session;
    setId(sent.session);
  };
  if (session) return <Chat session={session} />;
  return (
    <form onSubmit={(event) => { event.preventDefault(); void begin(String(new FormData(event.currentTarget).get("text"))); }}>
      <input name="text" aria-label="First message" /> <button>Begin</button>
    </form>
  );
}

const root = document.getElementById("root");
if (root) createRoot(root).render(<StrictMode><Page /></StrictMode>);
