/* Python in a page: MicroPython, started on first use, in a worker, so that a program that never ends can be ended.
 *
 *   await ringzero.python.start()                     begins now what the first call would begin
 *   await ringzero.python.call("ringzero.costs.page.memory", "model_state_bytes", { params: 7e9, stage: 2, world_size: 8 })
 *   await ringzero.python.exec("print(1)\nresult = n * n", { n: 3 })      { value: 9, printed: "1\n" }
 *
 * Arguments and results are plain data: numbers, text, true, null, lists, objects. What Python raises rejects the
 * promise: an error with `message` (Python's own sentence), `type` ("ValueError") and `trace`. A call of more than
 * `seconds` (the last argument's, 10 unless given) ends Python and rejects with the type "Timeout"; the next call
 * starts it anew. Calls are answered one after another.
 *
 * From file:// a page may neither fetch nor import. So one classic script beside this one, micropython.js, brings all:
 * book/_ext/page_python.py writes it when the site is built, and it is loaded when Python first starts.
 */
(function () {
  "use strict";
  const BUNDLE = new URL("micropython.js", document.currentScript.src).href;

  class PythonError extends Error {
    constructor(error) {
      super(error.message);
      Object.assign(this, { name: "PythonError", type: error.type, trace: error.trace || "" });
    }
  }

  const failure = message => new PythonError({ type: "EngineError", message });

  /* Runs in the worker. Chromium refuses a module worker from file://, but lets a classic one import a blob. */
  function inWorker() {
    const PRINTED_AT_MOST = 100000; // characters
    let answer, printed = "";
    async function begin({ loader, wasm, files }) {
      const { loadMicroPython } = await import(URL.createObjectURL(new Blob([loader], { type: "text/javascript" })));
      const decoder = new TextDecoder();
      const python = await loadMicroPython({
        url: `data:application/wasm;base64,${wasm}`, // decoded and compiled by the browser, faster than here
        heapsize: 16 << 20,
        linebuffer: false,
        stdout: bytes => { if (printed.length < PRINTED_AT_MOST) printed += decoder.decode(bytes, { stream: true }); },
      });
      const folders = new Set(["/lib"]);
      for (const path of Object.keys(files))
        path.split("/").slice(0, -1).reduce((above, name) => folders.add(`${above}/${name}`) && `${above}/${name}`, "/lib");
      folders.forEach(folder => python.FS.mkdir(folder));
      for (const [path, text] of Object.entries(files)) python.FS.writeFile(`/lib/${path}`, text);
      python.runPython(files["answer.py"]);
      answer = python.globals.get("answer");
    }
    globalThis.onmessage = async ({ data }) => {
      try {
        if (data.wasm) {
          await begin(data);
          return postMessage({ started: true });
        }
        printed = "";
        const text = answer(data.request);
        postMessage({ text, printed });
      } catch (error) { // of MicroPython itself, out of memory or out of stack
        postMessage({ failed: String(error.message || error) });
      }
    };
  }

  let bundle = null; // a promise of { loader, wasm, files }
  let python = null; // a promise of a worker in which Python runs
  let last = Promise.resolve(); // the call before

  function load() {
    bundle = bundle || new Promise((resolve, reject) => {
      window.ringzero.python.deliver = resolve;
      const script = document.createElement("script");
      script.src = BUNDLE;
      script.onerror = () => { bundle = null; reject(failure(`Python is not there: ${BUNDLE} does not load`)); };
      document.head.append(script);
    });
    return bundle;
  }

  /* What the worker says next. */
  function reply(worker, seconds) {
    return new Promise((resolve, reject) => {
      const end = error => { clearTimeout(timer); worker.terminate(); python = null; reject(error); };
      const timer = setTimeout(() => end(new PythonError({ type: "Timeout", message: `ended after ${seconds} s` })), 1000 * seconds);
      worker.onmessage = ({ data }) => {
        if ("failed" in data) return end(failure(data.failed));
        clearTimeout(timer);
        resolve(data);
      };
      worker.onerror = event => end(failure(event.message || "Python does not start in this browser"));
    });
  }

  function start() {
    python = python || (async () => {
      const { loader, wasm, files } = await load();
      const source = URL.createObjectURL(new Blob([`(${inWorker})();`], { type: "text/javascript" }));
      const worker = new Worker(source);
      worker.postMessage({ loader, wasm, files });
      await reply(worker, 60);
      URL.revokeObjectURL(source);
      return worker;
    })();
    python.catch(() => { python = null; }); // the next call tries again
    return python;
  }

  function plain(text) {
    try {
      return JSON.parse(text);
    } catch { // JSON has no infinity
      return { error: { type: "ValueError", message: "the result has a number that is not finite" } };
    }
  }

  async function ask(request, seconds) {
    const worker = await start();
    worker.postMessage({ request: JSON.stringify(request) });
    const said = await reply(worker, seconds);
    const { value, error } = plain(said.text);
    if (error) throw new PythonError(error);
    return { value, printed: said.printed };
  }

  function inTurn(request, { seconds = 10 } = {}) {
    const answer = last.then(() => ask(request, seconds));
    last = answer.catch(() => {});
    return answer;
  }

  window.ringzero = window.ringzero || {};
  window.ringzero.python = {
    start: async () => { await start(); },
    call: async (module, name, given, options) => (await inTurn({ module, name, given: given || {} }, options)).value,
    exec: (source, given, options) => inTurn({ source, given: given || {} }, options),
  };
})();
