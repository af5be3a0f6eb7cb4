/** A fence around a part of the page: when drawing it fails it shows itself as broken, and the rest lives on. */
import { Component, type ComponentChildren } from "preact";
import { Button, Icon, copyText } from "../ui/kit";
import { toast } from "./app";
import { words } from "./words";
import "./boundary.css";

const useWords = words(
  { broken: "This part could not be drawn.", again: "Try again", copy: "Copy details", copied: "The details are copied." },
  { broken: "这一部分无法显示。", again: "重试", copy: "复制详情", copied: "详情已复制。" },
);

interface Props {
  /** What it is, for whoever reads the details. */
  name: string;
  /** When this changes, what broke is drawn anew. */
  of?: unknown;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { error: Error | null; of: unknown }> {
  override state = { error: null as Error | null, of: this.props.of };

  static override getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  static override getDerivedStateFromProps(props: Props, state: { of: unknown }) {
    return Object.is(props.of, state.of) ? null : { error: null, of: props.of };
  }

  override componentDidCatch(error: unknown): void {
    console.error(`${this.props.name}:`, error);
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <Broken name={this.props.name} error={error} onRetry={() => this.setState({ error: null })} />;
  }
}

function Broken({ name, error, onRetry }: { name: string; error: Error; onRetry: () => void }) {
  const t = useWords();
  const copy = async () => {
    await copyText(detailsOf(name, error));
    toast(t.copied);
  };
  return (
    <div class="broken" role="alert">
      <Icon name="alert" />
      <span class="grow">{t.broken}</span>
      <Button little onClick={onRetry}>{t.again}</Button>
      <Button little kind="quiet" icon="copy" onClick={() => void copy()}>{t.copy}</Button>
    </div>
  );
}

/** What helps to find the fault, and nothing of a conversation. */
export function detailsOf(name: string, error: Error): string {
  return [`${name}: ${error.name}: ${error.message}`, error.stack ?? "", navigator.userAgent, new Date().toISOString()].join("\n");
}
