/* Brings the inputs of ringzero_course.figures.explore to life. Without it a page shows each figure's first state. */
(function () {
  "use strict";
  function start(box) {
    const grid = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    const controls = box.querySelector(".rz-controls");
    const view = box.querySelector(".rz-view");
    const status = box.querySelector(".rz-status");
    const inputs = Array.from(controls.querySelectorAll("input, select"));

    function show() {
      let position = 0;
      inputs.forEach(function (input, i) {
        const index = Number(input.value);
        position = position * grid.sizes[i] + index;
        const output = input.parentElement.querySelector("output");
        if (output) output.textContent = grid.values[i][index];
        if (input.type === "range") input.setAttribute("aria-valuetext", grid.values[i][index]);
      });
      view.innerHTML = grid.states[position].html;
      status.textContent = grid.states[position].says;
    }

    controls.addEventListener("input", show);
    controls.hidden = false;
    show(); // a browser may have kept the inputs of an earlier visit
  }
  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll(".rz-explore").forEach(start);
  });
})();
