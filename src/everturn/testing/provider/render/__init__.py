"""Answers in the wire format of the request, made from the items of a step.

- `answer`: walks over the items: which block opens, what its pieces are, where the stream breaks
- `writers`: the writer of each format
- `chat`, `responses`, `messages`, `gemini`, `ollama`, `converse`: how a format writes a block
- `media`, `media_models`: answers with images and audio, of the built-in models `image`, `voice` and `ear`
- `event_frames`: the frames of AWS event streams
"""
