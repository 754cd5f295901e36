/* Brings the calculators of ringzero_course.figures.calculator to life. Without it a page shows each one's starting state.
 *
 * Views come from the page's own grid, the nearest ones, until Python has started (engine.js), and for good where Python
 * does not run. Fields are kept in the page's address: ?does_it_fit.stage=3
 */
(function () {
  "use strict";
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const read = text => NUMBER.test(text.trim()) ? Number(text) : NaN;

  /* A field: read() gives { value, shown }, or { wrong } in words; set(text) is how the page's address sets it. */
  function connect(box, spec) {
    const control = box.querySelector(`[name="${spec.name}"]`), wrong = control.parentElement.querySelector(".rz-wrong");
    const complain = words => {
      if (wrong.textContent !== words) wrong.textContent = words;
      if (words) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    };
    if (spec.values) return {
      spec, complain,
      text: () => String(spec.values[control.selectedIndex]),
      read: () => ({ value: spec.values[control.selectedIndex], shown: spec.values[control.selectedIndex] }),
      set(text) { // another calculator's word, or an older page's, is none of the menu's
        const words = spec.values.map(String);
        control.selectedIndex = words.indexOf(words.includes(text) ? text : spec.start);
      },
    };
    const slider = control.parentElement.querySelector("input[type=range]"), stops = spec.stops;
    const slide = value => {
      slider.value = nearest(stops, value);
      slider.setAttribute("aria-valuetext", `${control.value} ${spec.unit}`);
    };
    slider.addEventListener("input", () => { // before the box hears of it
      control.value = String(stops[slider.value]);
      slider.setAttribute("aria-valuetext", `${control.value} ${spec.unit}`);
    });
    control.addEventListener("input", () => slide(read(control.value)));
    return {
      spec, complain,
      text: () => control.value.trim(),
      read() {
        const shown = read(control.value);
        const fits = shown >= stops[0] && shown <= stops[stops.length - 1] && (!spec.whole || Number.isInteger(shown));
        return fits ? { value: shown * spec.scale, shown } : { wrong: spec.takes };
      },
      set(text) { control.value = text; slide(read(text)); },
    };
  }

  /* The index of what is nearest to ``value``: by ratio where all are above 0. */
  function nearest(values, value) {
    const scale = values.every(each => each > 0) && value > 0 ? Math.log : each => each;
    const off = values.map(each => Math.abs(scale(each) - scale(value)));
    return Math.max(0, off.indexOf(Math.min(...off)));
  }

  function start(box) {
    const spec = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    const find = selector => box.querySelector(selector);
    const shown = find(".rz-view"), status = find(".rz-status"), note = find(".rz-note");
    const fields = spec.fields.map(field => connect(box, field));
    const python = window.ringzero && window.ringzero.python;
    let wanted = null, asking = false; // the state to ask Python for next, and whether it is at work
    let started = false, failed = !python; // whether Python has answered, and whether it cannot

    function display(view, words) {
      shown.innerHTML = view.html;
      note.textContent = words + (view.note || "");
      note.classList.toggle("rz-nearest", words !== "");
      note.hidden = false;
      status.textContent = `${words ? note.textContent : ""} ${view.says}`.trim();
    }

    function refuse(words) {
      wanted = null;
      note.hidden = true;
      shown.innerHTML = "";
      const line = document.createElement("p");
      line.className = "rz-refused";
      line.textContent = `No result. ${words}`;
      shown.append(line);
      status.textContent = ""; // the field itself is an alert
    }

    function fromGrid(state) {
      let position = 0, exact = true;
      fields.forEach(({ spec: field }, i) => {
        const value = state.shown[i], index = field.values ? field.grid.indexOf(value) : nearest(field.grid, value);
        exact = exact && field.grid[index] === value;
        position = position * field.grid.length + Math.max(0, index);
      });
      const why = failed ? "Python does not run here." : "Until Python has started:";
      display(spec.states[position], exact ? "" : `${why} Nearest values that this page carries. `);
    }

    function update() {
      const state = { given: {}, shown: [], note: `For ${fields.map(each => `${each.spec.label} ${each.text()} ${each.spec.unit || ""}`.trim()).join(", ")}.` };
      let wrong = "";
      for (const field of fields) {
        const answered = field.read();
        field.complain(answered.wrong || "");
        wrong = wrong || answered.wrong || "";
        state.given[field.spec.name] = answered.value;
        state.shown.push(answered.shown);
      }
      if (wrong) return refuse(wrong);
      if (!started) fromGrid(state);
      wanted = state;
      ask();
    }

    async function ask() {
      if (asking || failed) return;
      asking = true;
      while (wanted) {
        const state = wanted;
        wanted = null;
        try {
          const given = { module: spec.module, name: spec.name, given: state.given };
          const view = await python.call("ringzero_course.figures.readout", "view", given);
          started = true;
          if (wanted || current(state)) display({ ...view, note: state.note }, "");
        } catch (error) {
          if (error.type === "ValueError") {
            if (!wanted && current(state)) complain(error.message);
          } else {
            console.warn(error.trace || error.message);
            failed = true;
            started = false;
            if (current(state)) fromGrid(state);
            wanted = null;
          }
        }
      }
      asking = false;
    }

    /* Whether the fields still say what they said when ``state`` was read. */
    const current = state => fields.every((field, i) => field.read().shown === state.shown[i]);

    /* Errors of costs begin with the argument's name. */
    function complain(words) {
      const field = fields.find(({ spec: { name } }) => words.startsWith(`${name} `));
      if (field) field.complain(words);
      refuse(words);
    }

    let saving;
    function save() { // not for each step of a slider: browsers limit how often an address may change
      clearTimeout(saving);
      saving = setTimeout(() => {
        const url = new URL(location.href);
        for (const field of fields) url.searchParams.set(`${spec.name}.${field.spec.name}`, field.text());
        history.replaceState(history.state, "", url);
      }, 250);
    }

    find(".rz-fields").addEventListener("input", () => { update(); save(); });
    const use = () => { if (!started && !wanted && !asking) update(); }; // the first use starts Python
    box.addEventListener("focusin", use, { once: true });
    box.addEventListener("pointerdown", use, { once: true });

    const kept = new URL(location.href).searchParams, key = field => `${spec.name}.${field.spec.name}`;
    for (const field of fields) field.set(kept.get(key(field)) ?? field.spec.start); // whatever the browser kept
    box.classList.add("rz-live");
    find(".rz-fields").hidden = false;
    if (fields.some(field => kept.has(key(field)))) update();
    else fromGrid({ shown: fields.map(field => field.read().shown) });
  }
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".rz-calculator").forEach(start));
})();
