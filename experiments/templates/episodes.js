// The page of episodes: a scheduler is chosen, and another to stand beside it; a slider moves through the episode.
// A link chooses, too: episodes.html#scenario=Toy&scheduler=reef&time=300, a time of a thousand.
(async () => {
  const episodes = JSON.parse(await unpacked("episodes-data"));
  const at = id => document.getElementById(id);
  const fill = (select, names, chosen) => {
    select.replaceChildren(...names.map(name => new Option(name, name, false, name === chosen)));
  };
  const asked = new URLSearchParams(location.hash.slice(1));
  let episode, data, shown, timer = null;

  function chooseScenario() {
    episode = episodes.find(one => one.scenario === at("scenario").value);
    const names = Object.keys(episode.rows);
    const kept = id => [at(id).value, asked.get(id)].find(name => names.includes(name));
    fill(at("scheduler"), names, kept("scheduler") ?? episode.first);
    fill(at("beside"), names, kept("beside") ?? names[0]);
    chooseScheduler();
  }

  function chooseScheduler() {
    const names = [...new Set([at("scheduler").value, at("beside").value])];
    const schedulers = names.map(name => ({ ...episode.timeline.schedulers[episode.rows[name].track], name, open: true }));
    data = { ...episode.timeline, schedulers };
    at("about").textContent = `${episode.summary}. ${names[0]}: ${episode.rows[names[0]].about}`;
    const cells = (tag, texts) => texts.map(text => Object.assign(document.createElement(tag), { textContent: text }));
    const rows = names.map(name => {
      const row = document.createElement("tr");
      const head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
      row.append(head, ...cells("td", episode.rows[name].figures));
      return row;
    });
    const heads = document.createElement("thead"), body = document.createElement("tbody");
    heads.insertRow().append(...cells("th", ["scheduler", ...episode.heads]));
    body.append(...rows);
    at("figures").replaceChildren(heads, body);
    shown = showTimeline(data);
    move();
  }

  function move() {
    const span = shown.length / at("zoom").value;
    data.now = (shown.length * at("time").value) / 1000;
    shown.move(data.now - span / 2, span);
    at("clock").textContent = `${((data.window_us[0] + data.now / 1e3) / 1e3).toFixed(3)} ms`;
    at("held").replaceChildren(...data.schedulers.map(scheduler => {
      const held = data.tenants.map((name, tenant) => {
        const sms = new Set();
        for (const [start, end, of, , top, bottom] of scheduler.sms) {
          if (of === tenant && start <= data.now && data.now < end) for (let sm = top; sm <= bottom; sm++) sms.add(sm);
        }
        return sms.size ? `${name} on ${sms.size}` : "";
      }).filter(Boolean);
      const line = document.createElement("div");
      line.append(Object.assign(document.createElement("b"), { textContent: scheduler.name }));
      line.append(held.length ? `: of ${data.sms} SMs, ${held.join(", ")}` : ": the GPU is idle");
      return line;
    }));
  }

  function play() {
    if (timer === null && Number(at("time").value) >= 1000) at("time").value = 0;
    timer = timer === null ? setInterval(() => {
      at("time").value = Number(at("time").value) + 2;
      move();
      if (Number(at("time").value) >= 1000) play();
    }, 60) : clearInterval(timer) ?? null;
    at("play").textContent = timer === null ? "Play" : "Pause";
  }

  fill(at("scenario"), episodes.map(one => one.scenario), asked.get("scenario") ?? episodes[1]?.scenario);
  for (const id of ["zoom", "time"]) if (asked.has(id)) at(id).value = asked.get(id);
  at("scenario").addEventListener("change", chooseScenario);
  for (const id of ["scheduler", "beside"]) at(id).addEventListener("change", chooseScheduler);
  for (const id of ["time", "zoom"]) at(id).addEventListener("input", move);
  at("play").addEventListener("click", play);
  at("choose").addEventListener("submit", event => event.preventDefault());
  chooseScenario();
})();
