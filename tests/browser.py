"""A headless Chromium, driven through its DevTools protocol: opens a page, asks it, watches what it says and wants."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websocket import WebSocketTimeoutException, create_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM = shutil.which("chromium")
PATIENCE_S = 60.0
_FLAGS = (
    "--headless",
    "--no-sandbox",  # as root it starts no other way
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


class Tab:
    """The one page of a browser. ``complaints``: what its console said; ``requests``: the addresses it asked for."""

    def __init__(self, url: str) -> None:
        self._socket = create_connection(url, timeout=PATIENCE_S)
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol and its answer."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._note(message)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def open(self, page: Path) -> None:
        """Open a file as a double click does, and wait until it has been drawn."""
        self.call("Page.navigate", url=page.as_uri())
        self.wait("document.readyState === 'complete'")
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def wait(self, expression: str) -> None:
        """Until an expression is true in the page."""
        end = time.monotonic() + PATIENCE_S
        while not self.ask(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def size(self, width: int, height: int = 900, *, phone: bool = False) -> None:
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def theme(self, name: str) -> None:
        """What the system prefers: ``light`` or ``dark``."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def point_at(self, selector: str) -> None:
        """Put the pointer on the middle of the first element that is found."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{element}.scrollIntoView({{block: 'center'}})")
        x, y = self.ask(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())"
        )
        self.ask("new Promise((done) => setTimeout(done, 100))")  # scrolling hides what the pointer showed
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """What is to be seen, or the whole page."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def picture(self, path: Path, selectors: str, *, scale: float = 1.5, margin: int = 10) -> None:
        """The part of the page that holds all elements of these selectors."""
        corners = (
            f"(() => {{ const all = [...document.querySelectorAll({json.dumps(selectors)})]"
            ".map((each) => each.getBoundingClientRect());"
            " return [Math.min(...all.map((box) => box.left)), Math.min(...all.map((box) => box.top)) + scrollY,"
            " Math.max(...all.map((box) => box.right)), Math.max(...all.map((box) => box.bottom)) + scrollY]; })()"
        )
        left, top, right, bottom = self.ask(corners)
        clip = {"x": left - margin, "y": top - margin, "width": right - left + 2 * margin}
        clip |= {"height": bottom - top + 2 * margin, "scale": scale}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Let the page go."""
        self._socket.close()

    def resolve(self) -> None:
        """Read what the page still has to say."""
        self._socket.settimeout(0.3)
        try:
            while True:
                self._note(json.loads(self._socket.recv()))
        except WebSocketTimeoutException:
            self._socket.settimeout(PATIENCE_S)

    def _note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))


_KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "Escape": 27}


@contextmanager
def tab() -> Iterator[Tab]:
    """A browser with a profile of its own, and its page."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        line = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        browser = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            page = Tab(_page_address(Path(profile), browser))
            yield page
            page.call("Browser.close")
            page.close()
            browser.wait(PATIENCE_S)
        finally:
            browser.kill()
            browser.wait()


def _page_address(profile: Path, browser: subprocess.Popen[bytes]) -> str:
    """The socket of the browser's page, when it has one."""
    from urllib.request import urlopen

    ready, end = profile / "DevToolsActivePort", time.monotonic() + PATIENCE_S
    while not (ready.is_file() and "\n" in ready.read_text()):
        assert browser.poll() is None, "chromium ended"
        assert time.monotonic() < end, "chromium does not start"
        time.sleep(0.05)
    port = ready.read_text().split("\n")[0]
    with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as answer:
        return next(str(each["webSocketDebuggerUrl"]) for each in json.load(answer) if each["type"] == "page")
