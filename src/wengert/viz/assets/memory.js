const time = (seconds) => seconds >= 1 ? seconds.toFixed(2) + " s"
  : seconds >= 1e-3 ? (1e3 * seconds).toFixed(1) + " ms" : (1e6 * seconds).toFixed(0) + " us";
const cell = (tag, kind, ...children) => make(tag, kind ? { class: kind } : {}, ...children);
function table(target, heads, rows) {
  const head = make("tr", {}, ...heads.map((text, i) => cell("th", i ? "number" : "", text)));
  find(target).replaceChildren(head, ...rows);
}

const count = Math.max(data.rows.length, 1), top = Math.max(data.total, 1);
let sum = 0;
const steps = data.rows.map((row, i) => {
  sum += row.held;
  return `H${i}V${(100 * (1 - sum / top)).toFixed(2)}`;
});
const curve = find("#curve");
curve.setAttribute("viewBox", `0 -4 ${count} 104`);
curve.append(make("path", { d: `M0 100${steps.join("")}H${count}V100Z` }));
find("#sum").textContent = `${bytes(data.total)} held for backward, in ${data.rows.length} `
  + "saved tensors; parameters and inputs are not counted";

const byText = (text) => (row) => row.dataset.text.includes(text);
table("#lines", ["line of the program", "held"], data.lines.map((line) => {
  const share = make("i", { style: `width:${100 * line.held / top}%` });
  const where = `${line.file.split("/").pop()}:${line.number}`;
  const row = make("tr", {}, cell("td", "", make("code", {}, line.text || line.file),
    make("div", {}, make("small", {}, `${where} ${line.function}`)), share),
    cell("td", "number", bytes(line.held)));
  row.dataset.text = `${line.text} ${where} ${line.function}`.toLowerCase();
  return row;
}));
if (data.advice.length) {
  table("#advice", ["block", "calls", "saves", "again at a time", "again in time"],
    data.advice.map((each) => {
      const row = make("tr", {}, cell("td", "", make("code", {}, each.block)),
        cell("td", "number", String(each.calls)), cell("td", "number", bytes(each.saves)),
        cell("td", "number", bytes(each.again)), cell("td", "number", time(each.seconds)));
      row.dataset.text = each.block.toLowerCase();
      return row;
    }));
} else find("#advised").hidden = true;
table("#rows", ["node", "saved", "tensor", "line", "held"], data.rows.map((saved) => {
  const kind = `${saved.dtype} [${saved.shape.join(", ")}]`;
  const row = make("tr", {}, cell("td", "", make("code", {}, saved.node)),
    cell("td", "number", saved.name), cell("td", "number", kind),
    cell("td", "number", saved.line), cell("td", "number", bytes(saved.held)));
  row.dataset.text = `${saved.node} ${saved.name} ${kind} ${saved.line}`.toLowerCase();
  return row;
}));
find("#search").addEventListener("input", () => {
  const wanted = find("#search").value.trim().toLowerCase();
  for (const row of document.querySelectorAll("tr[data-text]")) row.hidden = !byText(wanted)(row);
});
