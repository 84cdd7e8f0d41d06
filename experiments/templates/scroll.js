"use strict";
// What is wider than its box is announced: tables, charts and legends of reports, tables and code of the site.
(() => {
  const site = 'article .highlight pre, .table-wrapper, .cell_output .text_html, .cell_output:has(> img), p:has(> img[src$=".svg"])';
  for (const box of document.querySelectorAll(".scroll, .chips, " + site)) {
    const hint = document.createElement("p");
    hint.className = "more";
    hint.textContent = "More to the right: scroll sideways →";
    box.before(hint);
    const look = () => {
      const hidden = box.scrollWidth - box.clientWidth;
      hint.hidden = hidden < 2;
      box.classList.toggle("cut", hidden - box.scrollLeft > 2);
    };
    box.addEventListener("scroll", look);
    new ResizeObserver(look).observe(box);
    for (const inside of box.children) new ResizeObserver(look).observe(inside);
  }
})();
