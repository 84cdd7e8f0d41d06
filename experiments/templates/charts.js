"use strict";
// Draws the charts whose data the page carries, each into the element of its name. Buttons of class "chip" are their
// common legend: a pointer over one shows its series, a click keeps them shown.
(async () => {
  const charts = JSON.parse(await unpacked("chart-data"));
  const library = document.createElement("script");
  library.textContent = await unpacked("plotly");
  document.head.append(library);
  const touched = window.matchMedia("(pointer: coarse)").matches; // A finger scrolls the page.
  const chips = [...document.querySelectorAll(".chip")];
  const names = new Set(chips.map(chip => chip.dataset.name));
  const drawn = [];
  for (const [id, chart] of Object.entries(charts)) {
    const element = document.getElementById(id);
    const axes = Object.entries(chart.layout).filter(([name, axis]) => name.startsWith("xaxis") && axis.domain);
    const panels = new Set(axes.map(([, axis]) => axis.domain[0])).size;
    if (panels > 1) element.style.minWidth = panels * 260 + "px";
    if (touched) chart.layout.dragmode = false;
    const shown = chart.data.filter(trace => names.has(trace.name));
    if (shown.length) drawn.push({ element, looks: chart.data.map(trace => [trace.name, trace.visible ?? true]) });
    await Plotly.newPlot(element, chart.data, chart.layout, { responsive: true, displayModeBar: false });
  }

  const kept = new Set();
  let under = null;
  let asked = 0;
  function paint() {
    const chosen = new Set(under === null ? kept : [...kept, under]);
    for (const { element, looks } of drawn) {
      const opacity = looks.map(([name]) => (!chosen.size || chosen.has(name) ? 1 : 0.18));
      const visible = looks.map(([name, before]) => (chosen.has(name) ? true : before));
      Plotly.restyle(element, { opacity, visible });
    }
  }
  function point(name) {
    under = name;
    clearTimeout(asked);
    asked = setTimeout(paint, 80);
  }
  for (const chip of chips) {
    const name = chip.dataset.name;
    chip.addEventListener("pointerenter", event => { if (event.pointerType === "mouse") point(name); });
    chip.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") point(null); });
    chip.addEventListener("click", () => {
      if (!kept.delete(name)) kept.add(name);
      chip.setAttribute("aria-pressed", String(kept.has(name)));
      paint();
    });
  }
})();
