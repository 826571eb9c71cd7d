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
    for (const o of $$("option[data-stamp]", at)) { // it may hold no element
      const d = new Date(o.dataset.stamp);
      if (!isNaN(d)) o.textContent = `${o.dataset.name} · ${stamp.format(d)}`;
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
  for (const d of $$("details[data-keep]")) {
    const was = remember(d.dataset.keep);
    d.open = was === "open" || was === null && "wide" in d.dataset && matchMedia("(min-width: 80rem)").matches;
  }
  const tab = (name, value) => { // what this tab remembers
    try { return value === undefined ? sessionStorage.getItem(`ccship${base}:${name}`) : sessionStorage.setItem(`ccship${base}:${name}`, value); } catch { return null; }
  };

  // The list beside a conversation is narrowed as the list was that the reader came from, and keeps its place.
  if ($("main.home .sessions")) tab("list", $("main.home").dataset.narrowed);
  const side = $(".beside > [data-src]");
  if (side) {
    const list = new URLSearchParams(tab("list") || "");
    for (const name of ["after", "by", "filters"]) list.delete(name);
    if ([...list].length) side.dataset.src += "&" + list;
    side.addEventListener("scroll", () => tab("place", side.scrollTop), { passive: true });
    side.addEventListener("click", (e) => {
      const more = e.target.closest("[data-more]");
      if (!more || e.ctrlKey || e.metaKey) return;
      e.preventDefault();
      older(more).then(() => tab("pages", Number(tab("pages") || 0) + 1));
    });
  }
  async function older(more) {
    const part = (await piece(more.href)).doc.body.childNodes;
    more.parentElement.replaceWith(...part);
  }
  async function besideReady() {
    for (let n = Number(tab("pages") || 0); n > 0 && $("[data-more]", side); n--) await older($("[data-more]", side));
    side.scrollTop = Number(tab("place") || 0);
    const on = $("[aria-current]", side), box = side.getBoundingClientRect(), at = on?.getBoundingClientRect();
    if (at && (at.top < box.top || at.bottom > box.bottom)) side.scrollTop += at.top - box.top - box.height / 3;
  }

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
  $$("details[open] > [data-src]").forEach((h) => lazy(h).then(h === side ? besideReady : markPrompts));

  // One button to copy stands beside what has the pointer or the focus.
  const copier = document.createElement("button");
  copier.className = "copier";
  copier.type = "button";
  copier.textContent = "Copy";
  const offerCopy = (e) => {
    const what = e.target.closest?.(".items pre, .items .typed, .items .item.answer > .md, .whole-item pre");
    if (!what || what.nextElementSibling === copier) return;
    copier.textContent = "Copy";
    what.after(copier);
  };
  document.addEventListener("pointerover", offerCopy, { passive: true });
  document.addEventListener("focusin", offerCopy);
  copier.addEventListener("click", async () => {
    const what = copier.previousElementSibling;
    try {
      await navigator.clipboard.writeText(what.matches("pre, .typed") ? what.textContent : what.innerText);
      copier.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(what);
      copier.textContent = "Press Ctrl-C";
    }
  });

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

  // The search box completes the filter that is being typed.
  const box = $("#find");
  if (box) {
    const hint = $(".find kbd"), list = $("#names");
    hint.textContent = /Mac|iP/.test(navigator.platform) ? "⌘ K" : "Ctrl K";
    hint.hidden = false;
    let names = [];
    const load = async () => {
      try { names = $$("option", (await piece(box.dataset.names)).doc).map((o) => o.value); } catch { /* it can be typed */ }
    };
    if (document.activeElement === box) load();
    else box.addEventListener("focus", load, { once: true });
    box.addEventListener("input", () => {
      const at = box.value.lastIndexOf(" ") + 1, typed = box.value.slice(at).toLowerCase();
      const fit = typed.length > 1 ? names.filter((n) => n.toLowerCase().startsWith(typed) && n.toLowerCase() !== typed).slice(0, 12) : [];
      list.replaceChildren(...fit.map((n) => new Option("", box.value.slice(0, at) + n)));
    });
  }

  // Keys.
  const rows = () => {
    const beside = document.activeElement?.closest(".beside") || null;
    return $$("[data-row]").filter((r) => r.checkVisibility() && r.closest(".beside") === beside);
  };
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
    if (!to.closest(".beside") && to.getBoundingClientRect().top < top) scrollBy(0, to.getBoundingClientRect().top - top);
  };
  const foldAll = () => {
    const list = $$("details.tool, details.think, details.calls");
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
    s: () => {
      const list = $(".beside");
      if (!list || list.offsetParent === null) return false;
      if (document.activeElement?.closest(".beside")) { $("#items")?.focus(); list.open = false; return; }
      list.open = true;
      setTimeout(() => ($("[aria-current]", list) || $("a, summary", list)).focus(), 0);
    },
    "/": () => $("#find")?.focus(),
    f: () => $("#in-q")?.focus(),
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
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === "k" && box) {
      e.preventDefault();
      box.select();
      box.scrollIntoView({ block: "nearest" });
    }
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

  // A conversation is one page: what is above and below is fetched as the reader comes near. Without this there are links.
  const scroller = $("main[data-tail]") ? makeScroller($("main[data-tail]")) : null;
  function makeScroller(main) {
    const items = $("#items");
    let first = Number(main.dataset.first), last = Number(main.dataset.last), total = Number(main.dataset.total);
    let busy = null, again = false, extended = false, whenEnded = null;
    const window = 300, near = 1500;
    const ended = () => last + 1 >= total;
    const part = async (after, to) => {
      const u = main.dataset.tail + (main.dataset.tail.includes("?") ? "&" : "?") + `after=${after}` + (to === undefined ? "" : `&to=${to}`);
      const { doc, headers } = await piece(u);
      total = Number(headers.get("Ccship-Total"));
      return { doc, last: Number(headers.get("Ccship-Last")) };
    };
    // join puts a result to its call, and what follows an answer without naming its speaker again.
    const join = (item) => {
      for (const got of $$("details.tool[data-call]", item)) {
        const call = $(`#items .item:not(.result) details.tool[data-call="${CSS.escape(got.dataset.call)}"]`);
        if (!call || !item.classList.contains("result")) continue;
        $(".result", call).replaceChildren(...$(".result", got).childNodes);
        $(".end", call).replaceChildren(...$(".end", got).childNodes);
        call.className = got.className;
        if (!call.id) call.id = item.id;
        got.remove();
      }
      return !item.classList.contains("result") || $("details.tool", item);
    };
    const append = (doc) => {
      let n = 0;
      for (const item of [...doc.body.children]) {
        if (item.id && document.getElementById(item.id)) continue;
        if (item.matches(".day")) {
          if ($$(".day", items).at(-1)?.dataset.day !== item.dataset.day) items.append(item);
          continue;
        }
        if (!join(item)) continue;
        if (item.matches(".answer:not(.cont)") && items.lastElementChild?.matches(".answer")) {
          item.classList.add("cont");
          $(":scope > header > .speaker", item)?.classList.add("sr");
          $(":scope > header > .model", item)?.remove();
        }
        items.append(item);
        n++;
      }
      return n;
    };
    const down = async () => {
      const got = await part(last);
      const n = append(got.doc);
      extended = true;
      const more = got.last > last;
      last = Math.max(last, got.last);
      if (ended()) whenEnded?.();
      return more ? n : 0;
    };
    const up = async () => {
      const from = Math.max(0, first - window), parts = [];
      for (let at = from - 1; at < first - 1;) {
        const got = await part(at, first);
        parts.push(...got.doc.body.children);
        if (got.last <= at) break;
        at = got.last;
      }
      first = from;
      extended = true;
      const days = new Set();
      const fresh = parts.filter((e) => !(e.id && document.getElementById(e.id)) && !(e.matches(".day") && (days.has(e.dataset.day) || !days.add(e.dataset.day))));
      const top = items.firstElementChild, before = top?.getBoundingClientRect().top ?? 0;
      items.prepend(...fresh);
      for (const day of $$(".day", items)) if (!fresh.includes(day) && days.has(day.dataset.day)) day.hidden = true;
      for (const r of $$(".item.result", items)) if (!fresh.includes(r) && !join(r)) r.remove();
      const moved = top?.isConnected ? top.getBoundingClientRect().top - before : 0;
      if (moved) scrollBy({ top: moved, behavior: "instant" });
    };
    // once lets one fetch run at a time.
    const once = async (fetch) => {
      while (busy) await busy;
      busy = fetch().catch(() => 0).finally(() => { busy = null; });
      return busy;
    };
    const look = async () => {
      if (busy) return;
      const box = items.getBoundingClientRect();
      if (!ended() && box.bottom < innerHeight + near) { const was = last; await once(down); if (last > was) look(); }
      else if (first > 0 && box.top > -near) { await once(up); land(); look(); }
    };
    // What the address names stays in sight, whatever is put above it, until the reader moves.
    let landing = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const land = () => landing?.scrollIntoView({ behavior: "instant", block: "start" });
    if (landing) history.scrollRestoration = "manual";
    for (const moves of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(moves, () => { landing = null; }, { once: true, passive: true, capture: true });
    items.addEventListener("load", land, true); // a picture above has its size now
    const keepPlace = () => {
      if (!extended) return;
      const at = $$(".item", items).find((i) => i.getBoundingClientRect().bottom > 90);
      const line = at && /^L(\d+)/.exec(at.id);
      if (!line) return;
      const u = new URL(location);
      u.searchParams.set("from", Math.max(0, Number(line[1]) - 15));
      u.hash = at.id;
      history.replaceState(null, "", u);
    };
    let timer = 0;
    addEventListener("scroll", () => { look(); clearTimeout(timer); timer = setTimeout(keepPlace, 400); }, { passive: true });
    const begin = () => { land(); look(); };
    if (document.readyState === "complete") begin(); else addEventListener("load", () => setTimeout(begin, 0)); // behind the browser's own scrolling
    main.classList.add("scrolls");
    return {
      ended,
      atEnd: (tell) => { whenEnded = tell; if (ended()) tell(); },
      // down fetches what has come, and says how many entries that were.
      down: async () => {
        if (busy) { again = true; }
        let n = 0;
        do { again = false; n += await once(down); } while (again || !ended());
        return n;
      },
    };
  }

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
  const follow = "follow" in main.dataset ? tailer() : main.classList.contains("home") ? lister() : main.dataset.artifacts ? watcher() : null;
  if (!follow) return;
  const artifacts = renewer();
  const status = $("#following");
  // cut says whether the stream is interrupted: what is shown may be old.
  const cut = (off) => {
    if (!status || document.hidden) return;
    status.classList.toggle("cut", off);
    status.lastElementChild.textContent = off ? "Reconnecting…" : "Following";
    if (off) status.hidden = false;
  };
  let source = null;
  const listen = () => {
    if (document.hidden) {
      source?.close();
      source = null;
      return;
    }
    if (source) return;
    source = new EventSource(base + "/events" + follow.query);
    source.addEventListener("open", () => { cut(false); follow.all(); artifacts.soon(false); });
    source.addEventListener("change", (e) => {
      const c = JSON.parse(e.data);
      artifacts.soon(true);
      if (!c.about) follow.change(c);
    });
    source.addEventListener("all", () => { follow.all(); artifacts.soon(true); });
    source.addEventListener("error", () => { cut(true); if (source?.readyState === 2) { source = null; setTimeout(listen, 5000); } });
  };
  document.addEventListener("visibilitychange", listen);
  listen();

  function here() { return "?" + new URLSearchParams({ session: main.dataset.session, machine: main.dataset.machine, owner: main.dataset.owner }); }

  // watcher follows a session whose end is not on the page.
  function watcher() { return { query: here(), all: () => {}, change: () => {} }; }

  // tailer follows a session whose page shows its end. While the end is in sight the page stays there.
  function tailer() {
    let unseen = 0, generation = null;
    const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;
    const toEnd = () => { scrollTo(0, document.body.scrollHeight); unseen = 0; pill.hidden = true; };
    pill.addEventListener("click", () => {
      if (scroller.ended()) toEnd();
      else { const u = new URL(location); u.searchParams.set("from", "end"); u.hash = ""; location.href = u; }
    });
    addEventListener("scroll", () => { if (scroller.ended() && atEnd()) { unseen = 0; pill.hidden = true; } }, { passive: true });
    const fetchMore = async () => {
      if (!scroller.ended()) { pill.textContent = "New lines at the end ↓"; pill.hidden = false; return; }
      const stay = atEnd();
      const added = await scroller.down(true);
      if (stay) toEnd();
      else if ((unseen += added) > 0) { pill.textContent = `${unseen} new ↓`; pill.hidden = false; }
    };
    scroller.atEnd(() => { $("#following").hidden = false; });
    return {
      query: here(),
      all: () => { if (scroller.ended()) fetchMore(); },
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
      for (const id of ["facts", "chips", "link-requests", "checkpoints"]) {
        const was = document.getElementById(id), is = doc.getElementById(id);
        if (!was || !is || was.contains(document.activeElement) || was.innerHTML === is.innerHTML) continue;
        $$("details", is).forEach((d, i) => { const o = $$("details", was)[i]; if (o) d.open = o.open; });
        localTimes(is);
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

  // lister lights the dot of sessions that grow, says when there are new ones, and renews what runs now.
  function lister() {
    const timers = new Map();
    const now = $("#now");
    let waiting = false, last = 0;
    const renew = async () => {
      waiting = false;
      last = performance.now();
      if (document.hidden || now.contains(document.activeElement)) return;
      try { now.replaceChildren(...(await piece(now.dataset.url)).doc.body.childNodes); } catch { /* the next event tries again */ }
    };
    const soon = () => {
      if (!now || waiting) return;
      waiting = true;
      setTimeout(renew, Math.max(300, last + 3000 - performance.now()));
    };
    if (now) setInterval(soon, 20000); // a call that waits for permission writes nothing
    return {
      query: "",
      all: soon,
      change: (c) => {
        soon();
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
