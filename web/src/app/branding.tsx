/** Branding: the title and the logo that the server has written into the head of the page. */
import "./branding.css";

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="everturn-${name}"]`)?.content ?? "";

export const appTitle = (): string => meta("title") || "Everturn";

/** The logo, if there is one, and the title. */
export function Brand() {
  return <>{meta("logo") === "yes" && <img class="brand-logo" src="/branding/logo" alt="" />}{appTitle()}</>;
}
