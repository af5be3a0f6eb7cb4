"""What a model can remember and find again.

- `user_memory`: memory files of a user, their changes, and their port
- `recall`: search in the messages of a conversation, and messages as a model recalls them
- `search_terms`: the terms of a text and of a search query
"""
