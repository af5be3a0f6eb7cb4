/** Icons: one stroke each, in a square of 24. */
const PATHS = {
  add: "M12 5v14M5 12h14",
  alert: "M12 3 2 20h20zM12 10v4M12 17h.01",
  archive: "M3 5h18v4H3zM5 9v11h14V9M10 13h4",
  attach: "m20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.500 8.500a2 2 0 0 1-3-3L14 7",
  branch: "M6 4v16M6 14a6 6 0 0 0 6-6h6m0 0-3-3m3 3-3 3",
  browser: "M3 5h18v14H3zM3 9h18",
  chart: "M4 20V10M10 20V4M16 20v-7M22 20H2",
  chat: "M4 5h16v11H9l-5 4z",
  check: "m4 12 5 5L20 6",
  chevron: "m9 6 6 6-6 6",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  close: "M6 6l12 12M18 6 6 18",
  compact: "M12 2v7m0 0-3-3m3 3 3-3M12 22v-7m0 0-3 3m3-3 3 3M4 12h16",
  compare: "M4 4h6v16H4zM14 4h6v16h-6z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  download: "M12 4v11m0 0-4-4m4 4 4-4M4 20h16",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  inbox: "M3 13 6 4h12l3 9v7H3zM3 13h5l1.500 3h5L16 13h5",
  link: "M10 14a4 4 0 0 0 6 0l4-4a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-4 4a4 4 0 0 0 6 6l1-1",
  lock: "M6 11h12v10H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3",
  menu: "M4 6h16M4 12h16M4 18h16",
  microphone: "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3zM5 11v1a7 7 0 0 0 14 0v-1M12 19v3",
  more: "M5 12.700a.7.7 0 1 0 0-1.400.7.7 0 0 0 0 1.400zM12 12.700a.7.7 0 1 0 0-1.400.7.7 0 0 0 0 1.400zM19 12.700a.7.7 0 1 0 0-1.400.7.7 0 0 0 0 1.400z",
  pin: "M9 3h6l-1 7 4 4H6l4-4zM12 14v7",
  people: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM2 21a7 7 0 0 1 14 0M16 3.500a4 4 0 0 1 0 7M18 14a7 7 0 0 1 4 7",
  plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
  redo: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  revert: "M4 11a8 8 0 1 1 2 6M4 5v6h6",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  send: "M12 20V5m0 0-6 6m6-6 6 6",
  server: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  share: "M12 15V3m0 0L8 7m4-4 4 4M5 11H4v10h16V11h-1",
  sidebar: "M3 5h18v14H3zM9 5v14",
  speaker: "M4 9v6h4l5 4V5L8 9zM16 9a4 4 0 0 1 0 6M18.500 6a8 8 0 0 1 0 12",
  stop: "M7 7h10v10H7z",
  tag: "M4 4h8l8 8-8 8-8-8zM8.500 8.500h.01",
  thumb: "M7 11v9H3v-9zM7 11l4-8a3 3 0 0 1 3 3v3h5a2 2 0 0 1 2 2.300l-1.200 7a2 2 0 0 1-2 1.700H7",
  tool: "M14 6a4 4 0 0 1 5-3l-3 3 2 2 3-3a4 4 0 0 1-5 5L8 19a2 2 0 0 1-3-3z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  upload: "M12 15V4m0 0-4 4m4-4 4 4M4 20h16",
  wait: "M7 3h10M7 21h10M8 3c0 6 8 6 8 9s-8 3-8 9M16 3c0 6-8 6-8 9s8 3 8 9",
} as const;

export type IconName = keyof typeof PATHS;

/** Hidden from screen readers: the text beside it, or the label of the button, says what it means. */
export function Icon({ name, class: more = "" }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon-svg ${more}`} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
