/** Page for an address that has none. */
import { hasRole } from "./app";
import { hrefFor } from "./route";
import { Icon } from "../ui/components";
import { useTexts } from "../locales/notFound.gen";

export function NotFound() {
  const t = useTexts();
  return (
    <div class="page">
      <div class="inner">
        <h1>{t.title}</h1>
        <p>{t.text}</p>
        <p><a class="button" href={hrefFor({ page: "new" })}>{hasRole("member") ? <><Icon name="add" /> {t.create}</> : t.home}</a></p>
      </div>
    </div>
  );
}
