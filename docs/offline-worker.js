// A page opened from a file may start no worker, and the search is one. There, the script of a
// worker runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><body></body>";
      this.frame.addEventListener("load", () => this.start(address), { once: true });
      document.body.append(this.frame);
    }

    start(address) {
      const inside = this.frame.contentWindow;
      const load = (source) => new Promise((done) => {
        const script = inside.document.createElement("script");
        script.src = source;
        script.onload = done;
        inside.document.body.append(script);
      });
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      load(address).then(() => {
        this.deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.deliver);
      });
    }

    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() { this.frame.remove(); }
  };
}
