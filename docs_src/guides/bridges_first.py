from everturn import Chat
from everturn.models.bridges.pydantic_ai import PydanticAIModel
from everturn.models.retrying import Retrying


def bridged(name: str = "google:gemini-3-pro") -> Chat:
    return Chat(Retrying(PydanticAIModel(name)))
