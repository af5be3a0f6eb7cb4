"""Questions: what would happen, exactly, and the keys to answer."""
