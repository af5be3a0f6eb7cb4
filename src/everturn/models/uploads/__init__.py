"""Uploads: sends large files to the files API of a vendor once, and names them by reference in requests.

file_api   what an API of a vendor does, and which files it takes
openai, anthropic, gemini  the three APIs
references  the references of a request, from the register of the session
"""

from everturn.models.uploads.references import FileReferences

__all__ = ["FileReferences"]
