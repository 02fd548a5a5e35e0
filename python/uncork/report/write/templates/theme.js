(function () {
  var root = document.documentElement, button = document.getElementById("theme"), saved = null;
  try { saved = localStorage.getItem("uncork-theme"); } catch (ignored) { /* a page from disk may have no storage */ }
  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function label() { button.textContent = dark() ? "Light theme" : "Dark theme"; }
  if (saved === "dark" || saved === "light") { root.dataset.theme = saved; }
  button.hidden = false;
  label();
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("uncork-theme", root.dataset.theme); } catch (ignored) { /* as above */ }
    label();
  });
})();
