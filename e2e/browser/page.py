"""The console as a person meets it: what is seen, what is typed."""

import base64
import os
import pathlib
import shutil

from member import eventually
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ARTEFACTS = pathlib.Path(os.environ.get("FILBERT_ARTEFACTS") or pathlib.Path(__file__).resolve().parent / "artefacts")
DESKTOP = (1360, 860)
PHONE = (360, 740)


def browser():
    """Debian's Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        self.url = url

    def reset(self):
        """A desktop in light colours that has never seen the page."""
        self.size(DESKTOP)
        self.media()
        self.driver.get("about:blank")
        self.driver.get(self.url)
        self.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.driver.get("about:blank")
        self.driver.get_log("browser")

    def size(self, size):
        width, height = size
        is_phone = width < 500
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1, "mobile": is_phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, dark=False, still=False):
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, place="#/"):
        """Opens a place of the page anew, as a link from elsewhere does, and waits until the member has answered."""
        self.driver.get("about:blank")
        self.driver.get(self.url + place)
        eventually(lambda: self.script("return document.getElementById('live')?.dataset.state") == "live", 20)
        return self

    @property
    def hash(self):
        return self.script("return location.hash")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector="main"):
        """What is seen of an element; views are drawn anew at any time, so it is read at once."""
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText.trim())", selector)

    def sees(self, text, selector="main", within_s=20):
        """Waits until a text is seen."""
        try:
            eventually(lambda: text in self.text(selector), within_s)
        except AssertionError:
            raise AssertionError(f"{text!r} is not seen in {selector}: {self.text(selector)!r}") from None

    def click(self, selector):
        def tried():
            try:
                self.find(selector).click()
                return True
            except StaleElementReferenceException:
                return False

        eventually(tried, 10)

    def keys(self, *keys):
        """Presses keys, one after the other, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def chord(self, *keys):
        *held, last = keys
        chain = ActionChains(self.driver)
        for key in held:
            chain.key_down(key)
        chain.send_keys(last)
        for key in reversed(held):
            chain.key_up(key)
        chain.perform()

    def write(self, statement):
        """Replaces what is in the editor by typing."""
        self.click("textarea.area")
        self.chord(Keys.CONTROL, "a")
        self.keys(Keys.DELETE)
        self.find("textarea.area").send_keys(statement)
        if self.script("return !document.getElementById('choices').hidden"):
            self.keys(Keys.ESCAPE)

    def run(self, statement):
        self.write(statement)
        self.chord(Keys.CONTROL, Keys.ENTER)
        self.idle()

    def idle(self):
        """Waits until no statement runs."""
        eventually(lambda: self.script("return document.getElementById('stop').hidden"), 60)

    def cells(self):
        """The rows of the result that is shown."""
        return self.script(
            "return [...document.querySelectorAll('#panel-result tbody tr')]"
            ".map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
        )

    def focused(self):
        return self.script(
            "const node = document.activeElement; return node.id || node.getAttribute('aria-label') || node.textContent.trim()"
        )

    def shoot(self, name):
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        (ARTEFACTS / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))

    def complaints(self):
        """What the browser complains of: broken scripts, and what the page's policy forbids. A statement that fails is none."""
        found = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [message for message in found if "/_sql" not in message and "/_filbert/map" not in message]
