"""Vendors: the profiles of the vendors that are known by name. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from everturn.models.profile import Profile

_IMAGES_AND_PDF = frozenset({"image", "pdf"})
_NOTHING: frozenset[str] = frozenset()
# A schema holds from the first token on, so a model calls nothing; and not every local model can call tools at all.
_LOCAL: Final[Mapping[str, Any]] = {"has_schema_with_tools": False, "has_output_tool": False}
_NO_OUTPUT_SCHEMA: Final[Mapping[str, Any]] = {"has_output_schema": False}
# Structured outputs begin with gpt-4o-2024-08-06 (developers.openai.com/api/docs/guides/structured-outputs).
_OPENAI_OUTPUT: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(("gpt-3.*", "gpt-4", "gpt-4-*", "gpt-4o-2024-05-13", "o1-mini*", "o1-preview*"), _NO_OUTPUT_SCHEMA),
    "ft:*": {"output_subset": "openai-fine-tuned"},
}
_NO_SEALS: Final[Mapping[str, Mapping[str, Any]]] = {
    pattern: {"has_encrypted_reasoning": False} for pattern in ("gpt-3*", "gpt-4*", "*-chat*", "chatgpt*")
}
# Older models have lower limits, and refuse a higher value. Structured outputs begin with 4.5
# (platform.claude.com/docs/en/build-with-claude/structured-outputs).
_CLAUDE_OLDER: Final[Mapping[str, Mapping[str, Any]]] = {
    **{
        pattern: {**_NO_OUTPUT_SCHEMA, "reasoning": "budget"}
        for pattern in ("claude-2*", "claude-3*", "claude-*-4-0*", "claude-*-4-1*", "claude-*-4-2025*")
    },
    "claude-*-4-5*": {"reasoning": "budget"},  # later ones think adaptively, and refuse a budget
    "claude-3-*": {"default_max_tokens": 4096},
    "claude-3-5-*": {"default_max_tokens": 8192},
    "claude-3-7-*": {"default_max_tokens": 16_384},
}
# docs.aws.amazon.com/bedrock/latest/userguide: conversation-inference-supported-models-features (files), prompt-caching
# (what is marked; Nova caches by itself, too), structured-output, tool-use (only some models can be made to call).
_BEDROCK: Final[Mapping[str, Mapping[str, Any]]] = {
    "*anthropic.claude-*": {
        "reasoning": "adaptive",
        "default_max_tokens": 16_384,
        "has_output_schema": True,
        "can_force_call": True,
        "has_cache_markers": True,
    },
    **{f"*anthropic.{pattern}": older for pattern, older in _CLAUDE_OLDER.items()},
    "*amazon.nova-*": {"reasoning": "nova", "can_force_call": True},
    "*mistral.mistral-large-*": {"can_force_call": True},
    **{
        pattern: {"inputs": _NOTHING}
        for pattern in (
            "*amazon.nova-micro*",
            "*cohere.*",
            "*deepseek.*",
            "*meta.llama3-1-*",
            "*meta.llama3-3-*",
            "*openai.gpt-oss*",
        )
    },
}
_GEMINI_OLDER: Final[Mapping[str, Mapping[str, Any]]] = {
    pattern: {"has_schema_with_tools": False, "reasoning": "level-budget"} for pattern in ("gemini-1*", "gemini-2*")
}
# "Built-in tools and Function Calling cannot be combined": github.com/lbjlaq/Antigravity-Manager/issues/2241; from Gemini 3
# on they can: ai.google.dev/gemini-api/docs/tool-combination. Gemini 1 has an older search tool, which is not declared.
_GEMINI_TOOLS: Final = {"gemini-1*": "", "gemini-2*": "alone"}
_MEDIA: Final[Mapping[str, Mapping[str, Any]]] = {
    "dall-e-*": {"modality": "image-gen"},
    "gpt-image-*": {"modality": "image-gen", "image_params": {}},
    "whisper*": {"modality": "audio-stt"},
    "*-transcribe*": {"modality": "audio-stt"},
    "tts-*": {"modality": "audio-tts"},
    "*-tts*": {"modality": "audio-tts"},
}

VENDORS: Final[Mapping[str, Profile]] = {
    profile.vendor: profile
    for profile in (
        Profile(
            vendor="openai",
            format="responses",
            base_url="https://api.openai.com/v1",
            key="OPENAI_API_KEY",
            prices="openai",
            inputs=_IMAGES_AND_PDF,
            provider_tools="mixed",
            models={**_NO_SEALS, **_OPENAI_OUTPUT, **_MEDIA},
        ),
        Profile(
            vendor="openai-chat",
            base_url="https://api.openai.com/v1",
            key="OPENAI_API_KEY",
            prices="openai",
            inputs=_IMAGES_AND_PDF,
            max_tokens="max_completion_tokens",
            system="developer",
            think="off",
            models={
                "*audio*": {"inputs": frozenset({"audio"})},
                "gpt-3.5*": {"system": "system", "inputs": _NOTHING},
                **_OPENAI_OUTPUT,
                **_MEDIA,
            },
        ),
        Profile(
            vendor="anthropic",
            format="messages",
            base_url="https://api.anthropic.com/v1",
            key="ANTHROPIC_API_KEY",
            prices="anthropic",
            headers={"anthropic-version": "2023-06-01"},
            inputs=_IMAGES_AND_PDF,
            default_max_tokens=16_384,
            has_cache_markers=True,
            has_json_mode=False,
            provider_tools="mixed",
            models=_CLAUDE_OLDER,
        ),
        Profile(
            vendor="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key="OPENROUTER_API_KEY",
            prices="openrouter",
            inputs=_IMAGES_AND_PDF,
            reasoning="object",
            models={"anthropic/*": {"has_cache_markers": True}},
            # It passes a schema on to whoever has the model; what is not supported there is an error.
            # openrouter.ai/docs/features/structured-outputs
        ),
        Profile(
            vendor="deepseek",
            base_url="https://api.deepseek.com",
            key="DEEPSEEK_API_KEY",
            prices="deepseek",
            inputs=_NOTHING,
            reasoning="switch-and-effort",
            replay="reasoning_content",
            # json_object only: github.com/llm-exe/llm-exe/issues/662
            has_output_schema=False,
            models={"*reasoner*": {"can_force_call": False}},
        ),
        Profile(
            vendor="qwen",
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            key="DASHSCOPE_API_KEY",
            # json_object for most models, and no `required` (our own knowledge, not from a document)
            has_output_schema=False,
            can_force_call=False,
            reasoning="enable",
        ),
        Profile(
            vendor="kimi",
            base_url="https://api.moonshot.ai/v1",
            key="MOONSHOT_API_KEY",
            prices="moonshotai",
            ids="kimi",
            reasoning="switch",
            replay="reasoning_content",
            filler="(not kept)",  # an empty text is also refused
            # json_object; a forced call is refused while it thinks, which most of its models always do
            # (docs.rs/crate/harn-vm/latest/source/src/llm/capability_sources/20-providers/35-moonshot.toml)
            has_output_schema=False,
            can_force_call=False,
        ),
        Profile(
            vendor="mistral",
            base_url="https://api.mistral.ai/v1",
            key="MISTRAL_API_KEY",
            prices="mistral",
            ids="nine",
            has_usage_option=False,
            can_follow_tool=False,
            has_schema_with_tools=False,  # our own knowledge: JSON beside tools is refused
            continuation="prefix",
        ),
        Profile(
            vendor="groq",
            base_url="https://api.groq.com/openai/v1",
            key="GROQ_API_KEY",
            prices="groq",
            max_tokens="max_completion_tokens",
            has_output_schema=False,  # our own knowledge: not for streams, nor beside tools
            models=_MEDIA,
        ),
        Profile(
            vendor="gemini",
            format="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            key="GEMINI_API_KEY",
            prices="google",
            inputs=frozenset({"image", "audio", "pdf"}),
            provider_tools="mixed",
            models={name: {**older, "provider_tools": _GEMINI_TOOLS[name]} for name, older in _GEMINI_OLDER.items()},
        ),
        Profile(
            vendor="gemini-chat",  # its OpenAI-compatible API
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key="GEMINI_API_KEY",
            prices="google",
        ),
        Profile(
            vendor="ollama",
            format="ollama",
            base_url="http://127.0.0.1:11434",
            continuation="last",
            replay="thinking",
            decoding_constraint="schema",
            **_LOCAL,
            can_force_call=False,
            models={"gpt-oss*": {"reasoning": "think-level"}},
        ),
        Profile(  # its OpenAI-compatible API
            vendor="ollama-chat",
            base_url="http://127.0.0.1:11434/v1",
            output_subset="llamacpp",
            **_LOCAL,
            can_force_call=False,
        ),
        Profile(
            vendor="vllm",
            base_url="http://127.0.0.1:8000/v1",
            decoding_constraint="schema",
            output_subset="vllm",
            **_LOCAL,
        ),
        Profile(
            vendor="llamacpp",
            base_url="http://127.0.0.1:8080/v1",
            must_alternate=True,
            decoding_constraint="grammar",
            output_subset="llamacpp",
            **_LOCAL,
        ),
        Profile(
            vendor="azure",  # the model is the name of a deployment
            format="responses",
            cloud="azure",
            key="AZURE_OPENAI_API_KEY",
            prices="azure",
            inputs=_IMAGES_AND_PDF,
            models={**_NO_SEALS, **_OPENAI_OUTPUT},
        ),
        Profile(
            vendor="azure-chat",
            cloud="azure",
            key="AZURE_OPENAI_API_KEY",
            prices="azure",
            max_tokens="max_completion_tokens",
            system="developer",
            think="off",
            models={"gpt-3.5*": {"system": "system", "inputs": _NOTHING}, **_OPENAI_OUTPUT},
        ),
        Profile(
            vendor="vertex",
            format="gemini",
            cloud="vertex",
            prices="google",
            inputs=frozenset({"image", "audio", "pdf"}),
            models={
                **_GEMINI_OLDER,
                "claude-*": {
                    "format": "messages",
                    "has_model_field": False,
                    "params": {"anthropic_version": "vertex-2023-10-16"},
                    "inputs": _IMAGES_AND_PDF,
                    "default_max_tokens": 16_384,
                    "has_cache_markers": True,
                    "has_json_mode": False,
                },
                **_CLAUDE_OLDER,
                "claude-*-4@*": {**_NO_OUTPUT_SCHEMA, "reasoning": "budget"},  # the date is behind an @ here
            },
        ),
        Profile(
            vendor="bedrock",
            format="converse",
            cloud="bedrock",
            key="AWS_BEARER_TOKEN_BEDROCK",
            prices="aws",
            inputs=_IMAGES_AND_PDF,
            has_model_field=False,
            has_output_schema=False,
            can_force_call=False,
            has_json_mode=False,
            models=_BEDROCK,
        ),
        Profile(vendor="compatible"),  # any other server; the caller gives its base URL
    )
}
