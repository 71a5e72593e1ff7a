"""A browser for tests: headless Chromium, spoken to over a pipe in its own protocol. No driver, no port, no network."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60  # seconds until an answer that does not come is given up


class Browser:
    """One page. ``console`` and ``requests`` collect what it complained of and what it asked the world for."""

    def __init__(self, folder):
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        self._write, self._read = from_us, from_browser
        words = (
            f'exec "{CHROMIUM}" --headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --no-first-run '
            f'--disable-dev-shm-usage --hide-scrollbars --user-data-dir="{folder}" 3<&{to_browser} 4>&{to_us}'
        )
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", words],
            pass_fds=(to_browser, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_us)
        self._numbers, self._rest = itertools.count(1), b""
        self.console, self.requests, self.loaded = [], [], 0
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self):
        """End the browser."""
        try:
            self._session = None
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired, TimeoutError):
            self.process.kill()
            self.process.wait()
        os.close(self._write)
        os.close(self._read)

    def send(self, method, **params):
        """Ask for something and wait for the answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        import select

        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        told = json.loads(line)
        self._notice(told.get("method"), told.get("params", {}))
        return told

    def _notice(self, method, params):
        if method == "Runtime.consoleAPICalled":
            self.console.append(str([part.get("value") for part in params["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"][:100])
        elif method == "Page.loadEventFired":
            self.loaded += 1

    def open(self, path):
        """Open a file and wait until it is loaded; forget what earlier pages said."""
        self.console.clear()
        self.requests.clear()
        before = self.loaded
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        while self.loaded == before:
            self._next()

    def js(self, expression):
        """Value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(self, width, height=900, *, mobile=False):
        """Take on the size of a window or a phone."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, **features):
        """Prefer a color scheme, or print: ``media(scheme="dark")``, ``media(media="print")``."""
        wanted = [{"name": "prefers-color-scheme", "value": features["scheme"]}] if "scheme" in features else []
        self.send("Emulation.setEmulatedMedia", media=features.get("media", ""), features=wanted)

    def press(self, key, code=None, text=""):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            given = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **given, **_VIRTUAL.get(key, {}))

    def screenshot(self, path):
        """The whole page as a PNG file."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        Path(path).write_bytes(base64.b64decode(shot["data"]))


_VIRTUAL = {
    key: {"windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
    for key, code in {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}.items()
}
