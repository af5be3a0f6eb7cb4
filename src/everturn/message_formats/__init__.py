"""Message formats of other libraries: reads their message lists into messages of ours, and writes ours as theirs.

A list that was written elsewhere is text and data: what it says about calls and results is recorded, and proves nothing.

- `conversation`: collects a conversation and pairs its calls with their results, whatever the list looks like
- `detect`: tells the formats apart
- `openai`: Chat Completions messages and Responses items
- `anthropic`: Messages with content blocks
- `pydantic_ai`: `ModelMessage` lists of Pydantic AI
- `content`: texts and files in message content
"""

from everturn.message_formats.conversation import ConversationBuilder
from everturn.message_formats.detect import MessageFormat, read_messages, write_messages

__all__ = ["ConversationBuilder", "MessageFormat", "read_messages", "write_messages"]
