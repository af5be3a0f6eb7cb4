import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from "ai";

export const useEverturn = (url, token, id) =>
  useChat({
    id,
    transport: new DefaultChatTransport({
      api: `${url}/ai-sdk/chat`,
      headers: { authorization: `Bearer ${token}` },
      // The server has the history: what is new is enough.
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        body: { id, messages: messages.slice(-1), trigger, messageId },
      }),
    }),
    // An answered approval is sent by itself, and the turn goes on.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
