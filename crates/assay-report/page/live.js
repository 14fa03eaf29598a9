// Keeps a report alive: loads it anew in a frame that nobody sees, and shows that once it is drawn. The server says when
// there is something new; a browser that slept asks again by itself.
"use strict";
(() => {
  const state = document.getElementById("state");
  const follow = document.getElementById("follow");
  const frames = document.getElementById("frames");
  let shown = null;
  let loading = null;
  let newest = "";
  let over = false;
  const say = (text) => (state.textContent = text);
  const load = () => {
    if (loading || !newest || (shown && shown.dataset.version === newest)) return;
    if (shown && !follow.checked) return say("there are newer measurements");
    const frame = document.createElement("iframe");
    frame.title = "report";
    frame.className = "next";
    frame.dataset.version = newest;
    loading = frame;
    frame.addEventListener("load", () => {
      const place = shown ? shown.contentWindow.scrollY : 0;
      frame.contentWindow.scrollTo(0, place);
      // Charts near the place are drawn before they are seen.
      setTimeout(() => {
        if (loading !== frame) return;
        frame.contentWindow.scrollTo(0, place);
        frame.className = "";
        if (shown) shown.remove();
        shown = frame;
        loading = null;
        say(over && frame.dataset.version === newest ? "the run is over" : "live");
        load();
      }, 400);
    });
    frame.src = "report?" + newest;
    frames.append(frame);
  };
  follow.addEventListener("change", load);
  const source = new EventSource("events");
  source.addEventListener("message", (event) => {
    newest = event.data;
    load();
  });
  source.addEventListener("over", (event) => {
    over = true;
    newest = event.data;
    source.close();
    // The process ends soon: an earlier version is not waited for.
    if (loading) loading.remove();
    loading = null;
    load();
  });
  source.addEventListener("error", () => {
    if (!over) say("no connection to the run; trying again");
  });
  source.addEventListener("open", () => say("live"));
})();
