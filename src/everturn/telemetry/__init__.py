"""What operators see: traces, metrics and logs. Events in, spans and counts and lines out; nothing of what people say."""
