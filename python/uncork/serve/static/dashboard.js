// Filters without loading the page again, rows that follow what is stored, and a run that is followed. Every page
// works without it. All that it puts into a page comes from our own server, with all text escaped there.
(function () {
  "use strict";
  var FOLLOW_MS = 5000, TYPING_MS = 250;

  function put(place, html) { // keeps what was chosen, and the focus if what had it is still there
    var focused = document.activeElement, address = place.contains(focused) && focused.getAttribute("href");
    var chosen = Array.from(place.querySelectorAll("input:checked"), function (one) { return one.value; });
    var choosing = place.contains(focused) && focused.type === "checkbox" && focused.value;
    place.innerHTML = html;
    place.querySelectorAll("input[type=checkbox]").forEach(function (one) {
      one.checked = chosen.includes(one.value);
      if (one.value === choosing) { one.focus({ preventScroll: true }); }
    });
    if (address) {
      var again = Array.prototype.find.call(place.querySelectorAll("a"), function (one) {
        return one.getAttribute("href") === address;
      });
      if (again) { again.focus({ preventScroll: true }); }
    }
  }

  function filters(form, rows) {
    var shown = rows.innerHTML, asked = 0, timer = 0;

    function query() {
      var words = new URLSearchParams(new FormData(form));
      Array.from(words.keys()).forEach(function (name) { if (!words.get(name)) { words.delete(name); } });
      return words;
    }

    function load(words) {
      var number = ++asked;
      fetch(form.dataset.rows + "?" + words, { headers: { accept: "text/html" } }).then(function (answer) {
        if (!answer.ok) { throw new Error(); }
        return answer.text();
      }).then(function (html) {
        if (number === asked && html !== shown) { shown = html; put(rows, html); }
      }).catch(function () { /* the next time tries again; what is shown stays */ });
    }

    function changed() {
      var words = query();
      history.replaceState(null, "", words.toString() ? "/?" + words : "/");
      load(words);
    }

    form.addEventListener("submit", function (event) { event.preventDefault(); changed(); });
    form.addEventListener("change", changed);
    form.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(changed, TYPING_MS); });
    setInterval(function () {
      if (!document.hidden) { load(new URLSearchParams(location.search)); }
    }, FOLLOW_MS);
  }

  function follow(place, told) {
    var source = new EventSource(place.dataset.events);
    told.textContent = "This page goes on by itself.";
    source.addEventListener("progress", function (event) {
      put(place, JSON.parse(event.data));
      told.textContent = "This page goes on by itself.";
    });
    source.addEventListener("ended", function (event) {
      var status = JSON.parse(event.data), link = document.createElement("a");
      source.close();
      link.href = place.dataset.report;
      link.textContent = "Read the report";
      told.replaceChildren(status ? "The run is " + status + ". " : "The run is gone. ", status ? link : "");
    });
    source.addEventListener("error", function () {
      told.textContent = "The dashboard does not answer; trying again. What is shown may be old.";
    });
  }

  function first(place) { // as soon as there is a run, there is a list
    setInterval(function () {
      fetch(place.dataset.waiting, { headers: { accept: "text/html" } }).then(function (answer) {
        return answer.ok ? answer.text() : "";
      }).then(function (html) {
        if (html.includes("<table")) { location.reload(); }
      }).catch(function () { /* the next time tries again */ });
    }, FOLLOW_MS);
  }

  var waiting = document.querySelector("[data-waiting]");
  if (waiting) { first(waiting); }
  var form = document.querySelector("form[data-rows]"), rows = document.getElementById("rows");
  if (form && rows) { filters(form, rows); }
  var progress = document.getElementById("progress");
  if (progress && progress.dataset.events) { follow(progress, document.getElementById("following")); }
})();
