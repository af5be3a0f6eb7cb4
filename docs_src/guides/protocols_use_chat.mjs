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
      // The server has the history, so send only the new message.
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
        body: { id, messages: messages.slice(-1), trigger, messageId },
      }),
    }),
    // Sends an answered approval automatically; the turn continues.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
