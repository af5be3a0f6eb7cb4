/** Grants: what was allowed, by whom, where and until when; and the button to revoke it. */
import { useState } from "preact/hooks";
import type { GrantList, GrantView } from "@everturn/client";
import { attempt, hasRole, toast } from "../app/app";
import { hrefFor } from "../app/route";
import { format } from "../app/texts";
import { showInvisible } from "../conversation/textEscapes";
import { Badge, Button, ErrorLine, Icon } from "../ui/components";
import { type Fetched } from "../app/useFetch";
import { revokeGrant } from "./api";
import { RuleMatch } from "./ruleRow";
import { useTexts } from "../locales/grants.gen";

export function Grants({ fetched }: { fetched: Fetched<GrantList> }) {
  const t = useTexts();
  const all = fetched.value?.grants;
  return (
    <section class="part" aria-labelledby="the-grants">
      <h2 id="the-grants">{t.title} {all && <span class="muted count">{all.length}</span>}</h2>
      {fetched.problem && <div class="row wrap"><ErrorLine>{fetched.problem}</ErrorLine><Button little onClick={fetched.reload}>{t.again}</Button></div>}
      {all?.length === 0 && <p class="card muted">{t.none}</p>}
      {all && all.length > 0 && <ul class="plain card">{all.map((granted) => <li key={`${granted.origin} ${granted.grant.id}`}><GrantRow view={granted} reload={fetched.reload} /></li>)}</ul>}
    </section>
  );
}

function GrantRow({ view, reload }: { view: GrantView; reload: () => void }) {
  const t = useTexts();
  const [isBusy, setBusy] = useState(false);
  const { grant } = view;
  const isEverywhere = !grant.session;
  const mayRevoke = hasRole(isEverywhere ? "owner" : "approver");
  const revoke = async () => {
    setBusy(true);
    await attempt(revokeGrant(grant.id).then(() => toast(t.gone)));
    setBusy(false);
    reload();
  };
  return (
    <div class="rule">
      <div class="grow what">
        <code class="tool">{grant.tool || grant.rule.tool}</code>
        <RuleMatch match={grant.rule.match} />
        <p class="small muted row wrap facts">
          {isEverywhere ? <Badge tone="warn">{grant.folder ? showInvisible(grant.folder) : t.everywhere}</Badge> : <a class="ellipsis" href={hrefFor({ page: "session", session: grant.session ?? view.origin })}>{view.title || t.untitled}</a>}
          <span>{t.by(grant.by ?? "", format.moment(grant.at ?? 0))}</span>
          <span class="row"><Icon name="clock" /> {grant.expires ? t.until(format.moment(grant.expires)) : t.forever}</span>
        </p>
      </div>
      <Button little kind="danger" disabled={!mayRevoke || isBusy} title={isEverywhere && !mayRevoke ? t.owner : undefined} aria-label={t.label(grant.tool || grant.rule.tool)} onClick={revoke}>{t.revoke}</Button>
    </div>
  );
}
