// Makes the pages live: follows the server's events, keeps times up to date, asks before what cannot be undone, and
// listens to the keyboard. Every page also works without it.
"use strict";
(() => {
  const SECOND = 1000;
  // The least time between two fetches of a page.
  const EVERY = { usage: 30 * SECOND, search: 10 * SECOND, help: Infinity }[document.body.dataset.part] ?? 350;
  const LOG_LINES = 5000;
  const $ = (id) => document.getElementById(id);
  document.documentElement.classList.add("js");

  // --- Times: the server's clock counts.
  const behind = Date.parse(document.body.dataset.now) - Date.now();
  const skew = Math.abs(behind) < 3 * SECOND ? 0 : behind;
  const now = () => Date.now() + skew;

  function span(seconds) {
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
    if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} d`;
  }

  function countdown(seconds) {
    const two = (number) => String(number).padStart(2, "0");
    if (seconds >= 2 * 86400) return `in ${span(seconds)}`;
    if (seconds >= 3600) return `in ${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} m`;
    return `in ${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
  }

  function write(element, words) {
    if (element.textContent !== words) element.textContent = words;
  }

  function tick() {
    for (const time of document.querySelectorAll("time.ago, time.until")) {
      const seconds = Math.floor((now() - Date.parse(time.dateTime)) / SECOND);
      if (Number.isNaN(seconds)) continue;
      if (seconds >= 0) write(time, time.matches(".until") ? "now" : `${span(seconds)} ago`);
      else write(time, time.matches(".until") ? countdown(-seconds) : `in ${span(-seconds)}`);
    }
    showFreshness();
  }

  // --- Freshness
  let state = "waiting";
  let asOf = Date.now();

  function showFreshness() {
    const fresh = $("fresh");
    if (!fresh || document.body.dataset.part === "help") return;
    fresh.classList.toggle("live", state === "live");
    fresh.classList.toggle("lost", state === "lost");
    const age = span(Math.max(0, Math.floor((Date.now() - asOf) / SECOND)));
    const words = { live: `live, changed ${age} ago`, lost: `connection lost ${age} ago`, waiting: "connecting" }[state];
    write($("fresh-words"), words);
  }

  function setState(next) {
    if (next === "lost" && state !== "lost") asOf = Date.now();
    state = next;
    showFreshness();
  }

  // --- The newest version of this page takes the place of the old one, and what the user was doing stays.
  let isBusy = false;
  let isWanted = false;
  let last = 0;
  let timer = 0;

  const hasText = (node) => node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement;
  const isTouched = (field) =>
    field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;

  const callbacks = {
    beforeNodeMorphed(old, fresh) {
      if (!(old instanceof Element)) return true;
      if (old.hasAttribute("data-keep") && old.id === fresh.id) return false;
      return !(hasText(old) && isTouched(old));
    },
    beforeAttributeUpdated: (name, element) => !(name === "open" && element instanceof HTMLDetailsElement),
    beforeNodeRemoved(node) {
      const active = document.activeElement;
      return !(node instanceof Element && hasText(active) && isTouched(active) && node.contains(active));
    },
  };

  async function refresh() {
    clearTimeout(timer);
    if (isBusy || document.hidden) {
      isWanted = true;
      return;
    }
    const wait = last + EVERY - Date.now();
    if (wait > 0) {
      if (Number.isFinite(wait)) timer = setTimeout(refresh, wait);
      return;
    }
    isBusy = true;
    isWanted = false;
    last = Date.now();
    try {
      const address = new URL(location.href);
      address.hash = "";
      const response = await fetch(address, { headers: { Accept: "text/html" } });
      if (response.status === 403) throw new Error("no access");
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = page.querySelector("main");
      if (fresh && window.Idiomorph) {
        window.Idiomorph.morph($("main"), fresh, { callbacks });
        document.title = page.title;
        asOf = Date.now();
        beat();
      }
      await followLog();
      tick();
    } catch {
      setState("lost");
    }
    isBusy = false;
    if (isWanted) refresh();
  }

  function beat() {
    const fresh = $("fresh");
    if (!fresh) return;
    fresh.classList.remove("beat");
    requestAnimationFrame(() => fresh.classList.add("beat"));
  }

  function connect() {
    const events = new EventSource("/events");
    events.addEventListener("open", () => {
      const wasLost = state === "lost";
      setState("live");
      if (wasLost) {
        last = 0;
        refresh();
      }
    });
    events.addEventListener("changed", refresh);
    events.addEventListener("error", () => {
      setState("lost");
      if (events.readyState !== EventSource.CLOSED) return;
      events.close();
      setTimeout(connect, 5 * SECOND);
    });
    addEventListener("pagehide", () => events.close(), { once: true });
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isWanted) refresh();
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // --- The output of an iteration
  let found = [];
  let shown = -1;

  function toEnd(log) {
    if ($("log-follow")?.checked) log.scrollTop = log.scrollHeight;
  }

  async function followLog() {
    const log = document.querySelector("[data-log]");
    if (!log) return;
    for (let round = 0; round < 20 && !log.hasAttribute("data-over"); round += 1) {
      const response = await fetch(`${log.dataset.log}&from=${log.dataset.from}`);
      if (!response.ok) return;
      const part = await response.json();
      const isNews = String(part.next) !== log.dataset.from;
      log.dataset.from = part.next;
      if (part.is_over) log.setAttribute("data-over", "");
      if (part.text) add(log, part.text);
      if (!isNews) break;
    }
  }

  function add(log, text) {
    const words = $("log-search")?.value ?? "";
    const lines = (log.textContent + text).split("\n");
    if (words || lines.length > LOG_LINES) {
      log.textContent = lines.slice(-LOG_LINES).join("\n");
      if (words) mark(log, words);
    } else {
      log.append(text);
    }
    toEnd(log);
  }

  function mark(log, words) {
    const text = log.textContent;
    const [hay, needle] = [text.toLowerCase(), words.toLowerCase()];
    found = [];
    shown = -1;
    log.textContent = "";
    let from = 0;
    // Letters may change their number with their case; then nothing can be marked.
    while (needle && hay.length === text.length && found.length < 1000) {
      const at = hay.indexOf(needle, from);
      if (at < 0) break;
      const hit = document.createElement("mark");
      hit.textContent = text.slice(at, at + needle.length);
      log.append(text.slice(from, at), hit);
      found.push(hit);
      from = at + needle.length;
    }
    log.append(text.slice(from));
    const count = found.length === 1 ? "1 match" : `${found.length} matches`;
    write($("log-found"), needle ? `${count}${found.length ? ", Enter for the next" : ""}` : "");
  }

  function nextMatch(step) {
    if (!found.length) return;
    found[shown]?.classList.remove("current");
    shown = (shown + step + found.length) % found.length;
    found[shown].classList.add("current");
    found[shown].scrollIntoView({ block: "center" });
    write($("log-found"), `${shown + 1} of ${found.length}`);
  }

  document.addEventListener("input", (event) => {
    const log = document.querySelector("[data-log]");
    if (event.target.id === "log-search" && log) mark(log, event.target.value);
    if (event.target.id === "log-follow" && log) toEnd(log);
  });

  // --- What an iteration changed, loaded when it is opened.
  async function showDiff(details) {
    const pre = details.querySelector("pre");
    if (pre.textContent) return;
    const response = await fetch(details.dataset.diff);
    const kinds = { "+": "added", "-": "removed", "@": "place" };
    for (const line of (await response.text()).split("\n")) {
      const part = document.createElement("span");
      part.className = kinds[line[0]] ?? "";
      part.textContent = `${line}\n`;
      pre.append(part);
    }
  }

  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target instanceof Element && event.target.matches("[data-diff][open]")) showDiff(event.target);
    },
    true,
  );

  // --- Questions before what cannot be undone
  function ask(details) {
    const dialog = $("ask");
    write($("ask-title"), details.querySelector("summary").textContent.replace("…", ""));
    $("ask-body").replaceChildren(details.querySelector("form").cloneNode(true));
    dialog.showModal();
    ($("ask-body").querySelector("input:not([type=hidden]), textarea") ?? $("ask-no")).focus();
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.classList.add("done");
      write(button.firstElementChild, "✓ copied");
      setTimeout(() => {
        button.classList.remove("done");
        write(button.firstElementChild, "copy");
      }, 1500);
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
    }
  }

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (!(target instanceof Element)) return;
    const summary = target.closest("[data-ask] > summary");
    if (summary) {
      event.preventDefault();
      ask(summary.parentElement);
      return;
    }
    const copied = target.closest("[data-copy]");
    if (copied) copy(copied);
    if (target.id === "ask-no") $("ask").close();
    if (target.id === "dismiss") {
      event.preventDefault();
      $("notice").remove();
    }
    for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.open = false;
  });

  // One press, one action.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    for (const button of event.target.querySelectorAll("button")) setTimeout(() => (button.disabled = true));
  });

  // --- Keyboard
  let isGoing = false;

  const items = () =>
    [...document.querySelectorAll("[data-item]")]
      .map((item) => [...item.querySelectorAll("[data-open]")].find((link) => link.closest("[data-item]") === item))
      .filter((link) => link?.getClientRects().length);

  function move(step) {
    const links = items();
    const item = document.activeElement?.closest("[data-item]");
    const at = links.findIndex((link) => link.closest("[data-item]") === item);
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
    next?.focus();
    next?.closest("[data-item]").scrollIntoView({ block: "nearest" });
  }

  // The action of the chosen entry, or the only one on the page.
  function act(key) {
    const inItem = document.activeElement?.closest("[data-item]")?.querySelector(`[data-key="${key}"]`);
    const all = document.querySelectorAll(`main [data-key="${key}"]`);
    const control = inItem ?? (all.length === 1 ? all[0] : null);
    if (control instanceof HTMLFormElement) control.requestSubmit();
    if (control instanceof HTMLDetailsElement) {
      control.open = true;
      control.querySelector("input:not([type=hidden])")?.focus();
    }
  }

  const keys = {
    "/": () => $("search").focus(),
    "?": () => location.assign("/help"),
    j: () => move(1),
    k: () => move(-1),
    p: () => act("p"),
    e: () => act("e"),
    v: () => act("v"),
    g: () => {
      isGoing = true;
      setTimeout(() => (isGoing = false), 1500);
    },
  };
  const places = { n: "/", r: "/#runs", u: "/usage" };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("ask").open) return;
    const field = event.target;
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll(".menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      if (hasText(field)) field.blur();
      return;
    }
    if (field.id === "log-search" && event.key === "Enter") {
      event.preventDefault();
      nextMatch(event.shiftKey ? -1 : 1);
    }
    if (hasText(field) && field.type !== "checkbox") return;
    const place = isGoing ? places[event.key] : undefined;
    isGoing = false;
    if (place) location.assign(place);
    else if (Object.hasOwn(keys, event.key)) keys[event.key]();
    else return;
    event.preventDefault();
  });

  // --- Begin
  const address = new URL(location.href);
  if (address.searchParams.has("notice")) {
    address.searchParams.delete("notice");
    history.replaceState(null, "", address);
  }
  const log = document.querySelector("[data-log]");
  if (log) toEnd(log);
  setInterval(tick, SECOND);
  tick();
  if (document.body.dataset.part !== "help") connect();
})();
