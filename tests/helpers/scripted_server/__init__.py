"""The real server with a scripted model behind it."""
