"use strict";
// The timeline: one canvas a scheduler, all with one time axis. Above, a row a tenant with its kernels; below, a
// row an SM. Bars are rows of numbers: start, end (ns since the window's start), tenant, kernel name, then
// [job, blocks, threads] in streams, or [first rank, last rank, blocks] on SMs.
// Whoever shows other data has the old ones replaced; data.now, in the bars' time, is a line across all rows.
function showTimeline(data) {
  const section = document.getElementById("timeline-section");
  for (const id of ["timeline", "legend"]) document.getElementById(id)?.replaceChildren();
  if (!data.schedulers.length) { section.querySelector(".controls").remove(); return; }
  const ROW = 18, AXIS = 20, GAP = 6, FONT = "11.5px system-ui, sans-serif";
  const offset = data.window_us[0];
  const length = (data.window_us[1] - offset) * 1e3;
  const view = { start: 0, end: length };
  const tip = document.getElementById("tip");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  const longest = Math.max(...data.tenants.map(name => pen.measureText(name).width));
  const LABELS = Math.min(180, Math.max(70, longest + 16));
  const colour = tenant => data.colours[tenant];
  // The parts of a bar in which its tenant had the GPU; the rest is drawn pale.
  const parts = (turns, start, end, tenant) => turns.length
    ? turns.filter(t => t[2] === tenant && t[1] > start && t[0] < end).map(t => [Math.max(start, t[0]), Math.min(end, t[1])])
    : [[start, end]];
  const smHeight = Math.max(1, Math.min(12, Math.round(132 / data.sms)));

  const tracks = data.schedulers.map(scheduler => {
    const box = document.createElement("details");
    box.className = "track";
    box.open = scheduler.open;
    box.addEventListener("toggle", () => redraw());
    const title = document.createElement("summary");
    title.textContent = scheduler.name;
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Timeline of kernels and SMs under " + scheduler.name);
    const smTop = data.tenants.length * ROW + GAP;
    const height = smTop + (scheduler.sms.length ? data.sms * smHeight + GAP : 0) + AXIS;
    canvas.style.height = height + "px";
    box.append(title, canvas);
    document.getElementById("timeline").append(box);
    return { scheduler, canvas, height, smTop };
  });

  const legend = document.getElementById("legend");
  data.tenants.forEach((name, i) => {
    const swatch = document.createElement("i");
    swatch.style.background = colour(i);
    legend.append(swatch, name);
  });

  const nice = span => {
    const unit = 10 ** Math.floor(Math.log10(span));
    return [1, 2, 5, 10].map(m => m * unit).find(step => span / step <= 10) || 10 * unit;
  };

  function draw(track) {
    const { canvas, scheduler, height, smTop } = track;
    if (!canvas.clientWidth) return; // closed
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    const scale = (width - LABELS) / (view.end - view.start);
    const x = ns => LABELS + (ns - view.start) * scale;
    g.font = FONT;
    g.textBaseline = "middle";
    const axisTop = height - AXIS;
    // Grid and axis.
    const step = nice((view.end - view.start) / 1e3) * 1e3;
    g.strokeStyle = "#ececec";
    g.fillStyle = "#555";
    g.textAlign = "center";
    const first = Math.ceil((view.start + offset * 1e3) / step) * step - offset * 1e3;
    for (let t = first; t <= view.end; t += step) {
      g.beginPath(); g.moveTo(x(t), 0); g.lineTo(x(t), axisTop); g.stroke();
      const ms = (t / 1e3 + offset) / 1e3;
      g.fillText(ms.toFixed(Math.max(0, -Math.floor(Math.log10(step / 1e6)))) + " ms", Math.min(x(t), width - 28), axisTop + AXIS / 2 + 2);
    }
    g.textAlign = "right";
    data.tenants.forEach((name, i) => {
      let text = name;
      while (g.measureText(text).width > LABELS - 10 && text.length > 2) text = text.slice(0, -2) + "…";
      g.fillText(text, LABELS - 8, i * ROW + ROW / 2);
    });
    if (scheduler.sms.length) g.fillText(data.sms + " SMs", LABELS - 8, smTop + (data.sms * smHeight) / 2);
    g.save();
    g.beginPath(); g.rect(LABELS, 0, width - LABELS, axisTop); g.clip();
    // Alternate shades tell neighbouring kernels of a row apart.
    scheduler.streams.forEach(([start, end, tenant, name], i) => {
      if (end < view.start || start > view.end) return;
      g.fillStyle = colour(tenant);
      const left = x(start), wide = Math.max(0.6, x(end) - left);
      g.globalAlpha = 0.2;
      g.fillRect(left, tenant * ROW + 2, wide, ROW - 4);
      g.globalAlpha = i % 2 ? 0.95 : 0.7;
      for (const [from, to] of parts(scheduler.turns, start, end, tenant)) {
        g.fillRect(x(from), tenant * ROW + 2, Math.max(0.6, x(to) - x(from)), ROW - 4);
      }
      if (wide > 60) {
        g.globalAlpha = 1;
        g.fillStyle = "#fff";
        g.textAlign = "left";
        const from = Math.max(left, LABELS) + 4, room = Math.min(left + wide, width) - from - 4;
        const letters = Math.floor(room / 6.2), whole = data.kernels[name];
        const text = whole.length > letters ? whole.slice(0, letters - 1) + "…" : whole;
        if (letters > 5) g.fillText(text, from, tenant * ROW + ROW / 2 + 0.5);
      }
    });
    for (const [start, end, tenant, , top, bottom] of scheduler.sms) {
      if (end < view.start || start > view.end) continue;
      g.fillStyle = colour(tenant);
      const bar = (from, to) => g.fillRect(x(from), smTop + top * smHeight, Math.max(0.4, x(to) - x(from)), (bottom - top + 1) * smHeight);
      g.globalAlpha = 0.12;
      if (scheduler.turns.length) bar(start, end);
      g.globalAlpha = 0.75;
      for (const [from, to] of parts(scheduler.turns, start, end, tenant)) bar(from, to);
    }
    g.globalAlpha = 1;
    if (data.now !== undefined) {
      g.fillStyle = "#111";
      g.fillRect(x(data.now) - 0.75, 0, 1.5, axisTop);
    }
    g.restore();
    g.strokeStyle = "#bbb";
    g.beginPath(); g.moveTo(LABELS, axisTop + 0.5); g.lineTo(width, axisTop + 0.5); g.stroke();
  }

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; tracks.forEach(draw); });
  }

  function under(track, px, py) {
    const { scheduler, canvas, smTop } = track;
    const perPixel = (view.end - view.start) / (canvas.clientWidth - LABELS);
    const t = view.start + (px - LABELS) * perPixel;
    if (px < LABELS) return null;
    const near = bar => bar[0] - perPixel <= t && t <= bar[1] + perPixel;
    const times = bar => `${((bar[0] / 1e3 + offset) / 1e3).toFixed(4)} ms, ${((bar[1] - bar[0]) / 1e3).toFixed(2)} µs long`;
    if (py < smTop) {
      const tenant = Math.floor(py / ROW);
      const bar = scheduler.streams.find(b => b[2] === tenant && near(b));
      return bar && `${data.kernels[bar[3]]}\n${data.tenants[tenant]}, job ${bar[4]}\ngrid of ${bar[5]}, blocks of ${bar[6]} threads\n${times(bar)}`;
    }
    const rank = Math.floor((py - smTop) / smHeight);
    const bars = scheduler.sms.filter(b => b[4] <= rank && rank <= b[5] && b[0] <= t && t <= b[1]).slice(0, 4);
    if (!bars.length) return null;
    return `SM ${rank} in placement order\n` + bars.map(b => `${data.kernels[b[3]]}\n${data.tenants[b[2]]}, ${b[6]} ${b[6] === 1 ? "block" : "blocks"}, ${times(b)}`).join("\n");
  }

  function show(text, event) {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text.length > 900 ? text.slice(0, 900) + "…" : text;
    const left = event.clientX + 14, right = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(left, right)) + "px";
    const below = event.clientY + 16;
    tip.style.top = (below + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : below) + "px";
  }

  function move(start, span) {
    const wide = Math.min(length, Math.max(200, span));
    view.start = Math.max(0, Math.min(start, length - wide));
    view.end = view.start + wide;
    redraw();
  }

  for (const track of tracks) {
    const canvas = track.canvas;
    let held = null;
    const perPixel = () => (view.end - view.start) / (canvas.clientWidth - LABELS);
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
      event.preventDefault();
      const at = view.start + (event.offsetX - LABELS) * perPixel();
      const factor = Math.exp((event.deltaY || event.deltaX) * 0.002);
      move(at - (at - view.start) * factor, (view.end - view.start) * factor);
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => { held = event.clientX; canvas.setPointerCapture(event.pointerId); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("pointermove", event => {
      if (held === null) { show(under(track, event.offsetX, event.offsetY), event); return; }
      move(view.start - (event.clientX - held) * perPixel(), view.end - view.start);
      held = event.clientX;
    });
  }
  document.getElementById("reset").addEventListener("click", () => move(0, length));
  window.addEventListener("resize", redraw);
  redraw();
  return { move, length };
}
