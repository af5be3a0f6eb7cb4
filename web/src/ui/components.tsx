/** UI components: button, badge, disclosure, field, dialog, menu. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import "./components.css";
import { useTexts } from "../locales/components.gen";

export { Icon, type IconName };

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon" | "class" | "className"> & {
  icon?: IconName;
  kind?: "primary" | "danger" | "quiet";
  little?: boolean;
  class?: string;
};

/** A button: with a text, or (an icon alone) with `aria-label`, which is also its tooltip. */
export function Button({ icon, kind, little, class: more, children, ...rest }: ButtonProps) {
  const isIcon = icon && !children;
  const label = rest["aria-label"];
  return (
    <button
      type="button"
      class={`button ${kind ?? ""} ${little ? "little" : ""} ${isIcon ? "icon" : ""} ${more ?? ""}`}
      title={isIcon && typeof label === "string" ? label : undefined}
      {...rest}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export type Tone = "good" | "warn" | "bad" | "accent";

export function Badge({ tone, icon, title, children }: { tone?: Tone; icon?: IconName; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone ?? ""}`} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}

/** Expandable section. `open` sets its state; the user may change it. */
export function Disclosure({ summary, open = false, class: more = "", children }: {
  summary: ComponentChildren; open?: boolean; class?: string; children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(open);
  useEffect(() => setOpen(open), [open]);
  return (
    <details class={`fold ${more}`} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="chevron" class="chevron" />
        {summary}
      </summary>
      {isOpen && children}
    </details>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: ComponentChildren; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      {children}
      {hint && <span class="small muted">{hint}</span>}
    </label>
  );
}

export function Spinner({ label }: { label?: string }) {
  return <span class="spinner" role={label ? "status" : undefined} aria-label={label} />;
}

export function ErrorLine({ children }: { children: ComponentChildren }) {
  return (
    <p class="error-line" role="alert">
      <Icon name="alert" />
      <span>{children}</span>
    </p>
  );
}

/** Copies a text and confirms it for a moment. Works without the clipboard API (plain http on a LAN). */
export function CopyButton({ text, label, done }: { text: string | (() => string); label: string; done: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await copyText(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <Button kind="quiet" little icon={isDone ? "check" : "copy"} aria-label={isDone ? done : label} onClick={copy} />;
}

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Modal dialog; Esc and the close button close it, and the focus returns to where it was. */
export function Dialog({ title, onClose, children, wide = false }: {
  title: string; onClose: () => void; children: ComponentChildren; wide?: boolean;
}) {
  const t = useTexts();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog ref={ref} class={`dialog ${wide ? "wide" : ""}`} aria-label={title} onClose={onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}>
      <div class="head">
        <h2 class="grow">{title}</h2>
        <form method="dialog"><Button type="submit" kind="quiet" little icon="close" aria-label={t.close} /></form>
      </div>
      <div class="body">{children}</div>
    </dialog>
  );
}

export interface MenuItem {
  label: ComponentChildren;
  icon?: IconName;
  onSelect: () => void;
  isChecked?: boolean;
}

/** Menu button: arrow keys move, Esc and a click elsewhere close. The list is in the top layer, so nothing clips it. */
export function Menu({ button, items, end = false, up = false, kind = "quiet", little = true }: {
  button: { icon?: IconName; label: string; text?: ComponentChildren }; items: MenuItem[];
  end?: boolean; up?: boolean; kind?: "quiet" | "primary"; little?: boolean;
}) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!isOpen || !root.current || !list.current) return;
    list.current.showPopover?.();
    positionMenu(list.current, root.current.getBoundingClientRect(), end, up);
    list.current.querySelector<HTMLElement>(".item")?.focus({ preventScroll: true });
    const away = (event: Event) => !root.current?.contains(event.target as Node) && setOpen(false);
    const close = () => setOpen(false);
    addEventListener("pointerdown", away);
    addEventListener("scroll", away, true);
    addEventListener("resize", close);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("scroll", away, true);
      removeEventListener("resize", close);
    };
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = [...(root.current?.querySelectorAll<HTMLElement>(".item") ?? [])];
    const focused = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: focused + 1, ArrowUp: focused - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
      root.current?.querySelector<HTMLElement>("button")?.focus();
    } else if (event.key === "Tab" && isOpen) setOpen(false);
    else if (to !== undefined && isOpen) {
      event.preventDefault();
      all.at(to % all.length)?.focus();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <Button kind={kind} little={little} icon={button.icon} aria-label={button.text ? undefined : button.label} title={button.label}
        aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{button.text}</Button>
      {isOpen && (
        <div class="items" ref={list} popover="manual" role="menu" aria-label={button.label}>
          {items.map((item, index) => (
            <button key={index} type="button" class="item" role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={item.isChecked} onClick={() => { setOpen(false); root.current?.querySelector<HTMLElement>("button")?.focus(); item.onSelect(); }}>
              {item.icon && <Icon name={item.icon} />}
              <span class="grow">{item.label}</span>
              {item.isChecked && <Icon name="check" />}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

const GAP = 4; // pixels

/** Position a list at its button: on the preferred side if there is room, on the other one if not. */
function positionMenu(list: HTMLElement, anchor: DOMRect, end: boolean, up: boolean): void {
  const { offsetWidth: width, offsetHeight: height } = list;
  const fitsBelow = anchor.bottom + GAP + height <= innerHeight;
  const isUp = (up && anchor.top - GAP - height >= 0) || (!fitsBelow && anchor.top > innerHeight - anchor.bottom);
  const left = end ? anchor.right - width : anchor.left;
  list.style.left = `${Math.max(GAP, Math.min(left, innerWidth - width - GAP))}px`;
  list.style.top = `${Math.max(GAP, isUp ? anchor.top - GAP - height : Math.min(anchor.bottom + GAP, innerHeight - height - GAP))}px`;
}
