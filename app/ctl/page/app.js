// SPDX-License-Identifier: BSD-3-Clause
"use strict";

// What the fabric says of itself, such as a name, is only ever put into the page as text.

const SVG = "http://www.w3.org/2000/svg";
const ROW_PX = 110, LEAST_NODE_PX = 26, LABEL_PX = 40, LIST_MAX = 500, OLD_S = 3;

const state = { fabric: null, faults: null, drawn: "", chosen: null, focus: 0, nodes: [], links: [], known: new Set(), late: 0, got: 0 };
const at = id => document.getElementById(id);

let errors = 0;
function countError() {
  document.documentElement.dataset.errors = String(++errors);
}
window.addEventListener("error", countError);
window.addEventListener("unhandledrejection", countError);

function element(name, attributes, ...children) {
  const svg = ["svg", "g", "path", "rect", "circle", "text", "title"].includes(name);
  const e = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (value !== undefined) e.setAttribute(key, value);
  e.append(...children.map(c => (c instanceof Node ? c : String(c))));
  return e;
}

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const percent = share => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const gbps = value => (value < 0.001 && value > 0 ? "<0.001" : value.toFixed(3));
const end = (fabric, link, which) => `${fabric.nodes[link[which]].name} ${link[which + "_port"]}`;

function loadClass(link) {
  if (link.state === "down" || link.state === "silent") return link.state;
  const limits = [0.01, 0.25, 0.6, 0.9];
  let level = limits.findIndex(limit => link.share < limit);
  if (level < 0) level = 4;
  return `load${level}`;
}

// ---- the picture ----

function layout(fabric) {
  const wide = Math.max(at("frame").clientWidth || 900, fabric.widest * LEAST_NODE_PX);
  const inRow = new Map();
  for (const n of fabric.nodes) inRow.set(n.rank, (inRow.get(n.rank) || 0) + 1);
  return {
    wide, high: fabric.ranks * ROW_PX,
    box: n => Math.min(124, Math.max(14, wide / inRow.get(n.rank) - 8)),
    place: n => ({ x: n.x * wide, y: n.y * fabric.ranks * ROW_PX }),
  };
}

function linkPath(a, b, k, of) {
  const shift = (k - (of - 1) / 2) * 9;
  if (a.x === b.x && a.y === b.y) // a port that is linked to its own node
    return `M${a.x} ${a.y - 12} c-26 -40 26 -40 0 0`;
  if (a.y === b.y) { // in one row: an arc, higher if it is longer
    const bend = Math.min(ROW_PX * 0.45, 22 + Math.abs(a.x - b.x) * 0.06) + shift;
    return `M${a.x} ${a.y} Q${(a.x + b.x) / 2} ${a.y - 2 * bend} ${b.x} ${b.y}`;
  }
  if (of === 1) return `M${a.x} ${a.y} L${b.x} ${b.y}`;
  return `M${a.x} ${a.y} Q${(a.x + b.x) / 2 + 2 * shift} ${(a.y + b.y) / 2} ${b.x} ${b.y}`;
}

function drawLinks(fabric, l, group) {
  const pairs = new Map();
  for (const link of fabric.links) {
    const key = `${link.a} ${link.b}`;
    pairs.set(key, (pairs.get(key) || []).concat([link]));
  }
  state.links = fabric.links.map((link, i) => {
    const same = pairs.get(`${link.a} ${link.b}`);
    const d = linkPath(l.place(fabric.nodes[link.a]), l.place(fabric.nodes[link.b]), same.indexOf(link), same.length);
    const path = element("path", { class: "link", d }, element("title"));
    path.addEventListener("click", () => choose("link", i));
    group.append(path);
    return path;
  });
}

/* The end of a name tells more than its beginning: "host 3.1.2" becomes "3.1.2". */
function shorten(name, box) {
  const most = Math.max(3, Math.floor((box - 6) / 6.4));
  if (name.length <= most) return name;
  const last = name.slice(name.lastIndexOf(" ") + 1);
  return last.length <= most ? last : `…${name.slice(1 - most)}`;
}

