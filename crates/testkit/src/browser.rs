//! Headless Chromium for tests of pages, driven over a pipe, so that it needs no port and no driver.
//!
//! Speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/): JSON messages that end with a
//! zero byte. It records every complaint of the page and every request it makes. The browser has a profile of its own
//! and ends with its `Browser`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

/// A browser with one open tab.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u64,
    tab: String,
    events: Vec<Value>,
    /// Removed when it is dropped, after the browser.
    _profile: tempfile::TempDir,
}

/// How to show a page.
#[derive(Clone, Copy, Debug)]
pub struct BrowserView {
    /// Width of the window, in pixels.
    pub width: u32,
    /// Height of the window, in pixels.
    pub height: u32,
    /// Whether the reader prefers a dark background.
    pub dark: bool,
}

impl Browser {
    /// The program, if it is installed.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|program| program.is_file())
    }

    /// Whether it is installed, for a test to continue or return; like `Kind::present`.
    pub fn present() -> bool {
        let why = "there is no chromium (`cargo xtask install` gets what the tests need)";
        Browser::program().is_some() || crate::absent(why)
    }

    /// Starts it.
    pub fn start() -> Result<Browser> {
        let program = Browser::program().context("there is no chromium")?;
        let profile = tempfile::tempdir()?;
        // The protocol uses descriptors 3 and 4, which only a shell can connect without unsafe code.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting chromium")?;
        let to = child.stdin.take().context("asked for a pipe")?;
        let from = BufReader::new(child.stdout.take().context("asked for a pipe")?);
        let (tab, events) = (String::new(), Vec::new());
        let mut browser = Browser { child, to, from, last: 0, tab, events, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }))?;
        browser.tab = attached["sessionId"].as_str().context("a session has a name")?.to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path, view: BrowserView) -> Result<()> {
        self.open_url(&format!("file://{}", file.display()), view)
    }

    /// Opens a page and waits until it is loaded.
    pub fn open_url(&mut self, url: &str, view: BrowserView) -> Result<()> {
        self.resize(view)?;
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }))?;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.read()?;
            self.events.push(message);
        }
        Ok(())
    }

    /// Changes the window.
    pub fn resize(&mut self, view: BrowserView) -> Result<()> {
        let metrics = json!({ "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": "", "features": features }))?;
        Ok(())
    }

    /// Shows the page as on paper with this width, in pixels.
    pub fn print_preview(&mut self, width: u32) -> Result<()> {
        self.resize(BrowserView { width, height: 1000, dark: false })?;
        self.call("Emulation.setEmulatedMedia", json!({ "media": "print" }))?;
        Ok(())
    }

    /// The value of a JavaScript expression; a promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked)?;
        if let Some(exception) = answer.get("exceptionDetails") {
            bail!("{expression}: {exception}");
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Presses and releases a key, such as `ArrowRight`.
    pub fn press(&mut self, key: &str) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key }))?;
        }
        Ok(())
    }

    /// The content of the window, as PNG.
    pub fn screenshot(&mut self) -> Result<Vec<u8>> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }))?;
        let data = answer["data"].as_str().context("a screenshot is base64")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }

    /// The printed page, as PDF.
    pub fn pdf(&mut self) -> Result<Vec<u8>> {
        let answer = self.call("Page.printToPDF", json!({}))?;
        let data = answer["data"].as_str().context("a document is base64")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }

    /// Everything that the page wrote to the console or threw, and what the browser blocked, since it was opened.
    pub fn complaints(&self) -> Vec<String> {
        let kinds = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let is = |event: &&Value| kinds.iter().any(|kind| event["method"] == *kind);
        self.events.iter().filter(is).map(ToString::to_string).collect()
    }

    /// The addresses it requested since it was opened, its own first.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        asked.filter_map(|event| Some(event["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.tab.is_empty() {
            message["sessionId"] = json!(self.tab);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).context("talking to chromium")?;
        loop {
            let mut answer = self.read()?;
            if answer["id"] != self.last {
                self.events.push(answer);
            } else if answer["error"].is_null() {
                return Ok(answer["result"].take());
            } else {
                bail!("{method}: {}", answer["error"]);
            }
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message)?;
        match message.split_last() {
            Some((0, message)) => Ok(serde_json::from_slice(message)?),
            _ => bail!("chromium ended"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends itself, so that all of its processes are gone and none writes to the profile any more.
        self.tab.clear();
        if self.call("Browser.close", json!({})).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
