"use strict";
// Tables: a click on a heading sorts by its column.
(() => {
  const text = cell => (cell.querySelector("b, .faint") ?? cell.firstChild)?.textContent ?? "";
  const number = cell => parseFloat(text(cell).replace(/^(above|below) /, "").replace(/[~,\s]/g, "").replace("−", "-"));

  function sort(table, column, head) {
    const falling = head.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0], rows = [...body.rows];
    const numeric = rows.some(row => !Number.isNaN(number(row.cells[column])));
    rows.sort((one, other) => {
      const [a, b] = [one.cells[column], other.cells[column]];
      if (!numeric || column === 0) return (falling ? -1 : 1) * text(a).localeCompare(text(b));
      const [x, y] = [number(a), number(b)];
      // What is not defined comes last either way.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return falling ? y - x : x - y;
    });
    body.append(...rows);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  }

  const sorted = { cost: "ascending", capacity: "descending" }; // As pages come.
  for (const table of document.querySelectorAll(".sortable table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.tabIndex = 0;
      if (sorted[head.textContent]) head.setAttribute("aria-sort", sorted[head.textContent]);
      head.addEventListener("click", () => sort(table, column, head));
      head.addEventListener("keydown", event => { if (event.key === "Enter") sort(table, column, head); });
    });
  }
})();
