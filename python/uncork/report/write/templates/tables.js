(function () {
  var words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  var parts = null, searchable = 10; // rows that an eye still finds by itself

  function counted(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, "\u00a0"); }

  function made(tag, properties) { return Object.assign(document.createElement(tag), properties); }

  function value(cell) { // what a cell sorts by: null if it is empty, so that it comes last either way
    if (cell.dataset.v !== undefined) { return Number(cell.dataset.v); }
    return cell.textContent.trim() || null;
  }

  function compare(one, other) {
    return typeof one === "number" && typeof other === "number" ? one - other : words.compare(one, other);
  }

  function sort(table, rows, heads, column) {
    var head = heads[column], before = head.ariaSort;
    var sign = (before ? before === "ascending" : head.classList.contains("number")) ? -1 : 1;
    var keyed = rows.map(function (row) { return [value(row.cells[column]), row]; });
    var full = keyed.filter(function (pair) { return pair[0] !== null; });
    full.sort(function (one, other) { return sign * compare(one[0], other[0]); });
    var empty = keyed.filter(function (pair) { return pair[0] === null; });
    heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    table.tBodies[0].append(...full.concat(empty).map(function (pair) { return pair[1]; }));
  }

  function undrawn() { // the content of parts that are drawn when they are opened: see later.js
    var content = document.getElementById("later");
    parts = parts || (content ? JSON.parse(content.textContent) : {});
    return parts;
  }

  function whole(row) { // a row may show the beginning of a text that the part behind its link holds whole
    var link = row.querySelector("a[href^='#']"), part = link && document.getElementById(link.hash.slice(1));
    var text = part && part.querySelector("pre"), waiting = part && !text && undrawn()[part.id];
    var code = text ? text.textContent : waiting ? waiting[0][3] : "";
    return (row.textContent + " " + code).replace(/\s+/g, " ").toLowerCase();
  }

  function addSearch(table, rows, name) {
    var box = made("p", { className: "search" }), label = made("label", { textContent: "Search " });
    var input = made("input", { type: "search", autocomplete: "off", spellcheck: false });
    var shown = made("output"), texts = null;
    input.setAttribute("aria-label", "Search " + name);
    label.append(input);
    box.append(label, shown);
    table.parentNode.before(box);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean), left = 0;
      texts = texts || rows.map(whole);
      rows.forEach(function (row, place) {
        row.hidden = !wanted.every(function (word) { return texts[place].includes(word); });
        left += !row.hidden;
      });
      shown.textContent = wanted.length ? counted(left) + " of " + counted(rows.length) + " shown" : "";
    });
    table.addEventListener("uncork-all", function () {
      input.value = "";
      input.dispatchEvent(new Event("input"));
    });
  }

  document.querySelectorAll("table.sortable").forEach(function (table) {
    var rows = Array.from(table.tBodies[0].rows), heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var button = made("button", { type: "button", textContent: head.textContent });
      button.addEventListener("click", function () { sort(table, rows, heads, column); });
      head.replaceChildren(button);
    });
    if (rows.length > searchable) { addSearch(table, rows, table.caption.textContent); }
  });

  function reveal() { // newer browsers open the part by themselves
    var target = document.getElementById(location.hash.slice(1));
    if (!target) { return; }
    var row = target.closest("tr[hidden]"), fold = target.closest("details");
    if (row) { row.closest("table").dispatchEvent(new Event("uncork-all")); }
    if (fold) { fold.open = true; }
    if (row || fold) { target.scrollIntoView({ behavior: "instant" }); }
  }

  addEventListener("hashchange", reveal);
  reveal();
})();