function drawNode(fabric, l, n, i) {
  const { x, y } = l.place(n);
  const box = l.box(n), labelled = box >= LABEL_PX, high = labelled ? 30 : 16;
  const g = element("g", { tabindex: i === state.focus ? "0" : "-1", role: "button", transform: `translate(${x} ${y})` },
    element("title"), element("rect", { class: "box", x: -box / 2, y: -high / 2, width: box, height: high,
      rx: n.type === "switch" ? 4 : high / 2 }));
  if (labelled) g.append(element("text", { class: "name" }, shorten(n.name, box)));
  g.append(element("g", { class: "mark", transform: `translate(${box / 2 - 2} ${-high / 2 + 1})` }));
  g.addEventListener("click", () => choose("node", i));
  g.addEventListener("keydown", event => moveFrom(i, event));
  g.addEventListener("focus", () => setFocus(i));
  return g;
}

function draw(fabric) {
  const l = layout(fabric), graph = at("graph");
  const links = element("g", {}), nodes = element("g", {});
  graph.setAttribute("viewBox", `0 0 ${l.wide} ${l.high}`);
  graph.style.minWidth = `${Math.min(l.wide, fabric.widest * LEAST_NODE_PX)}px`;
  drawLinks(fabric, l, links);
  state.nodes = fabric.nodes.map((n, i) => drawNode(fabric, l, n, i));
  nodes.append(...state.nodes);
  graph.replaceChildren(links, nodes);
}

function nodeText(n) {
  const parts = [`${n.type} ${n.name}`, n.known ? `load ${percent(n.load)}` : "does not answer"];
  if (n.type === "switch" && n.endpoints) parts.push(count(n.endpoints, "endpoint"));
  if (n.faults) parts.push(count(n.faults, "open fault"));
  return parts.join(", ");
}

function linkText(fabric, link) {
  const ends = `${end(fabric, link, "a")} – ${end(fabric, link, "b")}`;
  return link.state === "down" || link.state === "silent" ? `${ends}: ${link.state}`
    : `${ends}: ${link.state}, ${gbps(link.ab_gbps)} and ${gbps(link.ba_gbps)} Gb/s, ${percent(link.share)}`;
}

function colour(fabric) {
  fabric.links.forEach((link, i) => {
    const chosen = state.chosen && state.chosen.kind === "link" && state.chosen.i === i;
    state.links[i].setAttribute("class", `link ${loadClass(link)}${chosen ? " chosen" : ""}`);
    state.links[i].firstChild.textContent = linkText(fabric, link);
  });
  fabric.nodes.forEach((n, i) => {
    const g = state.nodes[i], mark = g.querySelector(".mark");
    const chosen = state.chosen && state.chosen.kind === "node" && state.chosen.i === i;
    g.setAttribute("class", ["node", n.type, n.known ? "" : "silent", n.load >= 0.95 ? "hot" : "", n.faults ? "faulty" : "",
      chosen ? "chosen" : ""].filter(Boolean).join(" "));
    g.setAttribute("aria-label", nodeText(n));
    g.querySelector("title").textContent = nodeText(n);
    mark.replaceChildren(...(n.faults ? [element("circle", { r: 8 }), element("text", {}, n.faults > 9 ? "9+" : n.faults)] : []));
  });
}

// ---- keyboard and choice ----

function setFocus(i) {
  state.nodes[state.focus].setAttribute("tabindex", "-1");
  state.focus = i;
  state.nodes[i].setAttribute("tabindex", "0");
}

function nearest(i, key) {
  const nodes = state.fabric.nodes, here = nodes[i];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = i + (key === "ArrowRight" ? 1 : -1);
    return nodes[next] && nodes[next].rank === here.rank ? next : -1;
  }
  const rank = here.rank + (key === "ArrowUp" ? 1 : -1);
  let best = -1;
  nodes.forEach((n, k) => {
    if (n.rank === rank && (best < 0 || Math.abs(n.x - here.x) < Math.abs(nodes[best].x - here.x))) best = k;
  });
  return best;
}

