/** Error boundary: when a component fails to render it shows an error in its place, and the rest keeps working. */
import { Component, type ComponentChildren } from "preact";
import { Button, Icon, copyText } from "../ui/components";
import { toast } from "./app";
import "./errorBoundary.css";
import { useTexts } from "../locales/errorBoundary.gen";

interface Props {
  /** Name of the component, for the error details. */
  name: string;
  /** When this changes, the component is rendered again. */
  resetKey?: unknown;
  children: ComponentChildren;
}

export class ErrorBoundary extends Component<Props, { error: Error | null; resetKey: unknown }> {
  override state = { error: null as Error | null, resetKey: this.props.resetKey };

  static override getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  static override getDerivedStateFromProps(props: Props, state: { resetKey: unknown }) {
    return Object.is(props.resetKey, state.resetKey) ? null : { error: null, resetKey: props.resetKey };
  }

  override componentDidCatch(error: unknown): void {
    console.error(`${this.props.name}:`, error);
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <ErrorFallback name={this.props.name} error={error} onRetry={() => this.setState({ error: null })} />;
  }
}

function ErrorFallback({ name, error, onRetry }: { name: string; error: Error; onRetry: () => void }) {
  const t = useTexts();
  const copy = async () => {
    await copyText(errorDetails(name, error));
    toast(t.copied);
  };
  return (
    <div class="error-fallback" role="alert">
      <Icon name="alert" />
      <span class="grow">{t.broken}</span>
      <Button little onClick={onRetry}>{t.again}</Button>
      <Button little kind="quiet" icon="copy" onClick={() => void copy()}>{t.copy}</Button>
    </div>
  );
}

/** Details for a bug report, without anything of a conversation. */
export function errorDetails(name: string, error: Error): string {
  return [`${name}: ${error.name}: ${error.message}`, error.stack ?? "", navigator.userAgent, new Date().toISOString()].join("\n");
}
