// Keys, times, unfolding, following: all else works without it.
"use strict";
(() => {
  const base = document.documentElement.dataset.base || "";
  const $ = (s, at = document) => at.querySelector(s);
  const $$ = (s, at = document) => [...at.querySelectorAll(s)];
  const main = $("#main"), pill = $("#pill"), box = $("#find"), items = $("#items");
  const byId = (id) => document.getElementById(id);
  const rect = (e) => e.getBoundingClientRect();
  const active = () => document.activeElement;
  const wide = (width) => matchMedia(`(min-width: ${width}rem)`).matches;

  // Times are in UTC until here. The server gets the zone for days and hours.
  document.cookie = `ccship_zone=${-new Date().getTimezoneOffset()}; Path=${base}/; Max-Age=31536000; SameSite=Lax`;
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const stamp = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const localTimes = (at) => {
    for (const t of $$("time[datetime], option[data-stamp]", at)) {
      const d = new Date(t.dateTime || t.dataset.stamp);
      if (isNaN(d)) continue;
      t.title = stamp.format(d);
      if ("clock" in t.dataset) t.textContent = clock.format(d);
      if ("stamp" in t.dataset) t.textContent = (t.dataset.name ? t.dataset.name + " · " : "") + stamp.format(d);
    }
  };
  localTimes(document);

  // Pieces of pages. The server makes them inert, and the page's policy lets no script of theirs run.
  const piece = async (url) => {
    const r = await fetch(url);
    if (!r.ok) throw new Error(r.status);
    const doc = new DOMParser().parseFromString(await r.text(), "text/html");
    localTimes(doc);
    doc.header = (name) => Number(r.headers.get(name));
    return doc;
  };
  const fill = async (holder, url) => holder.replaceChildren(...(await piece(url)).body.childNodes);
  const lazy = async (holder) => {
    const src = holder.dataset.src;
    if (!src) return;
    delete holder.dataset.src;
    try {
      await fill(holder.tagName === "DETAILS" ? holder.lastElementChild : holder, src);
    } catch { holder.dataset.src = src; } // a link to the same stands there
    const on = $(".beside [aria-current]", holder);
    if (on) holder.scrollTop = on.offsetTop - 150;
  };

  // What a browser, or this tab, remembers, if it may.
  const remember = (name, value, store = "localStorage") => {
    try {
      const at = `ccship${base}:${name}`;
      return value === undefined ? window[store].getItem(at) : window[store].setItem(at, value);
    } catch { return null; }
  };
  for (const d of $$("details[data-keep]")) {
    const was = remember(d.dataset.keep);
    d.open = was ? was === "open" : "wide" in d.dataset && wide(80);
  }
  if (!wide(62)) for (const d of $$(".side details")) d.open = false;

  // The list beside is narrowed as the one that the reader came from.
  const list = remember("list", main.dataset.narrowed, "sessionStorage"), side = $(".beside > [data-src]");
  if (list && side) side.dataset.src += "&" + list;

  // Marks documents that changed since they were opened here.
  const badges = () => {
    if (main.dataset.opened) remember(main.dataset.opened, main.dataset.version);
    for (const a of $$("[data-doc]")) {
      const seen = remember(a.dataset.doc);
      if (!seen) remember(a.dataset.doc, a.dataset.version);
      a.classList.toggle("changed", seen && Number(a.dataset.version) > Number(seen));
    }
  };
  badges();

  document.addEventListener("toggle", ({ target: d }) => {
    if (d.dataset.keep) remember(d.dataset.keep, d.open ? "open" : "shut");
    if (d.open) [d, ...$$(":scope > [data-src]", d)].forEach(lazy);
  }, true);
  $$("details[open] > [data-src]").forEach(lazy);

  // A button to copy stands beside what has the pointer or focus.
  const copier = document.createElement("button");
  copier.className = "copier";
  for (const near of ["pointerover", "focusin"]) document.addEventListener(near, (e) => {
    const what = e.target.closest?.(".items pre, .items .typed, .items .item.answer > .md, .whole-item pre");
    if (!what || what.nextElementSibling === copier) return;
    copier.textContent = "Copy";
    what.after(copier);
  });
  document.addEventListener("click", async ({ target: at }) => {
    for (const m of $$("details.menu[open]")) if (!m.contains(at)) m.open = false;
    if (!at.matches(".copier, .copy button")) return;
    const what = at.previousElementSibling;
    try {
      await navigator.clipboard.writeText(what.matches(".md") ? what.innerText : what.textContent);
      at.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(what);
      at.textContent = "Press Ctrl-C";
    }
  });

  // The search box completes filters.
  if (box) {
    let names;
    box.addEventListener("input", async () => {
      names ??= piece(box.dataset.names).then((doc) => $$("option", doc).map((o) => o.value), () => []);
      const has = await names, at = box.value.lastIndexOf(" ") + 1, typed = box.value.slice(at).toLowerCase();
      const fit = has.filter((n) => typed[1] && n.length > typed.length && n.toLowerCase().startsWith(typed));
      $("#names").replaceChildren(...fit.slice(0, 12).map((n) => new Option("", box.value.slice(0, at) + n)));
    });
  }

  // Keys.
  const top = 90; // what is higher is below the bar
  const move = (step, only = "*") => {
    const on = active().closest("[data-row]"), beside = active().closest(".beside");
    const list = $$("[data-row]").filter((r) => r.checkVisibility() && r.closest(".beside") === beside && r.matches(only));
    let at = list.indexOf(on);
    if (at < 0) at = list.filter((r) => on ? r.compareDocumentPosition(on) & 4 : rect(r).top < top).length - (step > 0);
    const to = list[Math.max(0, Math.min(list.length - 1, at + step))];
    if (!to) return;
    ((!to.matches(".item") && $("a", to)) || to).focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest" });
    if (!beside && rect(to).top < top) scrollBy(0, rect(to).top - top);
  };
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    n: () => move(1, ".prompt"),
    p: () => move(-1, ".prompt"),
    e: () => {
      const list = $$(".tool, .think, .calls"), open = list.some((d) => !d.open);
      for (const d of list) d.open = open;
    },
    "/": () => box?.focus(),
    f: () => $("#in-q")?.focus(),
    "?": () => $("#help").showModal(),
    Enter: () => {
      const d = active().matches(".item") && $("details", active());
      if (!d) return false;
      d.open = !d.open;
    },
  };
  document.addEventListener("keydown", (e) => {
    const control = e.ctrlKey || e.metaKey;
    if (control && e.key === "k" && box) {
      e.preventDefault();
      box.select();
      box.scrollIntoView({ block: "nearest" });
    }
    if (control || e.altKey || $("dialog[open]")) return;
    if (e.target.matches("input, textarea, select")) {
      if (e.key === "Escape") e.target.blur();
    } else if (keys[e.key] && keys[e.key]() !== false) e.preventDefault();
  });

  // A conversation is one page: what is above and below is fetched as the reader comes near.
  const talk = main.dataset.tail ? conversation() : null;
  function conversation() {
    let first = Number(main.dataset.first), last = Number(main.dataset.last), total = Number(main.dataset.total);
    let start = first; // the lines from here on are shown anew when others come
    let busy = null, timer = 0;
    const all = () => [...items.children];
    const lineOf = (e) => Number(e.id.match(/\d+/));
    const made = new WeakMap(all().map((e) => [e, e.outerHTML]));
    const ended = () => last + 1 >= total;
    const fetched = async (after, to) => {
      const doc = await piece(`${main.dataset.tail}&after=${after}` + (to ? `&to=${to}` : ""));
      total = doc.header("Ccship-Total");
      if (main.dataset.generation && doc.header("Ccship-Generation") !== Number(main.dataset.generation)) location.reload(); // the file was rewritten
      return { list: [...doc.body.children], last: doc.header("Ccship-Last") };
    };
    // change keeps place and focus.
    const change = (what) => {
      const mark = all().find((e) => rect(e).bottom > top), y = mark && rect(mark).top, focus = active().id;
      what();
      let day;
      for (const d of $$(".day", items)) d.hidden = day === (day = d.dataset.day);
      for (const got of $$("#items > .result .tool[data-call]")) { // the call has it too
        const item = got.closest(".item");
        if ($(`:not(.result) > .tool:is(.ok, .error)[data-call="${CSS.escape(got.dataset.call)}"]`, items)) got.remove();
        if (!$(".tool", item)) item.remove();
      }
      const now = mark && byId(mark.id)?.closest("#items > *");
      if (now) scrollBy(0, rect(now).top - y);
      if (focus && active() === document.body) byId(focus)?.focus({ preventScroll: true });
    };
    // put shows lines anew; what is the same stays.
    const put = (list, from, to) => {
      const old = new Map(all().filter((e) => lineOf(e) >= from && lineOf(e) <= to).map((e) => [e.id, e]));
      const key = (d) => d.dataset.call || d.className + d.closest(".item").id;
      const open = new Map([...old.values()].flatMap((e) => $$("details", e)).map((d) => [key(d), d.open]));
      let at = all().findLast((e) => lineOf(e) < from);
      const fresh = list.map((f) => {
        const was = old.get(f.id), html = f.outerHTML;
        if (was && made.get(was) === html) {
          old.delete(f.id);
          return was;
        }
        made.set(f, html);
        for (const d of $$("details", f)) {
          d.open = open.get(key(d)) ?? d.open;
          if (d.open && d.matches(".calls .tool")) d.closest(".calls").open = true;
        }
        return f;
      });
      for (const e of old.values()) e.remove();
      for (const e of fresh) {
        if (e !== (at ? at.nextElementSibling : items.firstElementChild)) at ? at.after(e) : items.prepend(e);
        at = e;
      }
    };
    // down fetches what comes next; at the end with what precedes it, so that all folds as on a new page.
    const down = async () => {
      const grows = ended();
      if (grows) await fetched(last);
      if (grows && ended()) return;
      if (!grows && total - last > 250) start = last + 1;
      else if (last - start > 250) {
        const near = all().find((e) => last - lineOf(e) < 200 && (e.matches(".prompt") || $(".tool:not(.ok, .error)", e)));
        start = near ? lineOf(near) : last + 1;
      }
      const got = await fetched(start - 1);
      change(() => put(got.list, start, got.last));
      if (got.last <= last) start = last + 1;
      last = Math.max(last, got.last);
    };
    const up = async () => {
      const from = Math.max(0, first - 300), parts = [];
      for (let at = from; at < first;) {
        const got = await fetched(at - 1, first);
        parts.push(...got.list);
        at = Math.max(at, got.last) + 1;
      }
      first = from;
      change(() => items.prepend(...parts));
    };
    const once = async (job) => {
      while (busy) await busy;
      await (busy = job().catch(() => {}).finally(() => { busy = null; }));
    };
    const look = async () => {
      const was = first + last;
      if (busy) return;
      if (!ended() && rect(items).bottom < innerHeight + 1500) await once(down);
      else if (first > 0 && rect(items).top > -1500) await once(up);
      if (first + last !== was) look();
    };
    // settle marks the prompt that is read, and names the place in the address.
    const settle = () => {
      const at = $$("#items > .item").find((i) => rect(i).bottom > top);
      if (!at) return;
      const prompts = $$(".toc li[data-line]"), here = prompts.findLast((l) => l.dataset.line <= lineOf(at));
      for (const l of prompts) l.classList.toggle("here", l === here);
      const u = new URL(location);
      u.searchParams.set("from", Math.max(0, lineOf(at) - 15));
      u.hash = at.id;
      history.replaceState(null, "", u);
    };
    if (location.hash) history.scrollRestoration = "manual"; // the line counts
    addEventListener("scroll", () => {
      look();
      clearTimeout(timer);
      timer = setTimeout(settle, 300);
    });
    addEventListener("load", () => setTimeout(look)); // behind the browser's own scrolling
    main.classList.add("scrolls");
    return { ended, down: async () => { do await once(down); while (!ended()); } };
  }

  // Following. Events say only that something is new; a hidden page listens to nothing.
  const { session, machine, owner, artifacts } = main.dataset, status = $("#following");
  const follow = !("live" in document.body.dataset) ? null : "follow" in main.dataset ? tailer() : main.matches(".home") ? lister() : artifacts && (() => {});
  if (!follow) return;
  let source = null, changed = false;
  const renew = calm(4000, async () => {
    if (!artifacts) return;
    const doc = await piece(artifacts);
    for (const is of $$("[id]", doc)) {
      const was = byId(is.id);
      if (!was || was.contains(active())) continue;
      $$("details", is).forEach((d, i) => { d.open = $$("details", was)[i]?.open; });
      if (was.innerHTML !== is.innerHTML) was.replaceChildren(...is.childNodes);
    }
    badges();
    const chart = $(".context[open] > .holder:not([data-src])");
    if (!changed || !chart || chart.contains(active())) return;
    changed = false;
    await fill(chart, chart.dataset.url);
  });
  const listen = () => {
    if (document.hidden) source = source?.close();
    if (document.hidden || source) return;
    source = new EventSource(base + "/events" + (session ? "?" + new URLSearchParams({ session, machine, owner }) : ""));
    source.onopen = () => {
      status?.classList.remove("cut");
      if (!talk || talk.ended()) follow();
      renew();
    };
    source.onmessage = () => { changed = true; follow(); renew(); };
    source.onerror = () => {
      status?.classList.add("cut"); // what is shown may be old
      if (source?.readyState !== 2) return;
      source = null;
      setTimeout(listen, 5000);
    };
  };
  document.addEventListener("visibilitychange", listen);
  listen();

  // calm has a job done soon, but never twice within a time.
  function calm(rest, job) {
    let timer = 0, last = 0;
    return () => {
      timer ||= setTimeout(() => {
        timer = 0;
        last = Date.now();
        job().catch(() => {});
      }, Math.max(300, last + rest - Date.now()));
    };
  }

  // tailer shows new lines, and stays at the end.
  function tailer() {
    let seen = items.children.length;
    const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;
    const read = () => { seen = items.children.length; pill.hidden = true; };
    const toEnd = () => { if (rect(items).bottom > innerHeight) scrollTo(0, 1e9); read(); };
    const say = (words) => { pill.textContent = words; pill.hidden = false; };
    pill.addEventListener("click", (e) => {
      if (!talk.ended()) return; // it is a link
      e.preventDefault();
      toEnd();
    });
    addEventListener("scroll", () => { if (talk.ended() && atEnd()) read(); });
    const more = calm(300, async () => {
      const stay = atEnd();
      await talk.down();
      if (stay) toEnd(); else if (items.children.length > seen) say(`${items.children.length - seen} new ↓`);
    });
    return () => talk.ended() ? more() : say("New lines at the end ↓");
  }

  // lister renews rows in their places.
  function lister() {
    const at = (row) => row.id || $("a", row).href;
    const all = calm(5000, async () => {
      const rows = new Map($$("#now, .row").map((r) => [at(r), r]));
      for (const row of document.hidden ? [] : $$("#now, .row", await piece(location))) {
        const was = rows.get(at(row));
        if (!was) pill.hidden = false;
        else if (!was.contains(active())) was.replaceWith(row);
      }
    });
    setInterval(all, 20000); // waiting writes nothing
    return all;
  }
})();
