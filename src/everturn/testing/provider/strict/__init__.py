"""Validation of requests, as strict as the real provider of each wire format, with its error messages.

- `request`: calls the checks of the format of a request
- `openai`, `chat`, `families`: OpenAI Chat Completions, and the families of compatible models
- `responses`, `items`: OpenAI Responses
- `messages`, `tools`, `blocks`, `pairs`, `server_blocks`: Anthropic Messages
- `gemini`, `proto`, `declarations`, `turns`, `gemini_tools`: Gemini
- `ollama`, `functions`: Ollama
- `converse`, `converse_body`: Amazon Bedrock Converse
- `clouds`: what only Azure OpenAI, Vertex AI or the vendor's own API has, for every format
- `schemas`: the schemas of structured output, for every format
- `media`, `images`, `audio`: OpenAI Images and Audio
"""
