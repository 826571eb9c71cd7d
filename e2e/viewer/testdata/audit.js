// What pages are held to beyond what they say: names, structure, contrast, focus. Put into every page before it loads.
"use strict";
const audit = (() => {
  const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const $$ = (s) => [...document.querySelectorAll(s)];
  const what = (e) => `${e.tagName.toLowerCase()}${e.id && "#" + e.id}${typeof e.className === "string" && e.className ? "." + e.className.trim().replace(/\s+/g, ".") : ""} “${(e.innerText || "").trim().slice(0, 40)}”`;

  // name is what a screen reader says of a control.
  const name = (e) => {
    const by = (e.getAttribute("aria-labelledby") || "").split(" ").map((i) => document.getElementById(i)?.textContent || "").join(" ").trim();
    const labels = [...(e.labels || [])].map((l) => l.textContent.trim()).join(" ");
    const alts = [...e.querySelectorAll("img[alt], svg title")].map((i) => i.alt || i.textContent).join(" ");
    return by || e.getAttribute("aria-label") || labels || (e.matches("input, select, textarea") ? "" : e.textContent.trim() || alts) || e.title || "";
  };
  const names = () => $$("a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], dialog").filter((e) => !e.hidden && !name(e)).map((e) => `no name: ${what(e)}`);

  const structure = () => {
    const out = [];
    const count = (s, n) => { if ($$(s).length !== n) out.push(`${$$(s).length} × ${s}, not ${n}`); };
    count("h1", 1); count("main", 1); count("body > header", 1); count("head > title", 1);
    if (!document.title.trim()) out.push("no title");
    if (!document.documentElement.lang) out.push("no language");
    if ($$("meta[name=viewport]").some((m) => /user-scalable=no|maximum-scale/.test(m.content))) out.push("can't be zoomed");
    $$("img").filter((i) => !i.hasAttribute("alt")).forEach((i) => out.push(`no alt: ${i.src}`));
    const ids = $$("[id]").map((e) => e.id);
    ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => out.push(`id twice: ${id}`));
    for (const e of $$("[aria-labelledby], [aria-describedby], [for]")) for (const a of ["aria-labelledby", "aria-describedby", "for"])
      for (const i of (e.getAttribute(a) || "").split(" ")) if (i && !document.getElementById(i)) out.push(`${a} names ${i}, which is not there`);
    for (const e of $$("svg:not([aria-hidden=true])")) if (e.getAttribute("role") !== "img" && !(e.getAttribute("role") === "group" && e.getAttribute("aria-labelledby"))) out.push(`a drawing that is neither hidden nor named: ${what(e)}`);
    let level = 0;
    for (const h of $$("h1, h2, h3, h4, h5, h6").filter((h) => !h.closest(".md"))) {
      const l = Number(h.tagName[1]);
      if (l > level + 1 && level > 0) out.push(`h${level} and then h${l}: ${what(h)}`);
      level = l;
    }
    const marks = $$("nav, aside, form[role=search], section[aria-label]").map((e) => [e.tagName, e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.querySelector("label")?.innerText || ""]);
    marks.filter((m) => m[0] === "NAV" && !m[1]).forEach(() => out.push("a nav without a name"));
    for (const e of $$("li")) if (!["UL", "OL", "MENU"].includes(e.parentElement.tagName)) out.push(`li in ${e.parentElement.tagName}`);
    for (const e of $$("th")) if (!e.scope && !e.closest(".md")) out.push(`th without scope: ${what(e)}`);
    for (const e of $$("[aria-hidden=true]")) if (e.querySelector("a[href], button, input")) out.push(`hidden, but can have the focus: ${what(e)}`);
    for (const e of $$("[tabindex]")) if (e.tabIndex > 0) out.push(`tabindex ${e.tabIndex}: ${what(e)}`);
    return out;
  };

  const rgba = (c) => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith("color(srgb") ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.unshift(c);
      if (c[3] === 1) break;
    }
    return layers.reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const luminance = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const opacity = (e) => { let o = 1; for (; e; e = e.parentElement) o *= Number(getComputedStyle(e).opacity); return o; };
  // contrast looks at every text that can be seen, and at what fields suggest.
  const contrast = () => {
    const faults = new Map();
    const check = (e, colour, text) => {
      const under = ground(e);
      const c = rgba(colour);
      const got = ratio(over([c[0], c[1], c[2], c[3] * opacity(e)], under), under);
      const style = getComputedStyle(e);
      const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
      if (got < (large ? 3 : 4.5)) faults.set(`${e.tagName}.${e.className}`, `contrast ${got.toFixed(2)}: ${what(e)} “${text.trim().slice(0, 30)}” ${colour} on ${under.map(Math.round)}`);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n = texts.nextNode(); n; n = texts.nextNode()) {
      const e = n.parentElement;
      if (!n.data.trim() || !seen(e) || e.closest("script, style, option, svg") || e.closest(":disabled")) continue;
      check(e, getComputedStyle(e).color, n.data);
    }
    for (const t of $$("svg text")) if (seen(t)) check(t, getComputedStyle(t).fill, t.textContent);
    for (const i of $$("input[placeholder]")) if (seen(i) && !i.value) check(i, getComputedStyle(i, "::placeholder").color, i.placeholder);
    return [...faults.values()];
  };

  // edges looks at fields and code: their border or ground must stand out from what is around them.
  const edges = () => $$("input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea, pre, :not(pre) > code").filter(seen).flatMap((e) => {
    const s = getComputedStyle(e), around = ground(e.parentElement), border = rgba(s.borderBottomColor), bare = s.borderBottomStyle === "none";
    if (bare && rgba(s.backgroundColor)[3] === 0) return []; // it is only text
    const got = Math.max(bare ? 1 : ratio(over(border, around), around), ratio(ground(e), around));
    return got < 3 ? [`an edge of ${got.toFixed(2)}: ${what(e)}`] : [];
  });

  // order gives each stop of the tab key the focus, as the key would.
  const order = () => {
    const out = [];
    const stops = $$("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']").filter((e) => seen(e) && !e.disabled && !e.closest("dialog:not([open])"));
    const ground = stops.map((e) => { const s = getComputedStyle(e); return s.outlineStyle + s.boxShadow + s.borderColor + s.backgroundColor; });
    let last = null;
    stops.forEach((e, i) => {
      e.focus({ focusVisible: true });
      if (document.activeElement !== e) { out.push(`can't have the focus: ${what(e)}`); return; }
      const s = getComputedStyle(e);
      if (s.outlineStyle === "none" && s.outlineStyle + s.boxShadow + s.borderColor + s.backgroundColor === ground[i]) out.push(`the focus is not seen: ${what(e)}`);
      if (last && !(last.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) out.push(`out of order: ${what(e)}`);
      last = e;
    });
    if (stops.length < 5) out.push(`only ${stops.length} stops`);
    return out;
  };

  return { all: () => [...names(), ...structure(), ...contrast(), ...edges()], order };
})();
