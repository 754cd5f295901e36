// One slide at a time. Arrows, Page keys and the space bar turn it; in a control they belong to the control.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const slides = [...document.querySelectorAll(".slide")];
  const said = document.querySelector("nav output");
  const keys = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1, Home: -Infinity, End: Infinity };
  let at;
  function show(number) {
    at = Math.min(Math.max(number || 1, 1), slides.length);
    slides.forEach((slide, i) => { slide.hidden = i + 1 !== at; });
    fit(slides[at - 1]);
    said.textContent = `${at} of ${slides.length}`;
    history.replaceState(null, "", `#${at}`);
    scrollTo(0, 0);
  }
  // What is taller than the window is made smaller, down to 0.45; what is taller still is scrolled. Smaller text breaks
  // its lines elsewhere, so one step is not always enough.
  function fit(slide) {
    const height = () => document.documentElement.scrollHeight;
    let zoom = (slide.style.zoom = 1);
    while (zoom > 0.45 && height() > innerHeight) slide.style.zoom = zoom = Math.max(0.45, (zoom * innerHeight) / height() - 0.01);
  }
  for (const event of ["resize", "toggle"]) addEventListener(event, () => fit(slides[at - 1]), true);
  document.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.closest("input, select, textarea, button, summary, a")) return;
    event.preventDefault();
    show(at + keys[event.key]);
  });
  document.querySelector("nav").addEventListener("click", (event) => {
    if (event.target.dataset.by) show(at + Number(event.target.dataset.by));
  });
  addEventListener("hashchange", () => show(Number(location.hash.slice(1))));
  show(Number(location.hash.slice(1)));
});
