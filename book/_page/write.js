/* Brings the editor of ringzero_course.figures.write_it to life: Python (engine.js) runs, judges and draws what the reader wrote.
 *
 * Tab indents, and Escape lets the next Tab leave. The program and the number of ranks are kept in this browser.
 */
(function () {
  "use strict";
  const SECONDS = 2, INDENT = 4, MODULE = "ringzero_course.in_page.writing";
  const LOOPS = `Stopped after ${SECONDS} seconds: the program computes on without a yield. Which loop does not end?`;
  const MISSING = "Your program cannot be run, because Python does not start in this browser. The figure shows a solution.";

  function element(name, text, parent) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  /* A paragraph in which `this` is code. */
  function paragraph(text, parent) {
    const made = element("p", "", parent);
    text.split("`").forEach((part, i) => i % 2 ? element("code", part, made) : made.append(part));
    return made;
  }

  function table(head, rows) {
    const made = element("table"), line = element("tr", "", element("thead", "", made)), body = element("tbody", "", made);
    made.className = "rz-table";
    for (const cell of head) element("th", cell, line).scope = "col";
    for (const cells of rows) {
      const row = element("tr", "", body);
      cells.forEach((cell, i) => { if (i) element("td", cell, row); else element("th", cell, row).scope = "row"; });
    }
    return made;
  }

  /* Keys of an editor, on a textarea; returns replace(from, to, text), which the browser can undo. */
  function keys(area, run) {
    let leaves = false; // after Escape, Tab is the browser's again

    function replace(from, to, text) {
      area.focus();
      area.setSelectionRange(from, to);
      if (document.execCommand(text ? "insertText" : "delete", false, text)) return;
      area.setRangeText(text, from, to, "end");
      area.dispatchEvent(new Event("input"));
    }

    const lineStart = place => area.value.lastIndexOf("\n", place - 1) + 1;

    function shift(back) {
      const { selectionStart: from, selectionEnd: to, value } = area, start = lineStart(from);
      if (!back && from === to) return replace(from, to, " ".repeat(INDENT - (from - start) % INDENT));
      const lines = value.slice(start, to).split("\n");
      const shifted = lines.map(line => back ? line.replace(/^ {1,4}/, "") : line && " ".repeat(INDENT) + line);
      const text = shifted.join("\n"), moved = shifted[0].length - lines[0].length;
      if (text === lines.join("\n")) return;
      replace(start, to, text);
      area.setSelectionRange(Math.max(start, from + moved), start + text.length);
    }

    area.addEventListener("keydown", event => {
      if (event.isComposing) return;
      const { selectionStart: from, selectionEnd: to, value } = area, before = value.slice(lineStart(from), from);
      const plain = !event.ctrlKey && !event.metaKey && !event.altKey, left = leaves;
      leaves = event.key === "Escape" || (leaves && event.key === "Shift");
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      } else if (event.key === "Tab" && plain && !left) {
        event.preventDefault();
        shift(event.shiftKey);
      } else if (event.key === "Enter" && plain) {
        event.preventDefault();
        const deeper = before.trimEnd().endsWith(":") ? INDENT : 0;
        replace(from, to, "\n" + " ".repeat(before.match(/^ */)[0].length + deeper));
      } else if (event.key === "Backspace" && plain && from === to && /^( {4})+$/.test(before)) {
        event.preventDefault();
        replace(from - INDENT, from, "");
      }
    });
    area.addEventListener("blur", () => { leaves = false; });
    return replace;
  }

  function start(box) {
    const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    const find = selector => box.querySelector(selector), python = window.ringzero && window.ringzero.python;
    const area = find("textarea"), ranks = find("input[type=range]"), lines = find(".rz-lines");
    const said = find(".rz-said"), view = find(".rz-view"), place = `ringzero.write.${data.name}`;
    const [runs, resets, puts] = box.querySelectorAll("button");
    let turn = 0, shown = false; // which run is the last one, and whether one has been shown

    function kept() {
      try {
        return JSON.parse(localStorage.getItem(place)) || {};
      } catch { // a browser may refuse
        return {};
      }
    }

    function keep() {
      try {
        localStorage.setItem(place, JSON.stringify({ source: area.value, ranks: Number(ranks.value) }));
      } catch { /* then it lasts as long as the page */ }
    }

    function number(marked) {
      const count = area.value.split("\n").length;
      area.rows = Math.max(count, 6);
      lines.replaceChildren();
      for (let line = 1; line <= count; line++)
        element(marked.includes(line) ? "strong" : "span", `${line}\n`, lines);
      find(".rz-printed-code").textContent = area.value;
    }

    function changed() {
      number([]);
      box.classList.toggle("rz-stale", shown);
      keep();
    }

    function count() {
      find("output").textContent = ranks.value;
      ranks.setAttribute("aria-valuetext", `${ranks.value} ranks`);
    }

    function say(kind, sentence) {
      said.replaceChildren();
      said.dataset.kind = kind;
      if (!sentence) return;
      const [, head, rest] = sentence.match(/^(\w+(?: \d+)?:|)(.*)$/s); // "Deadlock:", "Line 3:"
      paragraph(rest, said).prepend(element("strong", head));
    }

    function show(result) {
      say(result.kind, result.sentence);
      result.notes.forEach(note => paragraph(note, said));
      number(result.lines);
      view.innerHTML = `<figure class="rz-figure"><div class="rz-scroll" tabindex="0">${result.svg}</div></figure>`;
      const scroll = view.querySelector(".rz-scroll");
      if (result.printed.length) scroll.parentElement.before(element("pre", result.printed.join("\n")));
      if (result.rows.some(row => row[1] !== "0")) {
        const below = element("div", "", view);
        below.className = "rz-scroll";
        below.append(table(result.head, result.rows));
      }
    }

    function fail(error) {
      view.replaceChildren();
      if (error.type === "Timeout") return say("endless", LOOPS);
      if (error.type !== "EngineError") return say("error", `Your code: ${[error.type, error.message].filter(Boolean).join(": ")}`);
      console.warn(error.message);
      say("error", MISSING);
      find(".rz-instead").hidden = false;
    }

    async function run() {
      const mine = ++turn, given = { source: area.value, n: Number(ranks.value) };
      const patience = setTimeout(() => mine === turn && say("", "Running …"), 400);
      const late = () => mine !== turn || given.source !== area.value;
      let result, rest;
      try {
        result = await python.call(MODULE, "answer", given, { seconds: SECONDS });
      } catch (error) {
        result = error;
      }
      clearTimeout(patience);
      if (mine !== turn) return;
      shown = true;
      box.classList.toggle("rz-stale", given.source !== area.value);
      if (result instanceof Error) return fail(result);
      show(result);
      if (result.kind !== "right") return;
      try { // shown when it comes, because it takes as long as seven runs
        rest = await python.call(MODULE, "with_other_sizes", given, { seconds: 2 * SECONDS });
      } catch {
        rest = "With another number of ranks it did not end.";
      }
      if (!late()) paragraph(rest, said);
    }

    const replace = keys(area, run), put = source => replace(0, area.value.length, source);
    area.addEventListener("input", changed);
    ranks.addEventListener("input", () => { count(); keep(); if (shown) run(); });
    runs.addEventListener("click", run);
    resets.addEventListener("click", () => {
      turn++;
      shown = false;
      ranks.value = data.ranks;
      count();
      say("", "");
      view.replaceChildren();
      put(data.start);
    });
    puts.addEventListener("click", () => put(data.solution));
    area.addEventListener("focus", () => python.start().catch(() => {}), { once: true });

    if (!python || !window.WebAssembly || !window.Worker) return; // the solution stays
    const before = kept();
    area.value = typeof before.source === "string" ? before.source : data.start;
    ranks.value = before.ranks || data.ranks;
    count();
    number([]);
    find(".rz-instead").hidden = true;
    find(".rz-editor").hidden = puts.hidden = false;
  }
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".rz-writing").forEach(start));
})();
