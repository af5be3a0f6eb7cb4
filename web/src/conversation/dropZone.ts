/** Drop zone: files that are dragged over the page are for the composer, wherever they are dropped. */
import { useEffect, useState } from "preact/hooks";

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/** Whether files are over the page. While a dialog is open nothing takes them; while a message is edited, its composer does. */
export function usePageDrop(isEditing: boolean, add: (files: FileList) => void): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const isFree = () => !document.querySelector(isEditing ? "dialog[open]" : "dialog[open], .composer.edits");
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault(); // otherwise the browser would leave the page and open the file
      event.dataTransfer!.dropEffect = isFree() ? "copy" : "none";
      setOver(isFree());
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false); // out of the window
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      if (isFree()) add(event.dataTransfer!.files);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  });
  return isOver;
}
