"use strict";
// Draws the charts whose data the page carries, each into the element of its name.
for (const [id, chart] of Object.entries(JSON.parse(document.getElementById("chart-data").textContent))) {
  Plotly.newPlot(id, chart.data, chart.layout, { responsive: true, displaylogo: false });
}
