// Elements are made by code and filled with text: nothing that a value holds is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An element with its attributes, listeners (`onclick`) and children. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same of SVG. */
export function s(tag, props, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Sets a text only where it differs, so that a selection in it survives. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let toastTimer = 0;

/** Says something for a moment; screen readers hear it. */
export function toast(text) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.dataset.shown = "";
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => delete node.dataset.shown, 2600);
}

/** Shows something above the page until Escape, a click beside it, or its button. */
export function dialog(title, ...body) {
  const node = document.getElementById("dialog");
  const close = h("button", { class: "button small", type: "button", onclick: () => node.close() }, "Close");
  node.replaceChildren(
    h("div", { class: "dialog-head" }, h("h2", { id: "dialog-title" }, title), close),
    h("div", { class: "dialog-body" }, body),
  );
  node.onclick = (event) => {
    if (event.target === node) node.close();
  };
  if (!node.open) node.showModal();
  return node;
}

/** Puts text on the clipboard, also where the page came without TLS and the newer way is closed. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const holder = h("textarea", { class: "visually-hidden" });
    holder.value = text;
    const focused = document.activeElement;
    document.body.append(holder);
    holder.select();
    document.execCommand("copy");
    holder.remove();
    focused?.focus();
  }
  toast(what + " copied");
}

export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Reads and keeps small things in this browser; where that is forbidden nothing is kept. */
export const kept = {
  get(name, otherwise) {
    try {
      const text = localStorage.getItem("filbert." + name);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem("filbert." + name, JSON.stringify(value));
    } catch {
      // Full or forbidden: the page works without.
    }
  },
};
