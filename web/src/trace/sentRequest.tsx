/** Sent request: what the model of a step was sent: system prompt and parameters (by role), tools, messages. */
import type { SentMessage, SentPart } from "@everturn/client";
import { client } from "../app/app";
import { format } from "../app/texts";
import { showControls } from "../conversation/textEscapes";
import { useFetch } from "../app/useFetch";
import { Dialog, Disclosure, ErrorLine, Spinner } from "../ui/components";
import "./trace.css";
import { useTexts } from "../locales/sentRequest.gen";

export function SentRequest({ session, turn, step, onClose }: { session: string; turn: string; step: number; onClose: () => void }) {
  const t = useTexts();
  const { value, problem } = useFetch(() => client.sentRequest(session, turn, step), session, turn, step);
  return (
    <Dialog title={t.title(step)} wide onClose={onClose}>
      {!value ? (problem ? <ErrorLine>{problem}</ErrorLine> : <Spinner label={t.loading} />) : (
        <div class="sent">
          <p class="small muted">{t.about} {value.left_out.length > 0 && t.leftOut(value.left_out.map(showControls).join(", "))}</p>
          <dl class="facts"><dt>{t.model}</dt><dd>{showControls(value.model)}</dd></dl>
          {value.system === null ? <p class="small muted">{t.hidden}</p> : (
            <>
              <Section title={t.system} count={value.system.length ? format.number(value.system.length) : "0"}>
                <pre class="text" dir="auto" tabIndex={0}>{showControls(value.system)}</pre>
              </Section>
              <Section title={t.params} count={format.number(Object.keys(value.params ?? {}).length)}>
                <pre class="text" tabIndex={0}>{showControls(JSON.stringify(value.params, null, 2))}</pre>
              </Section>
            </>
          )}
          <Section title={t.tools} count={format.number(value.tools.length)}>
            <ul class="plain-list">
              {value.tools.map((tool) => (
                <li key={tool.name}>
                  <Disclosure summary={<code class="grow">{showControls(tool.name)}</code>}>
                    <p class="small" dir="auto">{showControls(tool.description)}</p>
                    <pre class="text" tabIndex={0}>{showControls(JSON.stringify(tool.schema, null, 2))}</pre>
                  </Disclosure>
                </li>
              ))}
            </ul>
          </Section>
          <h3>{t.messages(value.messages.length)}</h3>
          <ol class="plain-list messages">
            {value.messages.map((message, index) => <MessageRow key={index} message={message} isLast={index === value.messages.length - 1} />)}
          </ol>
        </div>
      )}
    </Dialog>
  );
}

function Section({ title, count, children }: { title: string; count: string; children: preact.ComponentChildren }) {
  return <Disclosure class="card" summary={<span class="row grow"><strong class="grow">{title}</strong><span class="small muted">{count}</span></span>}>{children}</Disclosure>;
}

function MessageRow({ message, isLast }: { message: SentMessage; isLast: boolean }) {
  const t = useTexts();
  const first = message.parts.find((part) => part.text)?.text ?? "";
  const summary = (
    <span class="row grow">
      <strong class="role">{t.role(message.role)}</strong>
      <span class="small muted ellipsis grow" dir="auto">{showControls(message.parts.map((part) => part.name).filter(Boolean).join(", ") || first.slice(0, 200))}</span>
    </span>
  );
  return <li><Disclosure class="card" open={isLast} summary={summary}>{message.parts.map((part, index) => <PartView key={index} part={part} />)}</Disclosure></li>;
}

function PartView({ part }: { part: SentPart }) {
  const t = useTexts();
  return (
    <div class="part">
      {part.kind !== "text" && <p class="small muted">{t.kind(part.kind)} {part.name && <code>{showControls(part.name)}</code>}</p>}
      <pre class="text" dir="auto" tabIndex={0}>{showControls(part.text)}</pre>
      {part.size > part.text.length && <p class="small muted">{t.cut(format.number(part.size))}</p>}
    </div>
  );
}
