"use strict";
// Large parts of the page are gzip in base64; browsers since 2023 unpack them without a library.
async function unpacked(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
if (typeof DecompressionStream === "undefined") {
  for (const chart of document.querySelectorAll(".chart")) chart.textContent = "Charts need a browser of 2023 or later.";
}
