// The page of a library: a table of all records with filters and sorting. Only the rows in view are in the document.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const body = document.getElementById("rows");
  const number = document.getElementById("number");
  const more = document.getElementById("more");
  const inputs = [...document.querySelectorAll("[data-filter]")];
  const PAGE = 200;
  let shown = PAGE, sort = 0, descending = true;

  const figure = (value) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
    return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
  };
  // started, workload, server, sessions, tps, p95, outcome, machine, tags, path, page
  const cells = [
    (r) => r[0], (r) => r[1], (r) => r[2], (r) => r[3], (r) => figure(r[4]), (r) => figure(r[5]), (r) => r[6],
    (r) => r[7], (r) => r[8], (r) => r[9],
  ];
  const text = (r) => [r[0], r[1], r[2], r[6], r[7], r[8], r[9]].join(" ").toLowerCase();
  const texts = data.records.map(text);

  const matches = () => {
    const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter((word) => word);
    const chosen = inputs.map((input) => [Number(input.dataset.filter), input.value]).filter(([, value]) => value);
    const found = [];
    data.records.forEach((record, at) => {
      const fits = chosen.every(([column, value]) => record[column] === value);
      if (fits && words.every((word) => texts[at].includes(word))) found.push(record);
    });
    const direction = descending ? -1 : 1;
    return found.sort((a, b) => {
      const [one, other] = [a[sort], b[sort]];
      if (one === other) return 0;
      if (one === null) return 1;
      if (other === null) return -1;
      return one < other ? -direction : direction;
    });
  };

  const draw = () => {
    const found = matches();
    number.textContent = `${found.length.toLocaleString("en")} of ${data.records.length.toLocaleString("en")} records`;
    body.replaceChildren(...found.slice(0, shown).map((record) => {
      const row = document.createElement("tr");
      cells.forEach((cell, column) => {
        const td = document.createElement("td");
        if (column === 4 || column === 5) td.className = "figure";
        if (column === 9) {
          const link = document.createElement("a");
          link.href = record[10] || record[9].split("/").map(encodeURIComponent).join("/");
          link.textContent = record[9];
          td.append(link);
        } else {
          td.textContent = cell(record);
        }
        row.append(td);
      });
      return row;
    }));
    more.hidden = found.length <= shown;
  };

  document.querySelectorAll("th[data-sort]").forEach((head) => head.addEventListener("click", () => {
    const column = Number(head.dataset.sort);
    descending = column === sort ? !descending : column === 0 || column === 4;
    sort = column;
    draw();
  }));
  const again = () => { shown = PAGE; draw(); };
  document.getElementById("words").addEventListener("input", again);
  inputs.forEach((input) => input.addEventListener("change", again));
  more.addEventListener("click", () => { shown += PAGE; draw(); });
  draw();
})();
