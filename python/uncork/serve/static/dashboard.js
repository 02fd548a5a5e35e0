// Settings of htmx that attributes cannot express. Every page works without this file, and without htmx.
(function () {
  "use strict";
  // Keep checkboxes when rows are replaced: the server does not know which rows are selected.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = function (name) { return name !== "checked"; };

  document.addEventListener("htmx:beforeRequest", function (event) {
    if (document.hidden) { event.preventDefault(); } // nobody is looking
  });

  document.addEventListener("htmx:sseError", function () {
    document.getElementById("following").textContent =
      "The dashboard does not respond; retrying. This page may be out of date.";
  });
})();
