// What pages can do beyond being read: keys, local times, unfolding what is far away, following a live session.
// Everything else works without it.
"use strict";
(() => {
  const root = document.documentElement;
  const base = root.dataset.base || "";
  const $ = (s, at = document) => at.querySelector(s);
  const $$ = (s, at = document) => [...at.querySelectorAll(s)];
  const keep = (name, value, days) => {
    document.cookie = `${name}=${value}; Path=${base}/; Max-Age=${days * 86400}; SameSite=Lax` + (location.protocol === "https:" ? "; Secure" : "");
  };

  // Times are in UTC until here. The server gets the zone for days and hours.
  keep("ccship_zone", -new Date().getTimezoneOffset(), 365);
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const stamp = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const localTimes = (at) => {
    for (const t of $$("time[datetime]", at)) {
      const d = new Date(t.dateTime);
      if (isNaN(d)) continue;
      t.title = stamp.format(d);
      if ("clock" in t.dataset) t.textContent = clock.format(d);
      if ("stamp" in t.dataset) t.textContent = stamp.format(d);
    }
  };
  localTimes(document);

  // The theme changes at once, without a new page.
  $(".theme")?.addEventListener("submit", (e) => {
    e.preventDefault();
    root.dataset.theme = e.submitter.value;
    keep("ccship_theme", e.submitter.value, 365);
  });

  // Pieces of pages from this server. It makes them inert, and the page's policy lets no script of theirs run.
  const piece = async (url) => {
    const r = await fetch(url, { credentials: "same-origin" });
    if (!r.ok) throw new Error(`${r.status}`);
    const doc = new DOMParser().parseFromString(await r.text(), "text/html");
    localTimes(doc);
    return { doc, headers: r.headers };
  };
  const lazy = async (holder) => {
    const src = holder.dataset.src;
    if (!src) return;
    delete holder.dataset.src;
    const into = holder.tagName === "DETAILS" ? holder.lastElementChild : holder;
    try {
      into.replaceChildren(...(await piece(src)).doc.body.childNodes);
    } catch {
      holder.dataset.src = src; // what stood there before is a link to the same
    }
  };
  // What a browser remembers for itself. It may have no store, or none for this site.
  const remember = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(`ccship${base}:${name}`);
      localStorage.setItem(`ccship${base}:${name}`, value);
    } catch { /* then nothing is remembered */ }
    return null;
  };
  for (const d of $$("details[data-keep]")) d.open = remember(d.dataset.keep) === "open";

  // Documents that have changed since this browser opened them, or saw them first: the version of each, newest last.
  const seen = () => { try { return new Map(JSON.parse(remember("documents") || "[]")); } catch { return new Map(); } };
  const saw = (list, key, version) => {
    list.delete(key);
    list.set(key, version);
    remember("documents", JSON.stringify([...list].slice(-1000)));
  };
  const opened = $("main[data-opened]");
  if (opened) saw(seen(), opened.dataset.opened, Number(opened.dataset.version));
  const badges = () => {
    const list = seen();
    for (const a of $$("[data-doc]")) {
      const version = Number(a.dataset.version);
      if (!list.has(a.dataset.doc)) saw(list, a.dataset.doc, version);
      if (version <= list.get(a.dataset.doc) || a.nextElementSibling?.matches(".changed")) continue;
      const tag = document.createElement("span");
      tag.className = "tag changed";
      tag.title = "Changed since you last opened it in this browser";
      tag.textContent = "changed";
      a.after(tag);
    }
  };
  badges();
  document.addEventListener("toggle", (e) => {
    if (e.target.dataset.keep) remember(e.target.dataset.keep, e.target.open ? "open" : "shut");
    if (!e.target.open) return;
    if (e.target.dataset.src) lazy(e.target);
    $$(":scope > [data-src]", e.target).forEach(lazy);
  }, true);
  if (matchMedia("(max-width: 62rem)").matches) $$(".side details[open]").forEach((d) => { d.open = false; });
  $$("details[open] > [data-src]").forEach((h) => lazy(h).then(markPrompts));

  document.addEventListener("click", async (e) => {
    const copy = e.target.closest("[data-copy]");
    if (copy) {
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(copy.previousElementSibling);
        copy.textContent = "Press Ctrl-C";
      }
      return;
    }
    const whole = e.target.closest("a.whole");
    if (whole && !e.ctrlKey && !e.metaKey && e.button === 0) {
      e.preventDefault();
      const item = whole.closest(".item");
      try {
        const full = $(".whole-item .item", (await piece(whole.href)).doc);
        if (!full) throw new Error("nothing");
        $$("details.tool", item).forEach((t, i) => { const f = $$("details.tool", full)[i]; if (f) f.open = t.open; });
        full.id = item.id;
        item.replaceWith(full);
        full.focus();
      } catch {
        location.href = whole.href;
      }
    }
    for (const m of $$("details.menu[open]")) if (!m.contains(e.target)) m.open = false;
  });

  // Keys.
  const rows = () => $$("[data-row]").filter((r) => r.offsetParent !== null);
  const move = (list, step) => {
    if (!list.length) return;
    const top = 90;
    const active = document.activeElement?.closest("[data-row]");
    let at = list.findIndex((r) => active && r.contains(active));
    if (at < 0) { // between two of them, or nowhere: then where the reader is looking
      const before = (r) => active ? r.compareDocumentPosition(active) & Node.DOCUMENT_POSITION_FOLLOWING : r.getBoundingClientRect().top < top;
      const n = list.filter(before).length;
      at = step > 0 ? n - 1 : n;
    }
    const to = list[Math.max(0, Math.min(list.length - 1, at + step))];
    const link = to.classList.contains("item") ? null : $("a", to);
    (link || to).focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest" });
    if (to.getBoundingClientRect().top < top) scrollBy(0, to.getBoundingClientRect().top - top);
  };
  const foldAll = () => {
    const list = $$("details.tool, details.think");
    const open = list.some((d) => !d.open);
    for (const d of list) d.open = open;
  };
  const go = { l: "/", s: "/search", u: "/usage", r: "/drops" };
  let prefix = false;
  const keys = {
    j: () => move(rows(), 1),
    k: () => move(rows(), -1),
    n: () => move(rows().filter((r) => r.matches(".prompt")), 1),
    p: () => move(rows().filter((r) => r.matches(".prompt")), -1),
    e: foldAll,
    "/": () => ($("#s-q") || $("#find"))?.focus(),
    "?": () => $("#help").showModal(),
    "]": () => $('a[rel="next"]')?.click(),
    "[": () => $('a[rel="prev"]')?.click(),
    g: () => { prefix = true; setTimeout(() => { prefix = false; }, 1500); },
    Enter: () => {
      const d = document.activeElement?.classList.contains("item") && $("details", document.activeElement);
      if (!d) return false;
      d.open = !d.open;
    },
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.matches("input, textarea, select")) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if ($("dialog[open]")) return;
    if (prefix && go[e.key]) {
      prefix = false;
      location.href = base + go[e.key];
      return;
    }
    const act = keys[e.key];
    if (act && act() !== false) e.preventDefault();
  });

  // Which prompt is being read.
  function markPrompts() {
    const list = $$(".toc li[data-line]");
    if (!list.length) return;
    const update = () => {
      const item = $$("#items > .item").findLast((i) => i.getBoundingClientRect().top < 140);
      const line = item ? Number(item.id.slice(1)) : -1;
      const here = list.findLast((l) => Number(l.dataset.line) <= line);
      for (const l of list) l.classList.toggle("here", l === here);
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; update(); });
    }, { passive: true });
    update();
  }

  // Following. The stream only says where there is something new; a hidden page listens to nothing.
  if (!("live" in document.body.dataset)) return;
  const main = $("#main");
  const pill = $("#pill");
  const follow = main.dataset.tail ? tailer() : main.classList.contains("home") ? lister() : main.dataset.artifacts ? watcher() : null;
  if (!follow) return;
  const artifacts = renewer();
  let source = null;
  const listen = () => {
    if (document.hidden) {
      source?.close();
      source = null;
      return;
    }
    if (source) return;
    source = new EventSource(base + "/events" + follow.query);
    source.addEventListener("open", () => { follow.all(); artifacts.soon(false); });
    source.addEventListener("change", (e) => {
      const c = JSON.parse(e.data);
      artifacts.soon(true);
      if (!c.about) follow.change(c);
    });
    source.addEventListener("all", () => { follow.all(); artifacts.soon(true); });
    source.addEventListener("error", () => { if (source?.readyState === 2) { source = null; setTimeout(listen, 5000); } });
  };
  document.addEventListener("visibilitychange", listen);
  listen();

  function here() { return "?" + new URLSearchParams({ session: main.dataset.session, machine: main.dataset.machine, owner: main.dataset.owner }); }

  // watcher follows a session whose end is not on the page.
  function watcher() { return { query: here(), all: () => {}, change: () => {} }; }

  // tailer appends the lines of one session as they come. While its end is in sight the page stays there.
  function tailer() {
    const items = $("#items");
    let last = Number(main.dataset.last);
    let busy = false, again = false, unseen = 0;
    const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;
    const toEnd = () => { scrollTo(0, document.body.scrollHeight); unseen = 0; pill.hidden = true; };
    pill.addEventListener("click", toEnd);
    addEventListener("scroll", () => { if (atEnd()) { unseen = 0; pill.hidden = true; } }, { passive: true });
    const fetchMore = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        do {
          again = false;
          const sep = main.dataset.tail.includes("?") ? "&" : "?";
          const { doc, headers } = await piece(`${main.dataset.tail}${sep}after=${last}`);
          const to = Number(headers.get("Ccship-Last"));
          const stay = atEnd();
          const added = place(doc);
          if (to > last) again = true; // there may be more than one window
          last = Math.max(last, to);
          if (stay) toEnd();
          else if ((unseen += added) > 0) { pill.textContent = `${unseen} new ↓`; pill.hidden = false; }
        } while (again);
      } catch { /* the next event tries again */ } finally { busy = false; }
    };
    // place puts results to their calls and everything else at the end, and says how many of the latter there were.
    const place = (doc) => {
      let n = 0;
      for (const item of $$("body > .item", doc)) {
        if (document.getElementById(item.id)) continue;
        for (const got of $$("details.tool[data-call]", item)) {
          const call = $(`#items details.tool[data-call="${CSS.escape(got.dataset.call)}"]`);
          if (!call || !item.classList.contains("result")) continue;
          $(".result", call).replaceChildren(...$(".result", got).childNodes);
          $(".end", call).replaceChildren(...$(".end", got).childNodes);
          call.className = got.className;
          got.remove();
        }
        if (item.classList.contains("result") && !$("details.tool", item)) continue;
        const before = items.lastElementChild;
        if (item.classList.contains("answer") && before?.classList.contains("answer")) item.classList.add("cont");
        items.append(item);
        n++;
      }
      return n;
    };
    $("#following").hidden = false;
    let generation = null;
    return {
      query: here(),
      all: fetchMore,
      change: (c) => {
        if (generation !== null && c.generation !== generation) { location.reload(); return; } // the file was rewritten
        generation = c.generation;
        fetchMore();
      },
    };
  }

  // renewer updates a session's artifacts, at most every few seconds however fast they change.
  function renewer() {
    const rest = 4000;
    let waiting = false, drawing = false, last = -rest;
    const put = (doc) => {
      for (const id of ["fill", "chips", "link-requests", "checkpoints"]) {
        const was = document.getElementById(id), is = doc.getElementById(id);
        if (!was || !is || was.contains(document.activeElement) || was.innerHTML === is.innerHTML) continue;
        $$("details", is).forEach((d, i) => { const o = $$("details", was)[i]; if (o) d.open = o.open; });
        was.replaceChildren(...is.childNodes); // the element stays: it may be one that is read out when it changes
      }
      badges();
    };
    const renew = async () => {
      waiting = false;
      last = performance.now();
      try {
        put((await piece(main.dataset.artifacts)).doc);
        const holder = $(".context[open] > .holder");
        if (!drawing || !holder || holder.dataset.src || holder.contains(document.activeElement)) return;
        drawing = false;
        holder.replaceChildren(...(await piece(holder.dataset.url)).doc.body.childNodes);
      } catch { /* the next event tries again */ }
    };
    return {
      // soon updates them, and the context chart when it may have changed.
      soon: (changed) => {
        drawing ||= changed;
        if (waiting || !main.dataset.artifacts) return;
        waiting = true;
        setTimeout(renew, Math.max(600, last + rest - performance.now()));
      },
    };
  }

  // lister lights the dot of sessions that grow, and says when there are new ones.
  function lister() {
    const timers = new Map();
    return {
      query: "",
      all: () => {},
      change: (c) => {
        const row = $$(".row").find((r) => r.dataset.session === c.session && r.dataset.machine === c.machine && Number(r.dataset.owner) === c.owner);
        if (!row) {
          if (!c.session.includes("/")) pill.hidden = false;
          return;
        }
        row.classList.add("live");
        const t = $("time", row);
        if (t) t.textContent = "just now";
        clearTimeout(timers.get(row));
        timers.set(row, setTimeout(() => row.classList.remove("live"), 60000));
      },
    };
  }
})();
