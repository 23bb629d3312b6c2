const { vertices, groups, edges } = data;
const picture = find("#picture"), canvas = find("#canvas"), details = find("#details");
const into = vertices.map(() => []), outOf = vertices.map(() => []);
for (const [producer, consumer] of edges) {
  into[consumer].push(producer);
  outOf[producer].push(consumer);
}
const parts = groups.map(() => []); // the vertices of each group, at any depth
vertices.forEach((vertex, i) => {
  for (let g = vertex.group; g >= 0; g = groups[g].parent) parts[g].push(i);
});
let shown = 0, chosen = null, traced = null;
let camera = { x: 0, y: 0, scale: 1 };

const isGroup = (target) => target.includes("g");
const numberOf = (target) => Number(target.replace(/\D/g, ""));
const plain = (target) => target.replace("o", "");
function nameOf(target) {
  if (isGroup(target)) {
    const group = groups[numberOf(target)];
    return group.label + (group.repeated > 1 ? " × " + group.repeated : "");
  }
  const vertex = vertices[numberOf(target)];
  return vertex.leaf === null ? vertex.name : vertex.leaf || "leaf";
}

// The picture ---------------------------------------------------------------------------------

function open(group, then = null) {
  shown = group;
  const view = groups[group].view, half = data.height / 2;
  const lines = view.lines.map(([a, b, d]) => make("path", { d, "data-a": a, "data-b": b }));
  const cards = view.cards.map(([target, title, subtitle, family, x, y, width]) => {
    const radius = family === "leaf" ? 5 : 10;
    const card = make("g", { class: "vertex " + family, "data-target": target, tabindex: 0,
        role: "button", "aria-label": nameOf(target) },
      make("rect", { x: x - width / 2, y: y - half, width, height: data.height, rx: radius }),
      make("text", { x, y: y - 7 }, title), make("text", { class: "sub", x, y: y + 10 }, subtitle));
    card.addEventListener("click", () => { if (!moved) follow(target); });
    card.addEventListener("keydown", (event) => { if (event.key === "Enter") follow(target); });
    return card;
  });
  picture.replaceChildren(
    make("g", { id: "scene" }, make("g", { class: "edges" }, ...lines), ...cards));
  showPath();
  fit();
  mark();
  if (then === null) describe(group ? "g" + group : "g0");
}

/** Open a group, look at a vertex, or go to where something outside is. */
function follow(target) {
  const own = plain(target);
  if (isGroup(own) && own === target) open(numberOf(own));
  else choose(own);
}

/** Show a vertex or group in the view that has it, and say everything about it. */
function choose(target) {
  const i = numberOf(target);
  const home = isGroup(target) ? Math.max(groups[i].parent, 0) : vertices[i].group;
  chosen = target;
  if (home !== shown) open(home, target);
  describe(target);
  mark();
  const card = picture.querySelector(`[data-target="${target}"]`);
  if (card) bringIntoView(card);
}

function mark() {
  picture.classList.toggle("tracing", traced !== null);
  for (const card of picture.querySelectorAll(".vertex")) {
    const target = card.dataset.target;
    card.classList.toggle("chosen", target === chosen);
    card.classList.toggle("on", traced !== null && touches(plain(target)));
  }
  const cards = groups[shown].view.cards;
  for (const line of picture.querySelectorAll(".edges path")) {
    const ends = [cards[line.dataset.a], cards[line.dataset.b]].map((card) => plain(card[0]));
    line.classList.toggle("on", traced !== null && ends.every(touches));
  }
}
const touches = (target) => isGroup(target)
  ? parts[numberOf(target)].some((i) => traced.has(i)) : traced.has(numberOf(target));

/** Everything between a vertex and the results. */
function trace(start) {
  traced = new Set([start]);
  for (const i of traced) for (const next of outOf[i]) traced.add(next);
  mark();
}

// Moving about --------------------------------------------------------------------------------

