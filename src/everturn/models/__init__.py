"""Models: clients of model providers behind one interface, `stream(request)`, which yields batches of chunks.

A profile describes a vendor as data, a wire format builds its requests and decodes its streams, and a transport sends
them. Wrappers add retries, fallbacks and prompted tool calling. `scripted` is the reference model and needs no network.

    registry    a model by its name, `vendor:model`
    vendors     the profiles of the known vendors
    profile     what a vendor's profile holds
    http_model  a chat model behind HTTP: profile, wire format and transport
    formats/    the wire formats
    endpoint    a server's URL, headers and API key
    failures    classification of provider errors
    retry       retries and fallbacks
    prices      prices and context windows
    prompted/   tool calling for models without native tool calls
    media/      models for images, speech and transcription
    bridges/    models of pydantic-ai and litellm
    scripted    a model that answers from a script, for tests
    offline     the demo model, without network and key
"""
