import { HttpAgent } from "@ag-ui/client";

export async function talk(url, token, text) {
  const agent = new HttpAgent({
    url: `${url}/ag-ui`,
    headers: { authorization: `Bearer ${token}` },
    initialMessages: [{ id: "1", role: "user", content: text }],
  });
  let resume;
  do {
    let outcome;
    await agent.runAgent(resume ? { resume } : {}, {
      onRunFinishedEvent: ({ event }) => void (outcome = event.outcome),
    });
    // Every gate is an interrupt; this example allows all of them.
    resume = outcome?.interrupts?.map(({ id }) => ({
      interruptId: id,
      status: "resolved",
      payload: { approved: true },
    }));
  } while (resume);
  return agent.messages;
}
