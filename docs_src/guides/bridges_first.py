from everturn import Chat
from everturn.models.bridges.pydantic_ai import PydanticAIModel
from everturn.models.retry import RetryModel


def bridged(name: str = "google:gemini-3-pro") -> Chat:
    return Chat(RetryModel(PydanticAIModel(name)))
