"use strict";
// Draws the charts whose data the page carries, and hides the sections that have none.
const chartData = JSON.parse(document.getElementById("chart-data").textContent);
for (const id of ["cost", "turnaround", "utilisation"]) {
  const chart = chartData[id];
  if (chart) {
    Plotly.newPlot(id, chart.data, chart.layout, { responsive: true, displaylogo: false });
  } else {
    document.getElementById(id + "-section").remove();
  }
}
