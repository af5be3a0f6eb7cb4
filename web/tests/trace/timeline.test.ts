import { describe, expect, test } from "vitest";
import type { TraceSpan } from "@everturn/client";
import { buildRows, buildScale } from "../../src/trace/timeline";

const span = (id: string, kind: TraceSpan["kind"], start: number, end: number, more: Partial<TraceSpan> = {}): TraceSpan => ({ id, kind, name: id, start, end, ...more });

describe("rows", () => {
  test("each span is below its parent, by their starts; a span whose parent is unknown is at the top", () => {
    const rows = buildRows([span("step:1", "step", 1, 3), span("call:b", "call", 4, 6, { parent: "step:1" }), span("call:a", "call", 3, 5, { parent: "step:1" }), span("gate:g", "gate", 3, 4, { parent: "call:a" }), span("x", "mark", 9, 9, { parent: "gone" })]);
    expect(rows.map(({ span: { id }, depth }) => [id, depth])).toEqual([["step:1", 0], ["call:a", 1], ["gate:g", 2], ["call:b", 1], ["x", 0]]);
  });
});

describe("scale", () => {
  const spans = [span("step:1", "step", 100, 110), span("call:a", "call", 110, 86_520, { parent: "step:1", active_at: 86_510 }), span("gate:g", "gate", 110, 86_510, { parent: "call:a" }), span("step:2", "step", 86_520, 86_540)];

  test("a day at an approval leaves room for the work around it", () => {
    const { at, breaks } = buildScale(spans, 100, 86_540);
    expect([at(100), at(86_540)]).toEqual([0, 100]);
    expect(breaks).toHaveLength(1);
    expect(breaks[0]!.seconds).toBe(86_400);
    expect(breaks[0]!.width).toBeLessThan(15);
    expect((at(86_540) - at(86_520)) / (at(110) - at(100))).toBeCloseTo(2);
  });

  test("it never goes backwards, and without waiting it is linear", () => {
    const { at } = buildScale(spans, 100, 86_540);
    const places = Array.from({ length: 200 }, (_, index) => at(100 + index * 432.2));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    const linear = buildScale([span("step:1", "step", 0.5, 10)], 0.5, 10);
    expect(linear.at(5.25)).toBeCloseTo(50);
    expect(linear.breaks).toEqual([]);
  });

  test("a tool that waits for a timer is waited for, one that works beside an open gate is not", () => {
    const waits = [span("call:a", "call", 0.1, 1000, { active_at: 1 }), span("wait:a", "wait", 5, 995, { parent: "call:a" })];
    expect(buildScale(waits, 0.1, 1000).breaks).toHaveLength(1);
    expect(buildScale([...waits, span("call:b", "call", 0.1, 1000, { active_at: 1 })], 0.1, 1000).breaks).toEqual([]);
  });
});
