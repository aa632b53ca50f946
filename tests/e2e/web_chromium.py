#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""web_chromium.py UROCE_CTL [SCREENSHOTS]: the page of 'uroce-ctl web' in headless Chromium: the picture, a link that goes down, its
fault, a name that is markup, the keyboard, dark mode, and that nothing comes from elsewhere. SCREENSHOTS is a directory for PNGs."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

WAIT_S = 60
browser = shutil.which("chromium") or shutil.which("chromium-browser")
if not browser:
    print("skipped: chromium is not installed")
    sys.exit(77)
ctl, shots = sys.argv[1], pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
tmp = tempfile.mkdtemp(prefix="uroce-web-")
running = []


class Chromium:
    """Its DevTools protocol over two pipes: JSON that ends with a zero byte."""

    def __init__(self):
        there_in, self.out = os.pipe()
        self.inp, there_out = os.pipe()

        def arrange():  # it reads from 3 and writes to 4
            a, b = os.dup(there_in), os.dup(there_out)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={tmp}/profile", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
             "--window-size=1300,1200"],
            preexec_fn=arrange, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running.append(self.process)
        os.close(there_in)
        os.close(there_out)
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **params):
        self.number += 1
        o = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.out, json.dumps(o).encode() + b"\0")
        end = time.monotonic() + WAIT_S
        while True:
            while b"\0" in self.rest:
                one, self.rest = self.rest.split(b"\0", 1)
                o = json.loads(one)
                if o.get("id") == self.number:
                    assert "result" in o, (method, o)
                    return o["result"]
                self.events.append(o)
            assert time.monotonic() < end, f"chromium does not answer {method}"
            if select.select([self.inp], [], [], 1)[0]:
                piece = os.read(self.inp, 1 << 20)
                assert piece, "chromium has ended"
                self.rest += piece

    def value(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in r, (expression, r)
        return r["result"].get("value")

    def wait(self, expression):
        """What it asks for may not be there yet."""
        end = time.monotonic() + WAIT_S
        while not self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value") is True:
            assert time.monotonic() < end, f"{expression}: {self.value('document.body.innerText')}"
            time.sleep(0.05)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Enter": 13}.get(key, 0))

    def shot(self, name):
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        assert data.startswith(b"\x89PNG")
        if shots:
            (shots / name).write_bytes(data)


class Web:
    def __init__(self, *words):
        self.process = subprocess.Popen([ctl, "web", "--listen", "127.0.0.1:0", "--interval", "0.2", *words], stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        running.append(self.process)
        self.url = self.process.stdout.readline().split()[-1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0


def count(page, selector):
    return page.value(f"document.querySelectorAll('{selector}').length")


def no_errors(page, url):
    assert page.value("document.documentElement.dataset.errors") == "0", "a script has failed"
    # A request of the page before may be reported late.
    asked = [e["params"]["request"]["url"] for e in page.events
             if e.get("method") == "Network.requestWillBeSent" and e["params"]["documentURL"].startswith(url)]
    assert asked and all(u.startswith(url) for u in asked), [u for u in asked if not u.startswith(url)]
    wrong = [e for e in page.events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded")
             and e["params"].get("entry", {}).get("url", url).startswith(url)]
    assert not wrong, wrong


def has_passed(web):
    """Before the first pass there is no picture yet, but 503, which the browser logs as an error."""
    try:
        with urllib.request.urlopen(f"{web.url}fabric.json", timeout=WAIT_S) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as e:
        assert e.code == 503, e
        return False


def open_page(page, web):
    end = time.monotonic() + WAIT_S
    while not has_passed(web):
        assert time.monotonic() < end, "there is no first pass"
        time.sleep(0.05)
    page.events.clear()
    page.call("Page.navigate", url=web.url)
    page.wait("document.documentElement.dataset.pass > 0")


def picture(page):
    web = Web("--fabric-model", "fattree:4", "--model-event", "2,down,edge 0.0,3", "--model-event", "2,kill,host 3.0.1")
    open_page(page, web)
    page.wait("document.querySelectorAll('.link.down').length == 1 && document.querySelectorAll('.node.silent').length == 1")
    page.wait("document.getElementById('faults').innerText.includes('link down')")
    assert (count(page, ".node"), count(page, ".node.switch"), count(page, ".link"), count(page, ".link.silent")) == (36, 20, 48, 1)
    assert page.value("document.querySelector('.link.down title').textContent") == "aggregation 0.0 1 – edge 0.0 3: down"
    # Every fact of the picture is there as text.
    assert count(page, "#links tbody tr") == 48 and count(page, "#nodes tbody tr") == 36
    assert page.value("document.querySelector('#links tbody tr').innerText").split("\t")[:2] == ["aggregation 0.0 1 – edge 0.0 3", "down"]
    row = page.value("[...document.querySelectorAll('#faults tbody tr')].map(r => r.innerText).find(t => t.includes('edge 0.0'))").split("\t")
    assert row[2:] == ["critical", "edge 0.0", "3", "link down", "raised"], row
    assert "1 down" in page.value("document.getElementById('sums').innerText")
    assert "critical: edge 0.0 port 3: link down" in page.value("document.getElementById('news').textContent") or count(page, ".mark text") > 0
    assert page.value("document.querySelector('.node.faulty .mark text').textContent") == "1"
    page.shot("light.png")
    keyboard(page)
    dark(page)
    no_errors(page, web.url)
    # The program is gone: the page says how old it is, and fails nowhere.
    web.stop()
    page.wait("document.getElementById('age').classList.contains('old')")
    assert page.value("document.documentElement.dataset.errors") == "0"


def keyboard(page):
    """One node is a stop of the Tab key; arrows go along a row and from row to row."""
    assert count(page, '.node[tabindex="0"]') == 1
    page.value("document.querySelector('.node[tabindex=\"0\"]').focus()")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.value(focused).startswith("switch core 0.0, "), page.value(focused)
    page.key("ArrowRight")
    assert page.value(focused).startswith("switch core 0.1, ")
    page.key("ArrowDown")
    assert page.value(focused).startswith("switch aggregation "), page.value(focused)
    page.key("ArrowDown")
    page.key("ArrowDown")
    assert page.value(focused).startswith("endpoint host "), page.value(focused)
    page.key("ArrowDown")
    name = page.value(focused).split(",")[0].removeprefix("endpoint ")
    page.key("Enter")
    page.wait(f"document.getElementById('what').innerText.includes('{name}') && document.querySelectorAll('.node.chosen').length == 1")
    assert count(page, '.node[tabindex="0"]') == 1
    page.value("document.querySelector('#links button').click()")
    page.wait("document.getElementById('what').innerText.includes('edge 0.0 3') && document.querySelectorAll('.link.chosen').length == 1")


def dark(page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.value(colour)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.wait(f"{colour} != '{light}'")
    page.shot("dark.png")
    page.call("Emulation.setEmulatedMedia", features=[])


def markup(page):
    """Names that are markup are shown as they are."""
    names = ["<script>countError()</script>", "<img/src=x/onerror=countError()>", "&lt;b&gt;"]
    shape = pathlib.Path(tmp) / "net"
    shape.write_text(f"endpoint {names[1]}\nswitch {names[0]} 4\nendpoint {names[2]}\nlink {names[1]} 1 {names[0]} 1\n"
                     f"link {names[0]} 2 {names[2]} 1\n")
    web = Web("--fabric-model", str(shape))
    open_page(page, web)
    page.wait("document.querySelectorAll('#nodes tbody tr').length == 3")
    shown = page.value("[...document.querySelectorAll('#nodes tbody tr')].map(r => r.innerText.split('\\t')[0])")
    assert sorted(shown) == sorted(names), shown
    assert count(page, "script") == 1 and count(page, "img") == 0
    no_errors(page, web.url)
    web.stop()


try:
    chromium = Chromium()
    for domain in ("Page", "Runtime", "Network", "Log"):
        chromium.call(f"{domain}.enable")
    picture(chromium)
    markup(chromium)
    print("the page is right in", browser)
finally:
    for p in running:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    shutil.rmtree(tmp, ignore_errors=True)
