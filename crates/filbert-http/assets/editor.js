// The editor: a text area whose text is drawn, with colours, by what lies below it. All editing is the browser's own.

import { h } from "./dom.js";
import { complete, refreshNames } from "./complete.js";
import { statementAt, statements, tokens } from "./tokens.js";

/** Height of a line; the styles have the same. */
const LINE = 20;

/** Makes an editor. `onChange` hears of each change; the keys of running are its owner's. */
export function editor({ text, onChange }) {
  const paint = h("pre", { class: "paint", "aria-hidden": "true" });
  const gutter = h("div");
  const list = h("ul", { class: "choices", id: "choices", role: "listbox", "aria-label": "Completions", hidden: true });
  const area = h("textarea", {
    class: "area", spellcheck: "false", autocomplete: "off", autocapitalize: "off", autocorrect: "off", wrap: "off", rows: "6",
    "aria-label": "SQL statement", "aria-autocomplete": "list", "aria-controls": "choices", "aria-describedby": "editor-help",
    placeholder: "SELECT …",
  });
  const node = h("div", { class: "editor" }, h("div", { class: "gutter", "aria-hidden": "true" }, gutter), h("div", { class: "sheet" }, h("div", { class: "under" }, paint), area, list));
  area.value = text;
  let place = null;
  let choices = null;

  function draw() {
    const value = area.value;
    const current = statements(value).length > 1 ? statementAt(value, area.selectionStart) : null;
    const parts = [];
    for (const token of tokens(value)) {
      const wrong = place && token.from < place.to && token.from + token.text.length > place.from && token.kind !== "space";
      const kind = wrong ? `${token.kind} wrong` : token.kind;
      parts.push(kind === "space" || kind === "sign" || kind === "word" ? token.text : h("span", { class: `t-${kind.replace(" ", " t-")}` }, token.text));
    }
    paint.replaceChildren(...parts, "\n");
    const lineOf = (at) => value.slice(0, at).split("\n").length;
    const [from, to] = current ? [lineOf(current.from), lineOf(current.to)] : [0, 0];
    const wrongLine = place ? lineOf(place.from) : 0;
    const count = value.split("\n").length;
    gutter.replaceChildren(...Array.from({ length: count }, (_, at) => {
      const line = at + 1;
      const kind = [line >= from && line <= to ? "current" : "", line === wrongLine ? "wrong" : ""].join(" ").trim();
      return h("span", { class: kind || null }, String(line));
    }));
    // Grows with its text up to a limit; beyond it scrolls. Lines may be broken, so their number does not tell.
    area.style.height = "0";
    area.style.height = `${Math.min(Math.max(area.scrollHeight, 6 * LINE + 24), 18 * LINE + 24)}px`;
    scroll();
  }

  function scroll() {
    paint.style.transform = `translate(${-area.scrollLeft}px, ${-area.scrollTop}px)`;
    gutter.style.transform = `translateY(${-area.scrollTop}px)`;
  }

  function changed() {
    place = null;
    draw();
    onChange(area.value);
  }

  function close() {
    choices = null;
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  async function offer(isAsked) {
    const stamp = area.value;
    if (isAsked) await refreshNames();
    else refreshNames();
    if (area.value !== stamp || area.selectionStart !== area.selectionEnd) return close();
    const { from, items } = complete(area.value, area.selectionStart, isAsked);
    if (items.length === 0) return close();
    // Enter ends a line unless one of them was asked for: what is typed is often whole.
    choices = { from, items, at: 0, isAsked };
    list.replaceChildren(...items.map((item, at) => h("li", {
      role: "option", id: `choice-${at}`, class: item.kind,
      onpointerdown: (event) => {
        event.preventDefault();
        accept(at);
      },
    }, h("span", { class: "label" }, item.label), h("span", { class: "detail" }, item.detail))));
    list.hidden = false;
    choose(0);
    beside(from);
  }

  /** Puts the list below the word that is being typed. */
  function beside(from) {
    const box = area.getBoundingClientRect();
    const word = boxAt(from);
    const left = word.left - box.left;
    list.style.left = `${Math.max(4, Math.min(left, area.clientWidth - list.offsetWidth - 4))}px`;
    list.style.top = `${word.top - box.top + LINE + 2}px`;
  }

  /** Where a character of the text is drawn. */
  function boxAt(place) {
    const walker = document.createTreeWalker(paint, NodeFilter.SHOW_TEXT);
    let rest = place;
    while (walker.nextNode()) {
      const { length } = walker.currentNode;
      if (rest < length) {
        const range = document.createRange();
        range.setStart(walker.currentNode, rest);
        range.setEnd(walker.currentNode, rest + 1);
        return range.getBoundingClientRect();
      }
      rest -= length;
    }
    return area.getBoundingClientRect();
  }

  function choose(at) {
    choices.at = (at + choices.items.length) % choices.items.length;
    for (const [index, item] of [...list.children].entries()) item.setAttribute("aria-selected", String(index === choices.at));
    const chosen = list.children[choices.at];
    area.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function accept(at) {
    const { from, items } = choices;
    area.setRangeText(items[at].insert, from, area.selectionStart, "end");
    close();
    area.focus();
    changed();
  }

  area.addEventListener("input", (event) => {
    changed();
    if (event.inputType?.startsWith("insertText") || (choices && event.inputType?.startsWith("delete"))) offer(false);
    else close();
  });
  area.addEventListener("scroll", () => {
    scroll();
    close();
  });
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === area) draw();
  });
  area.addEventListener("keydown", (event) => {
    const command = event.ctrlKey || event.metaKey;
    if (event.key === " " && command) {
      event.preventDefault();
      offer(true);
    } else if (choices && !command && !event.altKey && (choices.isAsked || event.key !== "Enter")) {
      chooseByKey(event);
    } else if (event.key === "/" && command) {
      event.preventDefault();
      toggleComment();
    } else if (event.key === "Enter" && !command && !event.shiftKey) {
      const line = area.value.slice(0, area.selectionStart).split("\n").at(-1);
      const indent = /^[ \t]+/.exec(line)?.[0];
      if (indent) {
        event.preventDefault();
        document.execCommand("insertText", false, "\n" + indent);
      }
    }
  });

  function chooseByKey(event) {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      choices.isAsked = true;
      choose(choices.at + (key === "ArrowDown" ? 1 : -1));
    } else if (key === "Enter" || (key === "Tab" && !event.shiftKey)) accept(choices.at);
    else if (key === "Escape") close();
    else {
      if (key.startsWith("Arrow") || key === "Home" || key === "End") close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function toggleComment() {
    const { value, selectionStart, selectionEnd } = area;
    const from = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const end = value.indexOf("\n", selectionEnd);
    const to = end < 0 ? value.length : end;
    const lines = value.slice(from, to).split("\n");
    const all = lines.every((line) => line.startsWith("--"));
    area.setRangeText(lines.map((line) => (all ? line.replace(/^-- ?/, "") : "-- " + line)).join("\n"), from, to, "select");
    changed();
  }

  draw();
  return {
    node,
    area,
    /** What is to be run: what is selected, else the statement at the caret. {text, from}. */
    current() {
      const { value, selectionStart: from, selectionEnd: to } = area;
      const selected = value.slice(from, to);
      if (selected.trim() !== "") return { text: selected.replace(/;\s*$/, ""), from };
      return statementAt(value, from);
    },
    set(value) {
      area.value = value;
      area.setSelectionRange(0, 0);
      changed();
    },
    /** Marks a place as wrong, until the text changes. */
    mark(from, to) {
      place = { from, to };
      draw();
      area.focus({ preventScroll: true });
      area.setSelectionRange(from, from);
    },
    unmark() {
      place = null;
      draw();
    },
  };
}
