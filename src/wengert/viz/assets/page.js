const data = JSON.parse(document.getElementById("data").textContent);
const find = (selector) => document.querySelector(selector);

/** An element with attributes and children; text children are escaped by the browser. */
function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "rect", "path", "text", "title", "line"].includes(tag);
  const element = drawn
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function bytes(size) {
  for (const [unit, power] of [["GB", 30], ["MB", 20], ["KB", 10]]) {
    if (size >= 2 ** power) return (size / 2 ** power).toFixed(2) + " " + unit;
  }
  return size + " B";
}

const dark = () => {
  const chosen = document.documentElement.style.colorScheme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
function nameTheme() { find("#theme").textContent = dark() ? "Light" : "Dark"; }
find("#theme").addEventListener("click", () => {
  document.documentElement.style.colorScheme = dark() ? "light" : "dark";
  nameTheme();
});
nameTheme();
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== find("#search")) {
    event.preventDefault();
    find("#search").focus();
  }
});