function moveFrom(i, event) {
  if (event.key === "Enter" || event.key === " ") choose("node", i);
  else if (event.key.startsWith("Arrow")) {
    const next = nearest(i, event.key);
    if (next >= 0) state.nodes[next].focus();
  } else return;
  event.preventDefault();
}

function choose(kind, i) {
  state.chosen = { kind, i };
  colour(state.fabric);
  showDetails();
}

function facts(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [term, text] of pairs) list.append(element("dt", {}, term), element("dd", {}, text));
  return list;
}

function showDetails() {
  if (!state.chosen) return;
  const fabric = state.fabric, { kind, i } = state.chosen;
  let pairs;
  if (kind === "node") {
    const n = fabric.nodes[i];
    pairs = [["name", n.name], ["GUID", n.guid], ["type", n.type], ["ports", n.ports], ["state", n.known ? "answers" : "does not answer"],
      ["load", percent(n.load)], ["fullest ring", percent(n.ring)], ["open faults", n.faults],
      ...fabric.links.filter(k => k.a === i || k.b === i).map(k => {
        const near = k.a === i ? "a" : "b", far = k.a === i ? "b" : "a";
        return [`port ${k[near + "_port"]}`, `${end(fabric, k, far)}: ${k.state}, ${percent(k.share)}`];
      })];
  } else {
    const k = fabric.links[i];
    pairs = [["from", end(fabric, k, "a")], ["to", end(fabric, k, "b")], ["state", k.state], ["forward", `${gbps(k.ab_gbps)} Gb/s`],
      ["back", `${gbps(k.ba_gbps)} Gb/s`], ["speed", k.bps ? `${(k.bps / 1e9).toFixed(1)} Gb/s` : "unknown"], ["load", percent(k.share)],
      ["errors", k.errors], ["discards", k.discards], ["went down", count(k.downs, "time")]];
  }
  at("what").replaceChildren(facts(pairs));
}

// ---- lists ----

