const [NAME, THREAD, DEPTH, START, LENGTH, OWN, SCOPE, SHAPES, MEMORY, STACK] = Array(10).keys();
const events = data.events, canvas = find("#flames"), hint = find("#hint");
const ROW = 20;
const rowsOf = []; // the first row of each thread
let rows = 0;
for (const event of events) rowsOf[event[THREAD]] = Math.max(rowsOf[event[THREAD]] || 0, event[DEPTH] + 1);
rowsOf.forEach((count, i) => { rowsOf[i] = rows; rows += count + 0.5; });
const first = Math.min(...events.map((e) => e[START]));
const last = Math.max(...events.map((e) => e[START] + e[LENGTH]));
const all = { from: first, to: Math.max(last, first + 1) };
let seen = { ...all }, wanted = "", hovered = null;
const micros = (t) => t >= 1e6 ? (t / 1e6).toFixed(2) + " s" : t >= 1e3
  ? (t / 1e3).toFixed(2) + " ms" : t.toFixed(1) + " us";

/** Colours as the canvas knows them: what the style sheet's functions come down to. */
function resolved() {
  const probe = make("i");
  document.body.append(probe);
  const found = {};
  for (const name of ["--blue", "--orange", "--violet", "--green", "--ink", "--panel"]) {
    probe.style.color = `var(${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}
const tone = (event) => event[SCOPE] === 1 ? "--orange" : event[NAME].startsWith("aten::")
  ? "--blue" : event[SCOPE] ? "--green" : "--violet";

function draw() {
  const width = canvas.parentElement.clientWidth, height = Math.ceil(rows * ROW + 8);
  const sharp = window.devicePixelRatio || 1;
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d"), tones = resolved();
  pen.scale(sharp, sharp);
  pen.font = "12px ui-monospace, monospace";
  pen.textBaseline = "middle";
  const perMicro = width / (seen.to - seen.from);
  for (const event of events) {
    const x = (event[START] - seen.from) * perMicro, w = Math.max(event[LENGTH] * perMicro, 0.7);
    if (x > width || x + w < 0) continue;
    const y = 4 + (rowsOf[event[THREAD]] + event[DEPTH]) * ROW;
    const fits = !wanted || event[NAME].toLowerCase().includes(wanted);
    pen.globalAlpha = !fits ? 0.12 : event === hovered ? 1 : 0.72;
    pen.fillStyle = tones[tone(event)];
    pen.fillRect(x, y, Math.max(w - 0.6, 0.7), ROW - 2);
    const left = Math.max(x, 0), room = Math.min(x + w, width) - left;
    if (room > 30) {
      pen.globalAlpha = fits ? 1 : 0.3;
      pen.fillStyle = tones["--panel"];
      const text = event[NAME].slice(0, Math.floor((room - 6) / 7.3));
      pen.fillText(text, left + 4, y + ROW / 2 - 1);
    }
  }
  canvas.dataset.from = seen.from;
  canvas.dataset.to = seen.to;
}

function at(clientX, clientY) {
  const box = canvas.getBoundingClientRect();
  const moment = seen.from + (clientX - box.left) / box.width * (seen.to - seen.from);
  const row = (clientY - box.top - 4) / ROW;
  return events.findLast((e) => row >= rowsOf[e[THREAD]] + e[DEPTH]
    && row < rowsOf[e[THREAD]] + e[DEPTH] + 1 && moment >= e[START] && moment <= e[START] + e[LENGTH])
    || null;
}
function describe(event) {
  const facts = [event[NAME], `${micros(event[LENGTH])}, of that itself ${micros(event[OWN])}`];
  if (event[SHAPES]) facts.push("shapes " + event[SHAPES]);
  if (event[MEMORY]) facts.push(bytes(event[MEMORY]));
  if (event[STACK]) facts.push(event[STACK]);
  hint.textContent = facts.join(" · ");
}
let held = null;
canvas.addEventListener("pointerdown", (event) => { held = event.clientX; });
window.addEventListener("pointerup", () => { held = null; });
canvas.addEventListener("pointermove", (event) => {
  if (held === null) {
    const found = at(event.clientX, event.clientY);
    if (found !== hovered) { hovered = found; if (found) describe(found); draw(); }
    return;
  }
  const by = (held - event.clientX) / canvas.clientWidth * (seen.to - seen.from);
  seen = { from: seen.from + by, to: seen.to + by };
  held = event.clientX;
  draw();
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  const share = (event.clientX - box.left) / box.width;
  const moment = seen.from + share * (seen.to - seen.from);
  const span = Math.min(Math.max((seen.to - seen.from) * Math.exp(event.deltaY / 500), 0.5),
    all.to - all.from);
  seen = { from: moment - share * span, to: moment + (1 - share) * span };
  draw();
}, { passive: false });
canvas.addEventListener("dblclick", () => { seen = { ...all }; draw(); });
find("#search").addEventListener("input", () => {
  wanted = find("#search").value.trim().toLowerCase();
  draw();
});
find("#theme").addEventListener("click", draw);
window.addEventListener("resize", draw);
const head = make("tr", {}, make("th", {}, "name"), make("th", { class: "number" }, "calls"),
  make("th", { class: "number" }, "own time"));
find("#sums").replaceChildren(head, ...data.sums.map(([name, calls, own]) => make("tr", {},
  make("td", {}, make("code", {}, name)), make("td", { class: "number" }, String(calls)),
  make("td", { class: "number" }, micros(own)))));
draw();
