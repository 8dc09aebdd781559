// Sorts a table by the column whose head is pressed; the page is complete without.
document.querySelectorAll("table.sort").forEach(table => {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((th, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener("click", () => {
      const up = th.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
      const order = (x, y) => x !== "" && y !== "" && isFinite(x) && isFinite(y)
        ? x - y : x.localeCompare(y);
      body.append(...[...body.rows].sort((x, y) => order(key(x), key(y)) * (up ? 1 : -1)));
    });
  });
});
