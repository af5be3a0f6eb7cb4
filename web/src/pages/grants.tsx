/** Grants: what was allowed, by whom, where and until when; and the button to revoke it. */
import { useState } from "preact/hooks";
import type { GrantList, GrantView } from "@everturn/client";
import { attempt, hasRole, toast } from "../app/app";
import { hrefFor } from "../app/route";
import { format, defineTexts } from "../app/texts";
import { Badge, Button, ErrorLine, Icon } from "../ui/components";
import { revokeGrant, type Fetched } from "./api";
import { RuleMatch } from "./ruleRow";

const useTexts = defineTexts(
  {
    title: "Allowed from then on", none: "Nobody has answered “always allow” yet. Such answers show up here, and can be taken back.",
    again: "Try again", everywhere: "everywhere", untitled: "a conversation", by: (actor: string, when: string) => `by ${actor}, ${when}`,
    until: (when: string) => `until ${when}`, forever: "until it is revoked", revoke: "Revoke", label: (tool: string) => `Revoke what was allowed for ${tool}`,
    gone: "Revoked. Such calls are asked about again.", owner: "What holds everywhere is revoked by an owner",
  },
  {
    title: "已长期允许", none: "还没有人选择“始终允许”。这类答复会显示在这里，并可随时撤销。",
    again: "重试", everywhere: "所有对话", untitled: "未命名对话", by: (actor: string, when: string) => `${actor}，${when}`,
    until: (when: string) => `有效期至 ${when}`, forever: "直到撤销", revoke: "撤销", label: (tool: string) => `撤销对 ${tool} 的允许`,
    gone: "已撤销。此类调用会再次询问。", owner: "对所有对话生效的允许由所有者撤销",
  },
);

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
          {isEverywhere ? <Badge tone="warn">{t.everywhere}</Badge> : <a class="ellipsis" href={hrefFor({ page: "session", session: grant.session ?? view.origin })}>{view.title || t.untitled}</a>}
          <span>{t.by(grant.by ?? "", format.moment(grant.at ?? 0))}</span>
          <span class="row"><Icon name="clock" /> {grant.expires ? t.until(format.moment(grant.expires)) : t.forever}</span>
        </p>
      </div>
      <Button little kind="danger" disabled={!mayRevoke || isBusy} title={isEverywhere && !mayRevoke ? t.owner : undefined} aria-label={t.label(grant.tool || grant.rule.tool)} onClick={revoke}>{t.revoke}</Button>
    </div>
  );
}
