/** Button of the composer that opens the parameters of a conversation; marked when there are some. */
import { useEffect, useState } from "preact/hooks";
import { lazy } from "../app/lazy";
import { useStore } from "../app/store";
import { Button } from "../ui/components";
import { fetchParameters, isDefault, parametersBySession } from "./parameters";
import { useTexts } from "../locales/parameters.gen";

const ParametersDialog = lazy(async () => (await import("./parametersDialog")).ParametersDialog, true);

export function ParametersButton({ session = "" }: { session?: string }) {
  const t = useTexts();
  const [isOpen, setOpen] = useState(false);
  const known = useStore(parametersBySession).get(session);
  useEffect(() => {
    // Without an answer the button is not marked; the dialog asks again.
    if (!known) fetchParameters(session).catch(() => {});
  }, [session]);
  const isSet = known !== undefined && !isDefault(known);
  return (
    <>
      <Button kind="quiet" little icon="settings" class={isSet ? "parameters-set" : ""} aria-label={isSet ? t.changed : t.title} aria-haspopup="dialog" onClick={() => setOpen(true)} />
      {isOpen && <ParametersDialog session={session} onClose={() => setOpen(false)} />}
    </>
  );
}
