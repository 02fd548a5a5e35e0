(function () {
  // Flame graphs come still; here they are zoomed and searched. A frame's place is in its rect: fg:x and fg:w.
  var LETTER = 7; // pixels that a letter of 12 px in a fixed-width face takes
  function number(rect, name) { return Number(rect.getAttribute("fg:" + name)); }

  function frame(g) {
    var rect = g.querySelector("rect"), text = g.querySelector("text"), title = g.querySelector("title").textContent;
    return {
      g: g, rect: rect, text: text, title: title, name: title.replace(/ \([^()]*\)$/, ""),
      x: number(rect, "x"), w: number(rect, "w"), y: Number(rect.getAttribute("y"))
    };
  }

  document.querySelectorAll(".flame").forEach(function (figure) {
    var inner = figure.querySelector(".frames"), drawing = figure.querySelector(".drawing");
    if (!inner) { return; }
    var frames = Array.prototype.map.call(inner.querySelectorAll("g"), frame);
    var whole = Number(inner.getAttribute("total_samples")), view = { x: 0, w: whole, y: Infinity };
    var tools = figure.querySelector(".tools"), search = tools.querySelector("input");
    var out = tools.querySelector("button"), count = tools.querySelector("output"), told = figure.querySelector(".told");
    tools.hidden = false;
    unscale();

    // The drawing came scaled as a whole: here a frame is as high and a letter as large in any window, and only
    // widths are shares of it.
    function unscale() {
      var outer = drawing.querySelector("svg"), top = Infinity, bottom = 0;
      frames.forEach(function (one) {
        top = Math.min(top, one.y);
        bottom = Math.max(bottom, one.y + Number(one.rect.getAttribute("height")));
      });
      outer.removeAttribute("viewBox");
      outer.style.height = bottom - top + 2 + "px";
      inner.setAttribute("x", 0);
      inner.setAttribute("y", 1 - top);
      inner.setAttribute("width", "100%");
      inner.setAttribute("height", bottom + 1);
    }

    function draw() {
      var width = drawing.clientWidth;
      frames.forEach(function (one) {
        var below = one.y > view.y && one.x <= view.x && one.x + one.w >= view.x + view.w;
        var x = below ? 0 : (one.x - view.x) / view.w, w = below ? 1 : one.w / view.w;
        var hidden = !below && (one.y > view.y || x < -1e-9 || x + w > 1 + 1e-9 || !one.w);
        one.g.style.display = hidden ? "none" : "";
        if (hidden) { return; }
        one.g.classList.toggle("below", below);
        one.rect.setAttribute("x", 100 * x + "%");
        one.rect.setAttribute("width", 100 * w + "%");
        one.text.setAttribute("x", 100 * x + 0.25 + "%");
        var letters = Math.floor((width * w - 6) / LETTER);
        one.text.textContent = letters < 3 ? "" : one.name.length <= letters ? one.name : one.name.slice(0, letters - 2) + "..";
      });
      out.disabled = view.w === whole;
    }

    function zoom(one) { view = one; draw(); }

    function find() {
      var wanted = search.value.toLowerCase(), spans = [], sum = 0, end = -1;
      frames.forEach(function (one) {
        var hit = wanted && one.name.toLowerCase().indexOf(wanted) >= 0;
        one.g.classList.toggle("hit", Boolean(hit));
        if (hit) { spans.push(one); }
      });
      figure.classList.toggle("searched", Boolean(wanted));
      spans.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
      spans.forEach(function (one) { // a frame within one that was counted counts no more
        if (one.x >= end) { sum += one.w; end = one.x + one.w; }
      });
      count.textContent = wanted ? "found in " + (100 * sum / whole).toFixed(1) + " %" : "";
    }

    frames.forEach(function (one) {
      one.g.addEventListener("click", function () { told.textContent = one.title; zoom(one); });
      one.g.addEventListener("mouseenter", function () { told.textContent = one.title; });
    });
    out.addEventListener("click", function () { zoom({ x: 0, w: whole, y: Infinity }); });
    search.addEventListener("input", find);
    figure.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { search.value = ""; find(); zoom({ x: 0, w: whole, y: Infinity }); }
    });
    window.addEventListener("resize", draw);
    draw();
  });
})();
