// What htmx is not told by attributes. Every page works without it, and without htmx.
(function () {
  "use strict";
  // Renewed rows do not take away what was chosen: the server does not know of it.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = function (name) { return name !== "checked"; };

  document.addEventListener("htmx:beforeRequest", function (event) {
    if (document.hidden) { event.preventDefault(); } // nobody looks
  });

  document.addEventListener("htmx:sseError", function () {
    document.getElementById("following").textContent =
      "The dashboard does not answer; trying again. What is shown may be old.";
  });
})();
