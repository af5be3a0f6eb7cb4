"""Vendors: the profiles of the vendors that are known by name. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from everturn.models.profile import Profile

_IMAGES_AND_PDF = frozenset({"image", "pdf"})
_NOTHING: frozenset[str] = frozenset()
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
            models={
                **{
                    pattern: {"has_encrypted_reasoning": False}
                    for pattern in ("gpt-3*", "gpt-4*", "*-chat*", "chatgpt*")
                },
                **_MEDIA,
            },
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
            # Older models have lower limits, and refuse a higher value.
            models={
                "claude-3-*": {"default_max_tokens": 4096},
                "claude-3-5-*": {"default_max_tokens": 8192},
                "claude-3-7-*": {"default_max_tokens": 16_384},
            },
        ),
        Profile(
            vendor="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key="OPENROUTER_API_KEY",
            prices="openrouter",
            inputs=_IMAGES_AND_PDF,
            models={"anthropic/*": {"has_cache_markers": True}},
        ),
        Profile(
            vendor="deepseek",
            base_url="https://api.deepseek.com",
            key="DEEPSEEK_API_KEY",
            prices="deepseek",
            inputs=_NOTHING,
            replay="reasoning_content",
        ),
        Profile(
            vendor="qwen",
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            key="DASHSCOPE_API_KEY",
        ),
        Profile(
            vendor="kimi",
            base_url="https://api.moonshot.ai/v1",
            key="MOONSHOT_API_KEY",
            prices="moonshotai",
            ids="kimi",
            replay="reasoning_content",
            filler="(not kept)",  # an empty text is also refused
        ),
        Profile(
            vendor="mistral",
            base_url="https://api.mistral.ai/v1",
            key="MISTRAL_API_KEY",
            prices="mistral",
            ids="nine",
            has_usage_option=False,
            can_follow_tool=False,
        ),
        Profile(
            vendor="groq",
            base_url="https://api.groq.com/openai/v1",
            key="GROQ_API_KEY",
            prices="groq",
            max_tokens="max_completion_tokens",
            models=_MEDIA,
        ),
        Profile(
            vendor="gemini",
            format="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            key="GEMINI_API_KEY",
            prices="google",
            inputs=frozenset({"image", "audio", "pdf"}),
            models={pattern: {"has_schema_with_tools": False} for pattern in ("gemini-1*", "gemini-2*")},
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
            replay="thinking",
            decoding_constraint="schema",
        ),
        Profile(vendor="ollama-chat", base_url="http://127.0.0.1:11434/v1"),  # its OpenAI-compatible API
        Profile(vendor="vllm", base_url="http://127.0.0.1:8000/v1", decoding_constraint="schema"),
        Profile(
            vendor="llamacpp", base_url="http://127.0.0.1:8080/v1", must_alternate=True, decoding_constraint="grammar"
        ),
        Profile(vendor="compatible"),  # any other server; the caller gives its base URL
    )
}
