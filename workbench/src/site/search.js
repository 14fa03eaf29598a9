// Search over the sections in search-index.js: all words of the question, in any order; headings first.
const top_ = document.currentScript.dataset.top;
const field = document.querySelector("#search");
const found = document.querySelector("#found");
const pages = document.querySelector("#pages");

function score(section, words) {
  const heading = (section.page + " " + section.heading).toLowerCase();
  const text = section.text.toLowerCase();
  let total = 0;
  for (const word of words) {
    if (heading.includes(word)) total += 10;
    else if (text.includes(word)) total += 1;
    else return 0;
  }
  return total;
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word));
  const from = Math.max(0, at - 40);
  return (from > 0 ? "…" : "") + text.slice(from, from + 120).trim() + "…";
}

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  pages.hidden = words.length > 0;
  found.hidden = words.length === 0;
  found.replaceChildren();
  if (words.length === 0) return;
  const best = SECTIONS.map((section) => [score(section, words), section])
    .filter(([points]) => points > 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, 20);
  for (const [, section] of best) {
    const link = document.createElement("a");
    link.href = top_ + section.to;
    link.textContent = section.page === section.heading ? section.page : section.page + ": " + section.heading;
    const text = document.createElement("small");
    text.textContent = excerpt(section.text, words[0]);
    const item = document.createElement("li");
    item.append(link, text);
    found.append(item);
  }
  if (best.length === 0) {
    const item = document.createElement("li");
    item.textContent = "no section has all these words";
    found.append(item);
  }
}

field.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape") {
    field.value = "";
    search();
  } else if (event.key === "Enter" && document.activeElement === field) {
    found.querySelector("a")?.click();
  }
});
