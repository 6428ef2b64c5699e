"""Tells whoever started a service at which address it takes calls."""

from __future__ import annotations

import json
import os
from pathlib import Path

from turngate_serving.exit import StartError


def say_ready(file: str, address: str) -> None:
    """Write `{"address": "host:port"}` to the file, whole or not at all; "" for no file.

    Raises `StartError` if it cannot be written.
    """
    if not file:
        return
    ready = Path(file)
    half = ready.with_name(f"{ready.name}.{os.getpid()}.tmp")
    try:
        half.write_text(json.dumps({"address": address}) + "\n", encoding="utf-8")
        half.replace(ready)  # whoever waits for it never reads half of it
    except OSError as error:
        raise StartError(f"cannot write {file}: {error.strerror}") from error