function place() {
  const scene = picture.querySelector("#scene");
  if (scene) scene.setAttribute("transform",
    `translate(${camera.x} ${camera.y}) scale(${camera.scale})`);
}
function fit() {
  const { width, height } = groups[shown].view, box = canvas.getBoundingClientRect();
  const scale = Math.min((box.width - 40) / width, (box.height - 40) / height, 1.4);
  // Too small to read is worse than not whole: then the result's end is shown.
  camera.scale = Math.max(scale, 0.3);
  camera.x = (box.width - width * camera.scale) / 2;
  camera.y = scale < 0.3 ? box.height - 20 - height * camera.scale
    : (box.height - height * camera.scale) / 2;
  place();
}
function zoom(factor, x, y) {
  const scale = Math.min(Math.max(camera.scale * factor, 0.02), 6);
  camera.x = x - (x - camera.x) * scale / camera.scale;
  camera.y = y - (y - camera.y) * scale / camera.scale;
  camera.scale = scale;
  place();
}
function bringIntoView(card) {
  const [, , , , x, y] = groups[shown].view.cards.find((c) => c[0] === card.dataset.target);
  const box = canvas.getBoundingClientRect();
  camera.scale = Math.max(camera.scale, 0.8);
  camera.x = box.width / 2 - x * camera.scale;
  camera.y = box.height / 2 - y * camera.scale;
  place();
}
let moved = false, held = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.target.closest("button, ul")) return;
  held = { x: event.clientX, y: event.clientY };
  moved = false;
});
canvas.addEventListener("pointermove", (event) => {
  if (!held) return;
  const x = event.clientX - held.x, y = event.clientY - held.y;
  if (!moved && Math.hypot(x, y) < 4) return;
  moved = true;
  canvas.classList.add("moving");
  camera.x += x;
  camera.y += y;
  held = { x: event.clientX, y: event.clientY };
  place();
});
window.addEventListener("pointerup", () => { held = null; canvas.classList.remove("moving"); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 500), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
const zoomMiddle = (factor) => zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
find("#in").addEventListener("click", () => zoomMiddle(1.3));
find("#out").addEventListener("click", () => zoomMiddle(1 / 1.3));
find("#fit").addEventListener("click", fit);
window.addEventListener("resize", fit);

function showPath() {
  const crumbs = [];
  for (let g = shown; g >= 0; g = groups[g].parent) {
    const crumb = make("button", { type: "button" }, g ? nameOf("g" + g) : data.title);
    crumb.addEventListener("click", () => open(g));
    crumbs.unshift(crumb, make("span", {}, "›"));
  }
  crumbs.pop();
  find("#path").replaceChildren(...crumbs);
}

// Details -------------------------------------------------------------------------------------

const shape = (s) => "[" + s.map((n) => n ?? "?").join(", ") + "]";
function list(title, targets) {
  if (!targets.length) return [];
  const rows = targets.slice(0, 40).map((target) => {
    const button = make("button", { type: "button" }, nameOf(target));
    button.addEventListener("click", () => choose(target));
    return make("li", {}, button);
  });
  return [make("h3", {}, title), make("ul", {}, ...rows)];
}

function describe(target) {
  const children = isGroup(target) ? ofGroup(numberOf(target)) : ofVertex(numberOf(target));
  details.replaceChildren(...children);
}

function ofGroup(i) {
  const group = groups[i], inside = parts[i].map((n) => vertices[n]);
  const held = inside.reduce((sum, vertex) => sum + vertex.held, 0);
  const count = inside.filter((vertex) => vertex.leaf === null).length;
  const text = `${count} operations, ${bytes(held)} held for backward`;
  const leaves = parts[i].filter((n) => vertices[n].leaf !== null).map((n) => "v" + n);
  return [make("h2", {}, i ? nameOf("g" + i) : data.title),
    make("div", {}, group.kind && group.kind !== group.label ? group.kind + ": " + text : text),
    ...list("Parameters and inputs", leaves)];
}

function ofVertex(i) {
  const vertex = vertices[i], found = [make("h2", {}, nameOf("v" + i))];
  const facts = [vertex.kind, vertex.dtype && vertex.dtype + " " + shape(vertex.shape)];
  found.push(make("div", {}, facts.filter(Boolean).join(", ")));
  if (traced) {
    const stop = make("button", { type: "button", id: "untrace" }, "Show all again");
    stop.addEventListener("click", () => { traced = null; mark(); describe("v" + i); });
    found.push(stop);
  } else {
    const button = make("button", { type: "button", id: "trace" }, "Path to the result");
    button.addEventListener("click", () => { trace(i); describe("v" + i); });
    found.push(button);
  }
  if (vertex.line) {
    const [file, number, name, text] = vertex.line;
    found.push(make("h3", {}, "Recorded at"), make("code", {}, `${file}:${number}`),
      make("div", {}, make("small", {}, name)), make("pre", {}, text));
  }
  if (vertex.note) found.push(make("h3", {}, "In the graph"), make("pre", {}, vertex.note));
  if (vertex.saved.length) {
    const rows = vertex.saved.map((s) => make("tr", {}, make("td", {}, make("code", {}, s.name)),
      make("td", {}, s.dtype + " " + shape(s.shape)),
      make("td", { class: "number" }, bytes(s.bytes), s.shared ? " (held already)" : "")));
    found.push(make("h3", {}, "Saved for backward"), make("table", {}, ...rows));
  }
  if (vertex.hooks.length) {
    const rows = vertex.hooks.map((hook) => make("li", {}, make("code", {}, hook)));
    found.push(make("h3", {}, "Hooks"), make("ul", {}, ...rows));
  }
  found.push(...list("From", into[i].map((n) => "v" + n)),
    ...list("Used by", outOf[i].map((n) => "v" + n)));
  return found;
}

// Search --------------------------------------------------------------------------------------

const entries = [
  ...vertices.map((v, i) => ({ target: "v" + i, name: v.leaf || v.name,
    rest: v.line ? `${v.line[0].split("/").pop()}:${v.line[1]}` : shape(v.shape),
    text: [v.leaf, v.kind, v.note, ...(v.line || [])].join(" ").toLowerCase() })),
  ...groups.map((g, i) => ({ target: "g" + i, name: g.label, rest: g.kind,
    text: (g.label + " " + g.kind).toLowerCase() })).slice(1),
];
const results = find("#results"), search = find("#search");
function matches(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  const found = entries.filter((entry) => wanted.every((word) => entry.text.includes(word)));
  // Names that begin with what was typed come first, then shorter ones.
  const rank = (entry) => (entry.name.toLowerCase().startsWith(wanted[0]) ? 0 : 1000)
    + entry.name.length;
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, 50);
}
search.addEventListener("input", () => {
  const found = matches(search.value);
  results.hidden = !search.value.trim();
  const rows = found.map((entry) => {
    const button = make("button", { type: "button" }, entry.name + " ",
      make("small", {}, entry.rest));
    button.addEventListener("click", () => { results.hidden = true; choose(entry.target); });
    return make("li", {}, button);
  });
  results.replaceChildren(...(rows.length ? rows : [make("li", {}, "nothing found")]));
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && results.querySelector("button")) {
    results.querySelector("button").click();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (!results.hidden) results.hidden = true;
  else if (groups[shown].parent >= 0) open(groups[shown].parent);
});
open(0);
