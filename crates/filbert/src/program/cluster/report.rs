//! Formats the status of a cluster as tables.

use std::fmt::Write;

use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use serde_json::Value;

/// Members, groups and warnings. Groups with equal content share a line, unless all groups are
/// requested.
pub(super) fn text(status: &Value, all_groups: bool) -> String {
    let mut text = String::new();
    let word = |key: &str| status[key].as_str().unwrap_or_default();
    let [held, wanted] =
        ["/replicas/held", "/replicas/wanted"].map(|path| status.pointer(path).unwrap_or(&Value::Null));
    let _ = writeln!(
        text,
        "Cluster {:?} {}, seen from member {}: each group is held by {held} members that answer, wanted {wanted}",
        word("name"),
        word("id"),
        status["member"],
    );
    let _ = writeln!(text, "{}", members(status));
    let _ = writeln!(text, "{}", groups(status, all_groups));
    for warning in status["warnings"].as_array().into_iter().flatten() {
        let part = |key: &str| warning[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "{}: {}. {}", part("level"), part("title"), part("text"));
    }
    text
}

fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(head);
    table
}

fn members(status: &Value) -> Table {
    let mut table =
        table(&["member", "state", "address", "clients at", "leads", "votes in", "known for", "silent for", "uuid"]);
    for member in status["members"].as_array().into_iter().flatten() {
        let part = |key: &str| member[key].as_str().unwrap_or_default().to_owned();
        let lite = if member["lite"] == true { ", lite" } else { "" };
        let silent = member["silent_ms"].as_u64().map_or_else(|| "this one".to_owned(), duration);
        table.add_row([
            member["id"].to_string(),
            part("state") + lite,
            part("address"),
            part("client_address"),
            member["leads"].to_string(),
            member["votes"].to_string(),
            member["known_ms"].as_u64().map_or_else(String::new, duration),
            silent,
            part("uuid"),
        ]);
    }
    table
}

/// A row of the table of groups, without the name.
fn line(group: &Value) -> [String; 5] {
    let replicas = |key: &str| {
        let one = |replica: &Value| match replica["lag"].as_u64() {
            Some(0) => replica["member"].to_string(),
            Some(lag) => format!("{} (-{lag})", replica["member"]),
            None => format!("{} (?)", replica["member"]),
        };
        group[key].as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join(" ")
    };
    let ids =
        |key: &str| group[key].as_array().into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let changing = if group["changing"] == true { " (changing)" } else { "" };
    let leader = group["leader"].as_u64().map_or_else(|| "nobody".to_owned(), |leader| leader.to_string());
    [leader, replicas("voters") + changing, replicas("learners"), ids("wanted"), group["term"].to_string()]
}

fn groups(status: &Value, all: bool) -> Table {
    let mut table = table(&["group", "leader", "voters (lag)", "learners (lag)", "wanted", "term"]);
    let groups = status["groups"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<(Vec<String>, [String; 5])> = Vec::new();
    for group in &groups {
        let (name, line) = (group["group"].as_str().unwrap_or_default().to_owned(), line(group));
        match lines.iter_mut().find(|(names, other)| !all && *other == line && names.iter().all(|n| n != "registry")) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], line)),
        }
    }
    for (names, line) in lines {
        table.add_row([names.join(" ")].into_iter().chain(line));
    }
    table
}

/// Formats a duration for people.
fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Encodes base64, for the name and the password of a user.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, at| (word << 8) | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4_usize {
            let digit = DIGITS.get((word >> (18 - 6 * at)) as usize & 63).copied().unwrap_or(b'=');
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_short() {
        let said = [7, 1_000, 119_999, 120_000, 7_200_000, 200_000_000].map(duration);
        assert_eq!(said, ["7 ms", "1 s", "119 s", "2 min", "2 h", "2 d"]);
    }

    #[test]
    fn base64_is_as_in_the_rfc() {
        let said = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(said, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn groups_that_are_alike_are_one_line() {
        let group = |name: &str, leader: Option<u64>| {
            json!({"group": name, "leader": leader, "term": 2, "wanted": [1, 2], "learners": [], "changing": false,
                "voters": [{"member": 1, "lag": 0}, {"member": 2, "lag": 7}]})
        };
        let groups = [group("registry", Some(1)), group("0", Some(1)), group("1", Some(1)), group("2", None)];
        let status = json!({
            "name": "dev", "id": "x", "member": 1, "replicas": {"wanted": 3, "held": 2}, "groups": groups,
            "members": [{"id": 1, "state": "active", "lite": true, "address": "a:1", "client_address": "a:2", "known_ms": 5_000,
                "silent_ms": null, "leads": 1, "votes": 2, "uuid": "u"}],
            "warnings": [{"level": "critical", "title": "So it is", "text": "Do something."}],
        });
        let text = text(&status, false);
        let has = |pieces: &[&str]| {
            let found = text
                .lines()
                .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").contains(&pieces.join(" ")));
            assert!(found, "{pieces:?} in\n{text}");
        };
        has(&["0 1 1 1 2 (-7) 1 2 2"]);
        has(&["2 nobody 1 2 (-7)"]);
        has(&["active, lite"]);
        has(&["critical: So it is. Do something."]);
    }
}
