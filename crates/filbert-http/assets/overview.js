// The member as a whole: what somebody should look at, figures of now, and charts of the last minutes.

import { chart } from "./chart.js";
import { h, kept, s, setText } from "./dom.js";
import { bytes, bytesParts, count, micros, percent, short } from "./format.js";
import { steps, store } from "./status.js";

const SPANS = [[60_000, "1 min"], [300_000, "5 min"], [900_000, "15 min"]];
const DOORS = { hazelcast: "Hazelcast", http: "HTTP", postgres: "PostgreSQL", postgresql: "PostgreSQL" };
const KINDS = { PYH: "Python", JVM: "Java", NJS: "Node.js", GOO: "Go", CPP: "C++", CSP: ".NET", RST: "Rust" };
const SIGNS = { note: "M10 9v5M10 6.200v.1M10 2.500a7.500 7.500 0 1 0 0 15 7.500 7.500 0 0 0 0-15Z", other: "M10 7.500v4M10 14v.1M10 2.500 18 17H2Z" };

export function view() {
  let span = kept.get("span", 300_000);
  const subtitle = h("p", {}, "");
  const warnings = h("div", { class: "warnings" });
  const tiles = {
    entries: tile("Entries"), memory: tile("Memory of maps", true), operations: tile("Operations"), statements: tile("Statements"), connections: tile("Connections"),
  };
  const charts = {
    operations: chart({ title: "Operations/s", series: [{ label: "gets" }, { label: "puts" }, { label: "removes" }], format: short, floor: 10, emptyText: "Waiting for the second sample" }),
    operationLatency: chart({ title: "Latency of operations", series: [{ label: "p50" }, { label: "p99" }], format: micros, floor: 10, emptyText: "None was timed in this time" }),
    statements: chart({ title: "Statements/s", series: [{ label: "all" }, { label: "failed" }], format: short, floor: 10, emptyText: "Waiting for the second sample" }),
    statementLatency: chart({ title: "Latency of statements", series: [{ label: "p50" }, { label: "p99" }], format: micros, floor: 1000, emptyText: "None ran in this time" }),
    memory: chart({ title: "Memory", series: [{ label: "maps" }, { label: "process" }], format: bytes, binary: true, floor: 16 << 20, emptyText: "Waiting for the first sample" }),
    cpu: chart({ title: "Processors", series: [{ label: "busy" }], format: (value) => `${value.toFixed(value < 10 ? 1 : 0)} %`, tick: (value) => `${value} %`, floor: 100, emptyText: "Not known on this system" }),
  };
  const choices = SPANS.map(([value, label]) => h("button", { type: "button", onclick: () => {
    span = value;
    kept.set("span", value);
    update();
  } }, label));
  const members = h("tbody");
  const clients = h("tbody");
  const doors = h("p", { class: "note" });
  const kinds = h("tbody");
  const clientNote = h("span", { class: "note" });
  const clientPanel = h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Clients"), clientNote), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Clients" },
    h("table", { class: "stack" }, heads("Name", "Library", "Address", "#Connections"), clients)));
  const node = h("div", { class: "view" },
    h("div", { class: "view-head" }, h("div", {}, h("h1", { tabindex: "-1" }, "Overview"), subtitle), h("div", { class: "segments", role: "group", "aria-label": "Time that charts show" }, choices)),
    warnings,
    h("dl", { class: "panel tiles" }, Object.values(tiles).map((tile) => tile.node)),
    h("div", { class: "charts" }, Object.values(charts).map((chart) => chart.node)),
    h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Members"), doors), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Members" },
      h("table", { class: "stack" }, heads("Member", "#Partitions", "#Maps' memory", "#Process", "#Processors", "#Listeners", "#Waiting for locks"), members))),
    h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Operations and statements"), h("span", { class: "note" }, "since the start; operations are timed now and then, in the member, without the network")), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Operations and statements" },
      h("table", { class: "stack" }, heads("Kind", "#Now", "#Count", "#Failed", "#p50", "#p99"), kinds))),
    clientPanel);

  function update() {
    const { status } = store;
    if (!status) return;
    for (const [at, choice] of choices.entries()) choice.setAttribute("aria-pressed", String(SPANS[at][0] === span));
    setText(subtitle, `Cluster ${status.cluster.name} · ${status.members.length} ${status.members.length === 1 ? "member" : "members"} · ${count(status.cluster.partitions)} partitions · version ${status.version}`);
    drawWarnings(warnings, status.warnings);
    const past = steps();
    drawTiles(tiles, status, past.at(-1));
    charts.operations.update(past.map((step) => ({ t: step.t, v: [step.gets, step.puts, step.removes] })), span);
    charts.operationLatency.update(past.map(({ t, sample: { operation } }) => ({ t, v: [operation.p50_us, operation.p99_us] })), span);
    charts.statements.update(past.map((step) => ({ t: step.t, v: [step.statements, step.failed] })), span);
    charts.statementLatency.update(past.map(({ t, sample: { statement } }) => ({ t, v: [statement.p50_us, statement.p99_us] })), span);
    charts.memory.update(store.samples.map((sample) => ({ t: sample.at_ms, v: [sample.memory_bytes, sample.resident_bytes] })), span);
    charts.cpu.update(past.map((step) => ({ t: step.t, v: [step.cpu] })), span);
    drawMembers(members, status);
    setText(doors, status.doors.map((door) => `${DOORS[door.name] ?? door.name} ${door.address}`).join(" · "));
    drawKinds(kinds, status);
    drawClients(clients, clientNote, status.clients);
    clientPanel.hidden = status.clients.clients === 0;
  }

  update();
  return { node, title: "Overview", update };
}

