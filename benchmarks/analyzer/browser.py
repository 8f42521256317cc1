"""Chromium without a window or a network, and when a page in it has changed for the last time."""

import json
import os
import select
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)
_WINDOW = "--window-size=1300,900"
_READ_FROM, _WRITE_TO = 3, 4  # where Chromium looks for the pipes
_NOTES = """new MutationObserver(() => {
  if (!document.querySelector(".main-svg")) return;
  const now = performance.now() / 1000;
  const charts = [...document.querySelectorAll(".plot, .plotly-graph-div")].filter((chart) => {
    const { top, bottom } = chart.getBoundingClientRect();
    return bottom > 0 && top < window.innerHeight;
  });
  const shown = charts.length > 0 && charts.every((chart) => chart.querySelector(".main-svg"));
  const before = window.numaplanDrawn ? window.numaplanDrawn[0] : null;
  window.numaplanDrawn = [shown ? before ?? now : null, now];
}).observe(document, { attributes: true, childList: true, subtree: true });"""
_STILL_S, _MOST_S = 1.0, 60.0  # without a change it is done; longer, and something is wrong


class Browser:
    """Started when it is entered; ended, and all it kept removed, when it is left."""

    def __init__(self, program: str) -> None:
        self._program, self._number, self._held = program, 0, b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def __enter__(self) -> "Browser":
        (reads, self._to), (self._from, writes) = os.pipe(), os.pipe()
        words = [
            self._program,
            *_OPTIONS,
            _WINDOW,
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
        ]
        shell = f'exec {_READ_FROM}<&{reads} {_WRITE_TO}>&{writes}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "-", *words, "about:blank"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def drawn(self, page: str) -> tuple[float, float]:
        """Seconds from the start of loading the page of an address until all charts in the window are drawn,
        and until its last change."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable", session)
        self._call("Page.addScriptToEvaluateOnNewDocument", session, source=_NOTES)
        self._call("Page.navigate", session, url=page)
        before, since, began = None, time.monotonic(), time.monotonic()
        while before is None or time.monotonic() - since < _STILL_S:
            asked = self._call(
                "Runtime.evaluate", session, expression="window.numaplanDrawn", returnByValue=True
            )
            found = asked["result"].get("value")
            if found != before:
                before, since = found, time.monotonic()
            if time.monotonic() - began > _MOST_S:
                raise RuntimeError(f"{page}: not drawn in {_MOST_S:.0f} s")
            time.sleep(0.1)
        self._call("Target.closeTarget", targetId=target)
        if before[0] is None:
            raise RuntimeError(f"{page}: no chart is in the window, or not all of them are drawn")
        return before[0], before[1]

    def _call(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        os.write(self._to, json.dumps(asked | ({"sessionId": session} if session else {})).encode() + b"\0")
        answer = self._next()
        while answer.get("id") != self._number:  # events come between
            answer = self._next()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._from], [], [], _MOST_S)
            more = os.read(self._from, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser ended, or says nothing")
            self._held += more
        first, self._held = self._held.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(first)
        return answer
