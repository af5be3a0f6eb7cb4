/** Compare models: the button of the composer that chooses them, and the line that names them. */
import { useState } from "preact/hooks";
import { lazy } from "../app/lazy";
import { useStore } from "../app/store";
import { modelsOf } from "../pages/agentChoice";
import { useCurrentChoice } from "../pages/pickers";
import { Badge, Button } from "../ui/components";
import { comparedModels, setComparedModels } from "./comparedModels";
import { useTexts } from "../locales/comparison.gen";

const ModelPicker = lazy(async () => (await import("../pages/modelPicker")).ModelPicker, true);

export function CompareButton({ session = "" }: { session?: string }) {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  const { agent, model } = useCurrentChoice(session || undefined);
  const chosen = useStore(comparedModels).get(session);
  if (!agent || modelsOf(agent).length < 2) return null;
  return (
    <>
      <Button kind="quiet" little icon="compare" class={chosen ? "parameters-set" : ""} aria-label={t.compare} aria-haspopup="dialog" onClick={() => setOpen(true)} />
      {isOpen && <ModelPicker names={modelsOf(agent)} own={agent.model} current={model} compared={chosen ?? [model]} onClose={() => setOpen(false)}
        onCompare={(models) => setComparedModels(session, models)} />}
    </>
  );
}

export function ComparedLine({ session = "" }: { session?: string }) {
  const t = useTexts();
  const chosen = useStore(comparedModels).get(session);
  if (!chosen) return null;
  return (
    <p class="compared small" role="group" aria-label={t.compared}>
      {chosen.map((model) => <Badge key={model}>{model}</Badge>)}
      <Button kind="quiet" little icon="close" aria-label={t.clear} onClick={() => setComparedModels(session, [])} />
    </p>
  );
}
