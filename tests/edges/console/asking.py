"""What the console's tests share: its address, and a look at what it shows."""

from __future__ import annotations

from typing import Any

import httpx2

HOST = "127.0.0.1:4321"
CHANGE = {"origin": f"http://{HOST}"}


async def shown(page: httpx2.AsyncClient, what: str, **parameters: Any) -> Any:
    answer = await page.get(f"/console/api/{what}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()