function table(caption, heads, rows) {
  if (!rows.length) return element("p", { class: "none" }, "none");
  const head = element("tr", {}, ...heads.map(h => element("th", { scope: "col", class: h.startsWith("#") ? "number" : undefined }, h.replace("#", ""))));
  return element("table", { "aria-label": caption }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function row(kind, heads, cells) {
  return element("tr", { class: kind || undefined },
    ...cells.map((c, i) => element("td", { class: heads[i].startsWith("#") ? "number" : undefined }, c)));
}

function chooser(text, kind, i) {
  const button = element("button", { type: "button" }, text);
  button.addEventListener("click", () => choose(kind, i));
  return button;
}

function listLinks(fabric) {
  const heads = ["link", "state", "#forward Gb/s", "#back Gb/s", "#load", "#errors", "#discards"];
  const worse = { down: 2, silent: 1 };
  const order = fabric.links.map((k, i) => [k, i]).sort(([a, i], [b, k]) =>
    (worse[b.state] || 0) - (worse[a.state] || 0) || b.share - a.share || i - k);
  at("links").replaceChildren(table("Links, those that are down first, then by load", heads, order.slice(0, LIST_MAX).map(([k, i]) =>
    row(k.state in worse ? "bad" : "", heads, [chooser(`${end(fabric, k, "a")} – ${end(fabric, k, "b")}`, "link", i), k.state,
      gbps(k.ab_gbps), gbps(k.ba_gbps), percent(k.share), k.errors, k.discards]))));
}

function listNodes(fabric) {
  const heads = ["node", "type", "state", "#load", "#faults"];
  at("nodes").replaceChildren(table("Nodes, row by row of the picture", heads, fabric.nodes.slice(0, LIST_MAX).map((n, i) =>
    row(n.known ? "" : "bad", heads, [chooser(n.name, "node", i), n.type, n.known ? "answers" : "silent", percent(n.load), n.faults]))));
}

function listFaults(faults) {
  const heads = ["#", "time", "severity", "node", "#port", "cause", "state"];
  const kinds = { raised: "bad", acknowledged: "", cleared: "over" };
  at("faults").replaceChildren(table("Faults, the last one first", heads, faults.faults.map(f =>
    row(kinds[f.state], heads, [f.id, new Date(f.time * 1000).toLocaleString(), f.severity, f.description, f.port,
      f.limit ? `${f.cause} (${f.value}, limit ${f.limit})` : f.cause, f.state]))));
}

/* A list that a reader is in stays as it is. */
function refresh(id, make) {
  if (!at(id).contains(document.activeElement)) make();
}

// ---- what is new ----

function tell(faults) {
  const fresh = faults.faults.filter(f => !state.known.has(f.id) && f.state === "raised");
  faults.faults.forEach(f => state.known.add(f.id));
  if (fresh.length) at("news").textContent = fresh.slice(0, 3).map(f => `${f.severity}: ${f.description} port ${f.port}: ${f.cause}`).join("; ");
}

function sums(fabric, faults) {
  const down = fabric.links.filter(k => k.state === "down").length;
  const item = (text, bad) => element("li", bad ? { class: "bad" } : {}, text);
  const items = [item(count(fabric.all_nodes, "node")), item(count(fabric.links.length, "link") + (fabric.no_endpoints ? " between switches" : "")), item(`${down} down`, down),
    item(`${fabric.silent} silent`, fabric.silent)];
  if (faults) items.push(item(count(faults.open, "open fault"), faults.open));
  if (fabric.no_endpoints) items.push(item("picture of the switches only"));
  if (fabric.not_reporting) items.push(item(`${count(fabric.not_reporting, "node")} report no faults here`, true));
  at("sums").replaceChildren(...items);
}

function show() {
  const { fabric, faults } = state;
  const drawn = `${at("frame").clientWidth} ${fabric.nodes.map(n => n.guid).join()} ${fabric.links.length}`;
  if (drawn !== state.drawn) {
    if (state.focus >= fabric.nodes.length) state.focus = 0;
    draw(fabric);
    state.drawn = drawn;
  }
  colour(fabric);
  sums(fabric, faults);
  refresh("links", () => listLinks(fabric));
  refresh("nodes", () => listNodes(fabric));
  showDetails();
  document.documentElement.dataset.pass = String(fabric.pass);
}

function showAge() {
  const age = at("age");
  if (!state.fabric) {
    age.textContent = "waiting for the first pass";
    return;
  }
  const old = (state.late + performance.now() - state.got) / 1000;
  age.textContent = `pass ${state.fabric.pass}, ${old.toFixed(1)} s ago`;
  age.classList.toggle("old", old > OLD_S + state.fabric.interval_s);
}

/* Null: there is no answer, or not all of it. The age says so. */
async function get(path) {
  const response = await fetch(path).catch(() => null);
  const body = response && response.ok ? await response.json().catch(() => null) : null;
  return body && { late: Number(response.headers.get("Uroce-Age-Ms")), body };
}

async function poll() {
  let wait = 1;
  try {
    const [fabric, faults] = await Promise.all([get("/fabric.json"), get("/faults.json")]);
    if (faults) {
      state.faults = faults.body;
      refresh("faults", () => listFaults(faults.body));
      tell(faults.body);
    }
    if (fabric) {
      state.fabric = fabric.body;
      state.late = fabric.late;
      state.got = performance.now();
      wait = Math.max(0.2, fabric.body.interval_s);
      show();
      showAge();
    }
  } finally {
    setTimeout(poll, wait * 1000);
  }
}

window.addEventListener("resize", () => state.fabric && show());
setInterval(showAge, 500);
poll();
