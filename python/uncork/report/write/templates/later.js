(function () { // draws the parts of the page that are drawn when they are opened; later.py writes their content
  var parts = null;

  function made(tag, properties, children) {
    var element = Object.assign(document.createElement(tag), properties);
    element.append(...(children || []).filter(Boolean));
    return element;
  }

  function region(element, kind, title, part) {
    element.tabIndex = 0;
    element.setAttribute("role", "region");
    element.setAttribute("aria-label", kind + ": " + title + " (" + part.replace("-", " ") + ")");
    return element;
  }

  function cell(value, column, repeated) {
    var text = Array.isArray(value) ? value[0] : value, note = Array.isArray(value) && value[1];
    var bar = Array.isArray(value) ? value[2] : 0, isHead = column[1] && text;
    var names = [column[2] ? "number" : "", repeated ? "repeated" : "", bar ? "bar" : ""];
    var small = note && made("small", { textContent: note });
    var element = made(isHead ? "th" : "td", { className: names.filter(Boolean).join(" ") }, [text, small]);
    if (isHead) { element.scope = "row"; }
    if (bar) { element.style.setProperty("--w", bar + "%"); }
    return element;
  }

  function links(files) {
    var all = [];
    files.forEach(function (file) {
      var link = made("a", { textContent: file[0], href: file[2], download: "" });
      link.setAttribute("aria-label", file[1]);
      all.push(" ", link);
    });
    return files.length ? made("p", { className: "files" }, ["Save as"].concat(all)) : null;
  }

  var draw = {
    text: function (part, text) { return [made("p", { textContent: text })]; },
    code: function (part, title, language, text) {
      var code = made("pre", { className: language, textContent: text, tabIndex: 0 });
      if (title) { code.setAttribute("aria-label", title); }
      return [title && made("p", { className: "code-title", textContent: title }), code];
    },
    facts: function (part, items) {
      var all = [];
      items.forEach(function (item) {
        all.push(made("dt", { textContent: item[0] }), made("dd", { textContent: item[1] }), "\n");
      });
      return [made("dl", { className: "facts" }, all)];
    },
    beside: function (part, blocks) { return [made("div", { className: "beside" }, drawn(part, blocks))]; },
    spark: function (part, title, path, width, height, first, last) {
      var space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
      var outline = document.createElementNS(space, "path");
      outline.setAttribute("d", path);
      svg.append(outline);
      svg.setAttribute("viewBox", "0 0 " + width + " " + height);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", title);
      var ends = [first, last].map(function (end) { return made("span", { textContent: end }); });
      var caption = made("figcaption", { textContent: title });
      return [made("figure", { className: "spark" }, [caption, svg, made("p", {}, ends)])];
    },
    table: function (part, caption, columns, rows, few, files) {
      var heads = columns.map(function (column) {
        if (!column[0]) { return made("td"); }
        return made("th", { textContent: column[0], scope: "col", className: column[2] ? "number" : "" });
      });
      var lines = rows.map(function (row, place) {
        var before = place && rows[place - 1][0];
        var same = before && columns[0][1] && String(before) === String(row[0]);
        return made("tr", { className: same ? "" : "first" }, row.map(function (value, at) {
          return cell(value, columns[at], same && at === 0);
        }));
      });
      var table = made("table", {}, [
        made("caption", {}, [made("span", { textContent: caption })]),
        made("thead", {}, [made("tr", {}, heads)]),
        made("tbody", {}, lines),
      ]);
      var scroll = made("div", { className: few ? "scroll few" : "scroll" }, [table]);
      return [region(scroll, "Table", caption, part), links(files)];
    },
  };

  function drawn(part, blocks) {
    return blocks.flatMap(function (block) { return draw[block[0]].apply(null, [part].concat(block.slice(1))); });
  }

  document.querySelectorAll("details.later").forEach(function (fold) {
    fold.addEventListener("toggle", function () {
      if (!fold.open || fold.dataset.drawn) { return; }
      parts = parts || JSON.parse(document.getElementById("later").textContent);
      var inside = fold.querySelector(".inside"), blocks = parts[inside.id];
      fold.dataset.drawn = "1";
      inside.querySelector(".unscripted").remove();
      inside.append(...drawn(inside.id, blocks).filter(Boolean));
    });
  });
})();