export function heads(...labels) {
  return h("thead", {}, h("tr", {}, labels.map((label) => h("th", { scope: "col", class: label.startsWith("#") ? "number" : null }, label.replace("#", "")))));
}

function tile(label, hasBar) {
  const value = h("dd");
  const fill = h("span");
  const bar = hasBar && h("div", { class: "bar", "aria-hidden": "true" }, fill);
  const note = h("span", { class: "note" });
  return { node: h("div", { class: "tile" }, h("dt", {}, label), value, bar, note), value, note, bar, fill };
}

function say(tile, number, unit, note) {
  const text = unit ? `${number} ${unit}` : number;
  if (tile.value.textContent !== text) tile.value.replaceChildren(number, unit ? " " : "", unit ? h("small", {}, unit) : "");
  setText(tile.note, note);
}

function drawTiles(tiles, status, step) {
  const [member] = status.members;
  const sample = store.samples.at(-1);
  say(tiles.entries, sample?.entries < 10_000_000 ? count(sample.entries) : short(sample?.entries), "", `in ${count(status.maps.length)} ${status.maps.length === 1 ? "map" : "maps"}`);
  const [number, unit] = bytesParts(member.memory_bytes);
  const max = member.memory_bytes_max;
  say(tiles.memory, number, unit, max ? `${percent(member.memory_bytes, max)} of ${bytes(max)}` : "no limit set");
  tiles.memory.bar.hidden = !max;
  tiles.memory.fill.style.width = `${max ? Math.min(100, (100 * member.memory_bytes) / max) : 0}%`;
  tiles.memory.fill.className = max && member.memory_bytes > 0.9 * max ? "near" : "";
  const operations = step ? step.gets + step.puts + step.removes : null;
  const hits = sample && sample.gets > 0 ? `${percent(sample.hits, sample.gets)} of gets find an entry` : "gets, puts and removes";
  say(tiles.operations, operations === null ? "–" : short(Math.round(operations)), "/s", hits);
  const now = step?.sample;
  say(tiles.statements, step ? short(Math.round(step.statements * 10) / 10) : "–", "/s", now?.statement.p99_us ? `p99 ${micros(now.statement.p99_us)}` : "none right now");
  const clients = status.clients.clients;
  say(tiles.connections, count(sample?.connections ?? status.clients.connections), "", `${count(clients)} ${clients === 1 ? "client" : "clients"} of the grid`);
}

export function drawWarnings(node, warnings) {
  const key = JSON.stringify(warnings);
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.hidden = warnings.length === 0;
  node.replaceChildren(...warnings.map(({ level, title, text }) => h("div", { class: "warning", "data-level": level },
    s("svg", { viewBox: "0 0 20 20", role: "img", "aria-label": level }, s("path", { d: level === "note" ? SIGNS.note : SIGNS.other })),
    h("strong", {}, title), h("p", {}, text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part))))));
}

function drawMembers(body, status) {
  const rows = status.members.map((member) => [
    [h("strong", {}, member.id.slice(0, 8)), h("span", { class: "note mono wide" }, member.id.slice(8)), member.active ? "" : h("span", { class: "tag" }, "stopping")],
    [count(member.partitions), "partitions"], [bytes(member.memory_bytes), "maps"], [bytes(member.resident_bytes), "process"],
    [count(member.processors), "processors"], [count(member.listeners), "listeners"], [count(member.parked_changes), "waiting"],
  ]);
  redraw(body, rows);
}

function drawKinds(body, { operations, statements }) {
  const row = (group) => (kind) => {
    const now = store.kinds.get(`${group} ${kind.kind}`) ?? 0;
    return [
      [h("strong", {}, group === "statement" ? kind.kind.toUpperCase() : kind.kind.replaceAll("_", " ")), " ", h("span", { class: "tag" }, group)],
      [now > 0 ? `${short(now < 10 ? Math.round(now * 10) / 10 : Math.round(now))}/s` : "", "now"], [count(kind.count), "count"],
      [kind.failed > 0 ? count(kind.failed) : "", "failed"], [kind.p50_us === null ? "" : micros(kind.p50_us), "p50"], [kind.p99_us === null ? "" : micros(kind.p99_us), "p99"],
    ];
  };
  redraw(body, [...operations.map(row("operation")), ...statements.map(row("statement"))]);
}

function drawClients(body, note, { clients, list }) {
  setText(note, clients > list.length ? `${count(list.length)} of ${count(clients)}` : "");
  redraw(body, list.map((client) => [
    [h("strong", {}, client.name || "unnamed"), client.labels.map((label) => [" ", h("span", { class: "tag" }, label)])],
    [`${KINDS[client.kind] ?? client.kind} ${client.version}`], [client.address ?? "in the process"], [count(client.connections), "connections"],
  ]));
}

/** Rows are made anew only if they say something else, so that a selection in them survives. */
export function redraw(body, rows) {
  const made = rows.map(([first, ...others]) => h("tr", {}, h("td", {}, first), others.map(([text, label]) => h("td", { class: label ? `number${text === "" ? " none" : ""}` : null, "data-label": label ?? null }, text))));
  const text = made.map((row) => row.textContent).join("\n");
  if (body.dataset.text === text) return;
  body.dataset.text = text;
  body.replaceChildren(...made);
}
