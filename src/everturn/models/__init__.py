"""Models: clients of model providers behind one interface, `stream(request)`, which yields batches of chunks.

A profile describes a vendor as data, a wire format builds its requests and decodes its streams, and a transport sends
them. Wrappers add retries, fallbacks and prompted tool calling. `scripted` is the reference model and needs no network.

    registry    a model by its name, `vendor:model`
    vendors     the profiles of the known vendors
    profile     what a vendor's profile holds
    http_model  a chat model behind HTTP: profile, wire format and transport
    formats/    the wire formats
    wire_formats  a wire format by its name
    structured_output/  answers that are JSON of a schema
    endpoint    a server's URL, headers and API key
    clouds/     URLs and credentials of Azure OpenAI, Vertex AI and Amazon Bedrock
    failures    classification of provider errors
    load        imports what a first request needs, before there is one
    retry       retries and fallbacks
    limited     rate limits: a request waits for one, and goes to the deployment with most room
    rate_headers  the headers in which providers tell their rate limits
    prices      prices and context windows
    prompted/   tool calling for models without native tool calls
    media/      models for images, speech and transcription
    uploads/    large files, uploaded once and named by reference
    multipart   multipart/form-data bodies
    bridges/    models of pydantic-ai and litellm
    scripted    a model that answers from a script, for tests
    workflow    the built-in model of a workflow, which makes one call
    offline     the demo model, without network and key
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.chunks import (
        CallChunk,
        Chunk,
        CitationChunk,
        FileChunk,
        FinishChunk,
        OpaqueChunk,
        ProviderToolChunk,
        ReasoningChunk,
        RetryChunk,
        TextChunk,
        TextEndChunk,
        UsageChunk,
        WaitChunk,
    )
    from everturn.core.ports import Model
    from everturn.core.rate_limits import LimiterOptions, RateLimit
    from everturn.core.requests import (
        ModelRequest,
        RequestCall,
        RequestMessage,
        RequestPart,
        RequestResult,
    )
    from everturn.models.limited import ModelDeployment
    from everturn.models.prices import (
        ModelFacts,
        Price,
    )
    from everturn.models.profile import Profile
    from everturn.models.prompted import PromptedModel
    from everturn.models.retry import (
        FallbackModel,
        RetryModel,
        RetryPolicy,
    )

# Imported when they are first asked for.
_HOMES = {
    "CallChunk": "everturn.core.chunks",
    "Chunk": "everturn.core.chunks",
    "CitationChunk": "everturn.core.chunks",
    "FallbackModel": "everturn.models.retry",
    "FileChunk": "everturn.core.chunks",
    "FinishChunk": "everturn.core.chunks",
    "LimiterOptions": "everturn.core.rate_limits",
    "Model": "everturn.core.ports",
    "ModelDeployment": "everturn.models.limited",
    "ModelFacts": "everturn.models.prices",
    "ModelRequest": "everturn.core.requests",
    "OpaqueChunk": "everturn.core.chunks",
    "Price": "everturn.models.prices",
    "Profile": "everturn.models.profile",
    "PromptedModel": "everturn.models.prompted",
    "ProviderToolChunk": "everturn.core.chunks",
    "RateLimit": "everturn.core.rate_limits",
    "ReasoningChunk": "everturn.core.chunks",
    "RequestCall": "everturn.core.requests",
    "RequestMessage": "everturn.core.requests",
    "RequestPart": "everturn.core.requests",
    "RequestResult": "everturn.core.requests",
    "RetryChunk": "everturn.core.chunks",
    "RetryModel": "everturn.models.retry",
    "RetryPolicy": "everturn.models.retry",
    "TextChunk": "everturn.core.chunks",
    "TextEndChunk": "everturn.core.chunks",
    "UsageChunk": "everturn.core.chunks",
    "WaitChunk": "everturn.core.chunks",
}

__all__ = [
    "CallChunk",
    "Chunk",
    "CitationChunk",
    "FallbackModel",
    "FileChunk",
    "FinishChunk",
    "LimiterOptions",
    "Model",
    "ModelDeployment",
    "ModelFacts",
    "ModelRequest",
    "OpaqueChunk",
    "Price",
    "Profile",
    "PromptedModel",
    "ProviderToolChunk",
    "RateLimit",
    "ReasoningChunk",
    "RequestCall",
    "RequestMessage",
    "RequestPart",
    "RequestResult",
    "RetryChunk",
    "RetryModel",
    "RetryPolicy",
    "TextChunk",
    "TextEndChunk",
    "UsageChunk",
    "WaitChunk",
]

__getattr__ = lazy_exports(__name__, _HOMES)
