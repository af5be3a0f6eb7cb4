from everturn import Chat
from everturn.models import RetryModel
from everturn.models.bridges.pydantic_ai import PydanticAIModel


def bridged(name: str = "google:gemini-3-pro") -> Chat:
    return Chat(RetryModel(PydanticAIModel(name)))
