//! `network.join` and `lite-member`: the members of the cluster. Other discovery methods are
//! reported as unsupported.

use std::net::{IpAddr, Ipv4Addr};

use super::error::Problem;
use super::member::Draft;
use super::tree::{Node, quote};
use super::walk::{NoticeKind, Path, Walk};

/// The maximum number of listed members, with ranges expanded. Every member contacts every other
/// member until the cluster is formed.
const MEMBERS_MAX: usize = 256;

/// The cluster settings of the file.
#[derive(Debug, Default)]
pub(crate) struct Join {
    /// Whether the member list is enabled.
    pub(crate) enabled: bool,
    /// Hosts, with or without a port.
    pub(crate) members: Vec<String>,
    /// The member that must be present when the cluster is founded or joined.
    pub(crate) required: Option<String>,
}

impl Join {
    /// Returns the members, each with a port. Empty if joining is not enabled.
    pub(crate) fn addresses(&self, port: u16) -> Vec<String> {
        let mut members: Vec<String> = Vec::new();
        for member in self.members.iter().chain(&self.required).filter(|_| self.enabled) {
            let member = with_port(member, port);
            if !members.contains(&member) {
                members.push(member);
            }
        }
        members
    }
}

/// Returns a host or an address with its own port, or else with the given port.
pub fn with_port(member: &str, port: u16) -> String {
    if let Ok(ip) = member.trim_matches(['[', ']']).parse::<IpAddr>() {
        return std::net::SocketAddr::new(ip, port).to_string();
    }
    match member.rsplit_once(':') {
        Some((_, digits)) if digits.parse::<u16>().is_ok() => member.to_owned(),
        _ => format!("{member}:{port}"),
    }
}

/// Reads `network.join.tcp-ip`.
pub(crate) fn read_tcp_ip(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    const NAMES: [&str; 4] = ["enabled", "member-list", "members", "required-member"];
    let entries = walk.table(path, node)?;
    let join = &mut draft.join;
    join.enabled = match node.entry("enabled") {
        Some(entry) => walk.flag(&path.child("enabled"), &entry.node)?,
        None => false,
    };
    if !join.enabled {
        return Ok(());
    }
    for entry in entries {
        let path = path.child(&entry.name);
        match entry.name.as_str() {
            "enabled" => {}
            "member-list" | "members" => {
                // In XML the list has a `members` child.
                let list = entry.node.entry("members").map_or(&entry.node, |inner| &inner.node);
                for item in walk.list(&path, list)? {
                    let text = walk.text(&path, item, "members")?;
                    for member in text.split([',', ';', ' ']).map(str::trim).filter(|member| !member.is_empty()) {
                        let members =
                            counted_out(member).map_err(|expected| walk.found(&path, item, quote(member), expected))?;
                        join.members.extend(members);
                    }
                    if join.members.len() > MEMBERS_MAX {
                        let found = format!("{} members", join.members.len());
                        return Err(walk.found(&path, item, found, format!("at most {MEMBERS_MAX}")));
                    }
                }
            }
            "required-member" => {
                let text = walk.text(&path, &entry.node, "a member's address")?;
                join.required = Some(text.trim().to_owned()).filter(|member| !member.is_empty());
            }
            "connection-timeout-seconds" => {
                let reason = "members are greeted until they answer";
                walk.note(&path, entry.position, NoticeKind::NotNeeded, reason);
            }
            _ => walk.unknown(&path, entry, &NAMES),
        }
    }
    if join.members.is_empty() && join.required.is_none() {
        let reason = "it names no member: this one stays alone";
        walk.note(path, node.position, NoticeKind::Unsupported, reason);
    }
    Ok(())
}

/// Expands an entry of the list: to the entry itself, or to the addresses of a range such as
/// `10.0.0.4-6:5701`.
fn counted_out(member: &str) -> Result<Vec<String>, String> {
    let (host, port) = match member.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.contains(':') => (host, format!(":{port}")),
        _ => (member, String::new()),
    };
    let octets: Vec<&str> = host.split('.').collect();
    let [a, b, c, last] = octets.as_slice() else { return Ok(vec![member.to_owned()]) };
    let number = |text: &str| text.parse::<u8>().ok();
    let (Some(a), Some(b), Some(c)) = (number(a), number(b), number(c)) else {
        let is_pattern =
            octets.iter().all(|octet| octet.chars().all(|char| char.is_ascii_digit() || "*-".contains(char)));
        return if is_pattern { Err(expected()) } else { Ok(vec![member.to_owned()]) };
    };
    if number(last).is_some() {
        return Ok(vec![member.to_owned()]);
    }
    let range = last.split_once('-').and_then(|(from, to)| Some(number(from)?..=number(to)?));
    match range.filter(|range| !range.is_empty()) {
        Some(range) => Ok(range.map(|d| format!("{}{port}", Ipv4Addr::new(a, b, c, d))).collect()),
        None if last.starts_with(|char: char| char.is_ascii_digit() || char == '*') => Err(expected()),
        None => Ok(vec![member.to_owned()]),
    }
}

fn expected() -> String {
    "a host, an address, or a range of the last number such as 10.0.0.4-6: most of the members that are named have to be there when \
     the cluster is founded, so it must be clear which they are"
        .to_owned()
}

/// Reads `lite-member`.
pub(crate) fn read_lite(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for entry in walk.table(path, node)? {
        let path = path.child(&entry.name);
        if entry.name == "enabled" {
            draft.is_lite = walk.flag(&path, &entry.node)?;
        } else {
            walk.unknown(&path, entry, &["enabled"]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_out_and_names_stay() {
        let check = |member: &str, expect: &[&str]| assert_eq!(counted_out(member).unwrap(), expect, "{member}");
        check("10.0.0.4-6", &["10.0.0.4", "10.0.0.5", "10.0.0.6"]);
        check("10.0.0.4-5:5702", &["10.0.0.4:5702", "10.0.0.5:5702"]);
        check("10.0.0.4:5702", &["10.0.0.4:5702"]);
        check("db-1.example.com:5702", &["db-1.example.com:5702"]);
        check("a.b.c.d-e", &["a.b.c.d-e"]);
        check("[::1]:5701", &["[::1]:5701"]);
        check("::1", &["::1"]);
        for pattern in ["10.0.0.*", "10.0.*.1", "10.0.0.6-4", "10.0.0.4-", "10.0.0-3.1", "10.0.0.300"] {
            assert!(counted_out(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn members_have_ports_and_are_named_once() {
        let join = Join {
            enabled: true,
            members: ["a", "b:5702", "::1", "[::2]:9", "a:5701"].map(str::to_owned).to_vec(),
            required: Some("b:5702".to_owned()),
        };
        assert_eq!(join.addresses(5_701), ["a:5701", "b:5702", "[::1]:5701", "[::2]:9"]);
        assert!(Join { enabled: false, ..join }.addresses(5_701).is_empty());
    }
}
