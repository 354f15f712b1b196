#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Open an HTML report in headless Chromium, use it as a person would, and print what it shows.

page.py FILE|URL [STEP...], where each step is one of
  eval JS          print the value of JS as JSON
  wait JS          until JS is true; fail after a minute (a hang, not a measure of speed)
  click CSS        click into the middle of an element
  click-at CSS A B click at parts of the element's width and height, 0 to 1
  drag CSS A B     press at A, move to B and release; A and B are parts of the element's width, 0 to 1
  type CSS TEXT    type TEXT into an element, in place of its text
  key NAME         press a key: ArrowDown, Enter, Escape, or a character; Shift+ArrowDown holds the first
  choose CSS TEXT  choose the option TEXT of a select element
  size W H         of the window
  media NAME=VALUE prefers-color-scheme=dark, or media=print
  shot FILE        save a picture of what the window shows
Fails if the page logs an error, or asks for anything but itself and the data of a live page.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

KEYS = {"Shift": "\ue008", "Backspace": "\ue003", "Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011", "ArrowLeft": "\ue012",
        "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A session of chromedriver."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found.group(1)
                break
        if not port:
            sys.exit("page.py: chromedriver did not start")
        self.url = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                            "--window-size=1280,900", f"--user-data-dir={folder}"]}
        if shutil.which("chromium"):
            options["binary"] = shutil.which("chromium")
        answer = self.send("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.url += "/" + answer["sessionId"]

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            sys.exit(f"page.py: {path}: {json.load(e)['value']['message']}")

    def cdp(self, command, **params):
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def eval(self, script):
        return self.send("POST", "/execute/sync", {"script": f"return ({script});", "args": []})

    def element(self, css):
        return self.send("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def logs(self, kind):
        return self.send("POST", "/se/log", {"type": kind})

    def close(self):
        self.send("DELETE", "")
        self.driver.terminate()
        self.driver.wait()


def do_wait(b, script):
    end = time.monotonic() + 60
    while not b.eval(script):
        if time.monotonic() > end:
            sys.exit(f"page.py: waited in vain for: {script}")
        time.sleep(0.05)


def do_type(b, css, text):
    element = b.element(css)
    b.send("POST", f"/element/{element}/clear", {})
    b.send("POST", f"/element/{element}/value", {"text": text})


def press(b, css, places):
    """Press at the first place of an element and release at the last one; (0.5, 0.5) is its middle."""
    origin = {ELEMENT: b.element(css)}
    find = f"document.querySelector({json.dumps(css)})"
    b.eval(find + """.scrollIntoView({ behavior: "instant", block: "center" })""")
    box = b.eval(find + ".getBoundingClientRect().toJSON()")
    moves = [{"type": "pointerMove", "duration": 0, "origin": origin, "x": round(box["width"] * (float(x) - 0.5)),
              "y": round(box["height"] * (float(y) - 0.5))} for x, y in places]
    b.send("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
        moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]}]})


def do_key(b, name):
    """A key, or several that are held together: Shift+ArrowRight."""
    keys = [KEYS.get(n, n) for n in name.split("+")]
    b.send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions":
        [{"type": "keyDown", "value": k} for k in keys] + [{"type": "keyUp", "value": k} for k in reversed(keys)]}]})


def do_choose(b, css, text):
    b.send("POST", "/execute/sync", {"args": [css, text], "script": """
        const select = document.querySelector(arguments[0]);
        const option = Array.from(select.options).find(o => o.textContent === arguments[1]);
        select.value = option.value;
        select.dispatchEvent(new Event("change"));"""})


def do_size(b, width, height):
    b.cdp("Emulation.setDeviceMetricsOverride", width=int(width), height=int(height), deviceScaleFactor=1, mobile=False)


def do_media(b, text):
    name, value = text.split("=")
    if name == "media":
        b.cdp("Emulation.setEmulatedMedia", media=value)
    else:
        b.cdp("Emulation.setEmulatedMedia", features=[{"name": name, "value": value}])


def do_shot(b, path):
    picture = b.cdp("Page.captureScreenshot")["data"]
    with open(path, "wb") as out:
        out.write(base64.b64decode(picture))


STEPS = {
    "eval": (1, lambda b, script: print(json.dumps(b.eval(script)))),
    "wait": (1, do_wait),
    "click": (1, lambda b, css: b.send("POST", f"/element/{b.element(css)}/click", {})),
    "click-at": (3, lambda b, css, x, y: press(b, css, [(x, y)])),
    "drag": (3, lambda b, css, start, end: press(b, css, [(start, 0.5), (end, 0.5)])),
    "type": (2, do_type),
    "key": (1, do_key),
    "choose": (2, do_choose),
    "size": (2, do_size),
    "media": (1, do_media),
    "shot": (1, do_shot),
}


def faults(b, page):
    """What the page did that a report must not do."""
    for entry in b.logs("browser"):
        if entry["level"] in ("SEVERE", "WARNING"):
            yield entry["message"]
    for entry in b.logs("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] != "Network.requestWillBeSent":
            continue
        url = message["params"]["request"]["url"]
        if message["params"]["documentURL"].partition("#")[0] != page:  # the browser's own pages
            continue
        if url != page and not url.startswith("data:") and url != urllib.parse.urljoin(page, "data"):
            yield "asks for " + url


def main():
    words = sys.argv[1:]
    page = words.pop(0)
    if not page.startswith("http:"):
        path, mark, fragment = page.partition("#")
        page = "file://" + os.path.abspath(path) + mark + fragment
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(folder)
        try:
            b.send("POST", "/url", {"url": page})
            do_wait(b, "document.documentElement.dataset.ready")
            while words:
                nr, do = STEPS[words[0]]
                do(b, *words[1:1 + nr])
                del words[:1 + nr]
            found = list(faults(b, page.partition("#")[0]))
        finally:
            b.close()
    for text in found:
        print("page.py: the page: " + text, file=sys.stderr)
    sys.exit(1 if found else 0)


main()
