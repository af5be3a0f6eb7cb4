"""Images and audio in requests, and small files for answers.

- `requests`, `multipart`: read requests for images and audio
- `png`, `sound`: small pictures and sounds
"""
