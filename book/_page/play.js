/* The button "Play" behind a slider: moves it on by itself to its last place, from the first one if it stands there. */
(function () {
  "use strict";
  const EACH = 900; // milliseconds

  function start(button) {
    const slider = button.previousElementSibling.querySelector("input");
    let timer = null;

    function stop() {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
    }
    function move(place) {
      slider.value = place;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      if (Number(slider.value) >= Number(slider.max)) stop();
    }
    button.addEventListener("click", function () {
      if (timer !== null) return stop();
      button.textContent = "Stop";
      timer = setInterval(() => move(Number(slider.value) + 1), EACH);
      if (Number(slider.value) >= Number(slider.max)) move(Number(slider.min));
    });
    button.parentElement.addEventListener("input", event => event.isTrusted && timer !== null && stop()); // the reader's turn
  }
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".rz-play").forEach(start));
})();
