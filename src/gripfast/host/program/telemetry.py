"""What the environment says about OpenTelemetry, in the variables that its specification names."""

from __future__ import annotations

import os

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_YES = ("true", "1")


def traces_wanted() -> bool:
    """Whether traces are to be sent somewhere.

    https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(os.environ.get(name) for name in _ENDPOINTS)


def content_wanted() -> bool:
    """Whether traces may have what a call was given and what it answered."""
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() in _YES
