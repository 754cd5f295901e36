/* Plays back the schedules of ringzero_course.figures.stepper. Without it a page shows the whole of the first one. */
(function () {
  "use strict";
  const LABEL = 80, GAP = 100, TOP = 46, CELL = 18, LETTER = 7; // pixels

  /* "01+0-2,7" is rank 0 sending chunks 0, 1, 2 and 7 to rank 1, which adds them; with "=" it replaces. */
  function message(text) {
    const chunks = [], adds = text[2] === "+";
    for (const run of text.slice(3).split(",")) {
      const ends = run.split("-").map(Number);
      for (let c = ends[0]; c <= ends[ends.length - 1]; c++) chunks.push(c);
    }
    const names = text.length > 10 ? `${chunks.length} chunks` : text.slice(3).replace(/-/g, "–");
    return { src: parseInt(text[0], 36), dst: parseInt(text[1], 36), adds, chunks, names, label: (adds ? "+" : "") + names };
  }

  /* held[k][rank][chunk]: the set of ranks whose contributions are there after k rounds, a bit for each. */
  function play(schedule) {
    const sums = !schedule.origin, everyone = 2 ** schedule.ranks - 1;
    const ranks = Array.from({ length: schedule.ranks }, (_, rank) => rank);
    const rounds = schedule.rounds.map(round => round.split(" ").map(message));
    const held = [ranks.map(rank => Array.from({ length: schedule.chunks }, (_, c) =>
      sums || schedule.origin[c] === rank ? 1 << rank : 0))];
    rounds.forEach((round, k) => {
      const now = held[k].map(row => row.slice());
      for (const m of round) // a source sends what it held when the round began
        for (const c of m.chunks) now[m.dst][c] = (m.adds ? now[m.dst][c] : 0) | held[k][m.src][c];
      held.push(now);
    });
    const full = c => sums ? everyone : 1 << schedule.origin[c];
    const promised = ranks.flatMap(rank => Array.from({ length: schedule.chunks }, (_, c) => [rank, c]))
      .filter(([rank, c]) => !schedule.target || schedule.target[c] === rank);
    const done = held.map(state => promised.filter(([rank, c]) => state[rank][c] === full(c)).length);
    return { ranks, rounds, held, sums, chunks: schedule.chunks, done, promised: promised.length };
  }

  const members = (set, ranks) => ranks.filter(rank => set >> rank & 1);
  const say = m => `rank ${m.src} to rank ${m.dst}, ${m.adds ? "added" : "replaced"}: chunk ${m.names}`.replace(/chunk (.*) chunks/, "$1 chunks");

  /* Ranks downward. On the left the messages of round k, on the right what each rank holds after it. */
  function draw(played, k, colors) {
    const { ranks, rounds, chunks, sums } = played, n = ranks.length, round = k ? rounds[k - 1] : [];
    const lane = n > 8 ? 26 : 34, y = rank => TOP + CELL / 2 + lane * rank, color = rank => colors[rank % colors.length];
    // As wide for all rounds of a schedule, so that the picture stands still.
    const box = Math.max(...rounds.flat().map(m => m.label.length)) * LETTER + 10;
    const side = Math.max(...rounds.flatMap(messages => ranks.map(rank => messages.filter(m => m.dst === rank).length)));
    const stripes = sums ? n : 1, grid = LABEL + GAP + side * box + 24;
    const cell = Math.max(2 * stripes + 6, 8, Math.min(chunks > 2 ? 48 : 120, Math.floor(520 / chunks)));
    const pad = cell < 16 ? 1 : 2; // between cells
    const width = Math.max(grid + cell * chunks + 4, 560), height = TOP + lane * (n - 1) + CELL + 46;
    const lines = [], boxes = [], cells = [], fresh = [], changed = new Set(), arrived = ranks.map(() => 0);

    const text = (x, y, words, more) => `<text x="${x}" y="${y}" font-size="12" fill="currentColor" ${more || ""}>${words}</text>`;
    const words = [text(LABEL, 14, k ? `round ${k}: what is sent` : "before round 1"),
                   text(grid, 14, "what each rank then holds, by chunk"),
                   text(LABEL, height - 18, "square, +c: chunk c arrives and is added; round, c: it replaces"),
                   text(LABEL, height - 3, "bold cell: just changed; stripe in a rank’s colour: its contribution is in it")];
    if (cell >= 16)
      for (let c = 0; c < chunks; c++) words.push(text(grid + cell * (c + 0.5), 34, c, 'text-anchor="middle"'));

    for (const rank of ranks) {
      words.push(text(2, y(rank) + 4, `rank ${rank}`));
      lines.push(`<rect x="56" y="${y(rank) - 6}" width="12" height="12" fill="${color(rank)}"/>`,
                 `<line x1="${LABEL}" y1="${y(rank)}" x2="${grid - 8}" y2="${y(rank)}" stroke-opacity="0.25"/>`);
    }
    for (const m of round) {
      const left = LABEL + GAP + box * arrived[m.dst]++;
      m.chunks.forEach(c => changed.add(`${m.dst} ${c}`));
      lines.push(`<line x1="${LABEL}" y1="${y(m.src)}" x2="${left}" y2="${y(m.dst)}" stroke-opacity="0.6"/>`);
      boxes.push(`<circle cx="${LABEL}" cy="${y(m.src)}" r="2.5" fill="currentColor"/>`,
                 `<rect class="message" x="${left + 1}" y="${y(m.dst) - CELL / 2}" width="${box - 2}" height="${CELL}" ` +
                 `rx="${m.adds ? 0 : CELL / 2}" stroke="currentColor" stroke-width="${m.adds ? 2 : 1}"/>`,
                 text(left + box / 2, y(m.dst) + 4, m.label, 'text-anchor="middle"'));
    }
    played.held[k].forEach((row, rank) => row.forEach((set, c) => {
      const x = grid + cell * c, top = y(rank) - CELL / 2, from = members(set, ranks), stripe = (cell - 2 * pad - 2) / stripes;
      const isFresh = changed.has(`${rank} ${c}`), title = `rank ${rank}, chunk ${c}: ${from.length ? `from ${from.join(", ")}` : "nothing"}`;
      for (const r of from)
        cells.push(`<rect x="${x + pad + 1 + (sums ? r * stripe : 0)}" y="${top + 1}" width="${stripe}" height="${CELL - 2}" fill="${color(r)}"/>`);
      (isFresh ? fresh : cells).push( // the bold outlines lie above their neighbours
        `<rect class="cell" x="${x + pad}" y="${top}" width="${cell - 2 * pad}" height="${CELL}" fill="none" pointer-events="all" ` +
        `stroke="currentColor" ${isFresh ? 'stroke-width="2.5"' : 'stroke-opacity="0.4"'}><title>${title}</title></rect>`);
    }));
    const alt = k ? `Round ${k}. ${round.map(say).join("; ")}.` : "Before round 1.";
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${alt}" ` +
      `style="width:100%;max-width:${width}px;min-width:${Math.round((width * 10) / 12)}px"><g stroke="currentColor">${lines.join("")}</g>` +
      [...boxes, ...cells, ...fresh, ...words].join("") + "</svg>";
  }

  function start(box) {
    const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    const controls = box.querySelector(".rz-controls"), view = box.querySelector(".rz-view");
    const status = box.querySelector(".rz-status"), menu = controls.querySelector("select");
    const [ranks, round] = controls.querySelectorAll("input");
    const buttons = Array.from(controls.querySelectorAll("span button")); // first, back, next, last
    view.innerHTML = '<figure class="rz-figure"><div class="rz-scroll" tabindex="0"></div></figure>';
    const figure = view.querySelector(".rz-scroll"); // stays, so that a narrow screen keeps its place
    let wanted = data.start[1], played; // how many ranks were asked for; an algorithm may not take as many

    function set(input, value, words) {
      input.value = value;
      input.setAttribute("aria-valuetext", words);
      input.parentElement.querySelector("output").textContent = words;
    }

    function choose() {
      const schedules = data.algorithms[menu.selectedIndex].schedules;
      const off = schedules.map(schedule => Math.abs(schedule.ranks - wanted)), nearest = off.indexOf(Math.min(...off));
      played = play(schedules[nearest]);
      ranks.max = schedules.length - 1;
      round.max = played.rounds.length;
      set(ranks, nearest, String(schedules[nearest].ranks));
      show(1);
    }

    function show(k) {
      const last = played.rounds.length, sent = k ? played.rounds[k - 1] : [];
      set(round, k, `${k} of ${last}`);
      buttons.forEach((button, i) => button.setAttribute("aria-disabled", k === (i < 2 ? 0 : last)));
      figure.innerHTML = draw(played, k, data.colors);
      const said = k === 0 ? "nothing sent yet" : sent.length > 4 ? `${sent.length} messages` : sent.map(say).join("; ");
      status.textContent = `${data.algorithms[menu.selectedIndex].name}, ${played.ranks.length} ranks, round ${k} of ${last}: ` +
        `${said}. ${played.done[k]} of ${played.promised} chunks are as promised.`;
    }

    menu.addEventListener("change", choose);
    ranks.addEventListener("input", () => {
      wanted = data.algorithms[menu.selectedIndex].schedules[Number(ranks.value)].ranks;
      choose();
    });
    round.addEventListener("input", () => show(Number(round.value)));
    buttons.forEach((button, i) => button.addEventListener("click", () => {
      const k = Number(round.value), last = played.rounds.length;
      show([0, Math.max(k - 1, 0), Math.min(k + 1, last), last][i]);
    }));
    controls.hidden = false;
    menu.selectedIndex = data.start[0]; // a browser may have kept the inputs of an earlier visit
    choose();
  }
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".rz-stepper").forEach(start));
})();
