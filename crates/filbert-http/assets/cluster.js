// The cluster as this member knows it: its members, and who leads and holds each group of partitions.

import { h, setText } from "./dom.js";
import { ago, bytes, count } from "./format.js";
import { drawWarnings, heads, redraw } from "./overview.js";
import { store } from "./status.js";

export function view() {
  const subtitle = h("p", {}, "");
  const warnings = h("div", { class: "warnings" });
  const members = h("tbody");
  const groups = h("tbody");
  const note = h("span", { class: "note" });
  const panel = (name, note, table) => h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, name), note), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table));
  const node = h("div", { class: "view" },
    h("div", { class: "view-head" }, h("div", {}, h("h1", { tabindex: "-1" }, "Cluster"), subtitle)),
    warnings,
    panel("Members", null, h("table", { class: "stack" }, heads("Member", "State", "Address", "Clients at", "#Leads", "#Votes in", "Known since", "Heard of"), members)),
    panel("Groups of partitions", note, h("table", { class: "stack" }, heads("Group", "Leader", "Voters", "Learners", "To be held by", "#Lag", "#Log", "#Entries"), groups)));

  function update() {
    const { status } = store;
    if (!status) return;
    const { membership } = status;
    if (!membership) {
      setText(subtitle, "This member is alone: it was started without --join");
      return;
    }
    const { held, wanted } = membership.replicas;
    setText(subtitle, `Seen from member ${membership.member} · ${count(membership.members.length)} members · each group is held by ${held} that answer, wanted ${wanted}`);
    setText(note, "entries that the farthest voter has still to get; bytes of the log that the leader keeps");
    drawWarnings(warnings, membership.warnings);
    redraw(members, membership.members.map((member) => row(member, status.now_ms)));
    redraw(groups, membership.groups.map(group));
  }

  update();
  return { node, title: "Cluster", update };
}

function row(member, now) {
  const heard = member.silent_ms === null ? "this one" : ago(now - member.silent_ms, now);
  return [
    [h("strong", {}, String(member.id)), " ", h("span", { class: "note mono wide" }, member.uuid.slice(0, 8)), member.lite ? h("span", { class: "tag" }, "lite") : ""],
    [member.state === "active" ? member.state : h("span", { class: "tag" }, member.state)], [member.address], [member.client_address],
    [count(member.leads), "leads"], [count(member.votes), "votes in"], [ago(now - member.known_ms, now)], [heard],
  ];
}

function group(group) {
  const ids = (replicas) => replicas.map((replica) => replica.member).join(", ");
  const lags = group.voters.map((replica) => replica.lag).filter((lag) => lag !== null);
  return [
    [h("strong", {}, group.group), group.changing ? h("span", { class: "tag" }, "changing") : ""],
    [group.leader === null ? h("span", { class: "tag" }, "nobody") : String(group.leader)],
    [ids(group.voters)], [ids(group.learners)], [group.wanted.join(", ")],
    [lags.length === 0 ? "" : count(Math.max(...lags)), "lag"], [bytes(group.log_bytes), "log"], [count(group.committed), "entries"],
  ];
}
