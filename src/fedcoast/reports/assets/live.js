
// Keeps the page up to date: the server says that there is something new, and the page fetches it.
(() => {
  const by = (id) => document.getElementById(id);
  let current = null, fetching = false, wanted = null, source = null;

  function tell(state, text) {
    by("live").dataset.state = state;
    if (by("live").textContent !== text) by("live").textContent = text;
  }

  async function update() {
    if (fetching || wanted === current) return;
    fetching = true;
    try {
      const asked = wanted, answer = await fetch("view", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const next = await answer.json();
      show(next);
      tell(next.status.state, next.status.text);
      current = asked;
    } catch {
      tell("lost", "Connection lost; trying again …");
      setTimeout(update, 1000);
      return;
    } finally {
      fetching = false;
    }
    update();
  }

  // The new state, with everything a reader had opened, typed, sorted and drawn left as it was.
  function show(next) {
    const kept = new Map([...document.querySelectorAll("[data-figure], [data-keep]")].map((node) => [key(node), node]));
    const open = [...document.querySelectorAll("details[open]")].map((node) => node.id);
    const focus = document.activeElement, place = focus?.id, [from, to] = [focus?.selectionStart, focus?.selectionEnd];
    const scrolled = [...document.querySelectorAll(".scroll")].map((node) => [node.querySelector("table").id, node.scrollLeft]);
    const height = scrollY;
    by("title").textContent = next.title;
    by("summary").innerHTML = next.summary;
    by("contents").innerHTML = next.contents;
    by("main").innerHTML = next.sections;
    for (const room of by("main").querySelectorAll("[data-figure], [data-keep]")) {
      const old = kept.get(key(room));
      if (!old) continue;
      if (room.dataset.figure) old.style.minHeight = room.style.minHeight;
      if (room.hasAttribute("aria-label")) old.setAttribute("aria-label", room.getAttribute("aria-label"));
      if (room.dataset.keep && room.children.length !== old.children.length) continue;
      room.replaceWith(old);
    }
    for (const id of open) if (by(id)) by(id).open = true;
    for (const [id, left] of scrolled) if (by(id)) by(id).parentElement.scrollLeft = left;
    report.take(next);
    scrollTo({ top: height, behavior: "instant" });
    if (place && by(place) && by(place) !== document.activeElement) {
      by(place).focus({ preventScroll: true });
      if (from !== undefined && from !== null) by(place).setSelectionRange(from, to);
    }
  }
  const key = (node) => node.dataset.figure ?? node.dataset.keep;

  function connect() {
    source?.close();
    source = new EventSource("events");
    source.onmessage = (event) => { wanted = event.data; current === wanted ? tell("live", by("live").textContent) : update(); };
    source.onopen = () => { if (by("live").dataset.state === "lost") { current = null; if (wanted) update(); } };
    source.onerror = () => {
      tell("lost", "Connection lost; trying again …");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000);  // the browser gave up; we do not
    };
  }
  // A browser allows a server few connections at a time: pages nobody looks at give theirs back.
  document.addEventListener("visibilitychange", () => (document.hidden ? source?.close() : connect()));
  connect();
})();
