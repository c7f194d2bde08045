// Sets the chosen colours before the page is drawn, so that it does not flash in the other ones.
(() => {
  try {
    const theme = localStorage.getItem("filbert.theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden: the system's colours are used.
  }
})();
