//! The settings of the member: the root of the file, without maps, security and properties.

use std::net::{IpAddr, Ipv4Addr};

use filbert_hazelcast::{Authentication, MemberAddress};
use filbert_http::{HttpConfig, HttpUser};
use filbert_postgres::{PostgresConfig, PostgresSecret, PostgresUser};

use super::error::Problem;
use super::join::{Join, with_port};
use super::properties::PROPERTIES;
use super::setting::{Kind, SIZE_EXPECTED, Setting, bytes};
use super::tree::{Node, Value, quote};
use super::walk::{NoticeKind, Path, Walk};
use super::{Config, join, map, security};
use crate::config::ClusterConfig;

/// A configuration while it is read. [`Draft::finish`] resolves dependencies between settings.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) config: Config,
    /// The front doors for HTTP and PostgreSQL, and whether each of them stays closed.
    pub(crate) http: HttpConfig,
    pub(crate) http_closed: bool,
    pub(crate) postgres: PostgresConfig,
    pub(crate) postgres_closed: bool,
    /// `hazelcast.socket.bind.any` or `hazelcast.socket.server.bind.any`.
    pub(crate) bind_any: bool,
    /// The first address of `network.interfaces`, if enabled.
    pub(crate) interface: Option<IpAddr>,
    /// `native-memory.capacity`, if native memory is enabled.
    pub(crate) native_memory_bytes: Option<u64>,
    /// `network.join.tcp-ip`.
    pub(crate) join: Join,
    /// `lite-member`.
    pub(crate) is_lite: bool,
    /// The cluster settings of the properties.
    pub(crate) cluster: ClusterConfig,
    /// Settings that are invalid without a memory limit.
    pub(crate) needs_memory_limit: Vec<Problem>,
}

impl Draft {
    /// Resolves dependencies between settings. Also returns the settings that need a memory limit.
    pub(crate) fn finish(self) -> (Config, Vec<Problem>) {
        let Draft { mut config, mut http, mut postgres, .. } = self;
        let members = self.join.addresses(config.door.listen.port());
        if !members.is_empty() || self.is_lite || self.cluster != ClusterConfig::default() {
            let required = self.join.required.as_ref().map(|member| with_port(member, config.door.listen.port()));
            config.cluster = Some(ClusterConfig { members, required, is_lite: self.is_lite, ..self.cluster });
        }
        let everywhere = self.bind_any.then_some(Ipv4Addr::UNSPECIFIED.into());
        if let Some(address) = everywhere.or(self.interface) {
            for listen in [&mut config.door.listen, &mut http.listen, &mut postgres.listen] {
                listen.set_ip(address);
            }
        }
        let users = match &config.door.authentication {
            Authentication::None => Some(Vec::new()),
            Authentication::Users(users) => Some(users.clone()),
            // Only Hazelcast's clients can send tokens. The other front doors accept no tokens, so
            // they stay closed.
            Authentication::Token(_) => None,
        };
        if let Some(users) = users {
            http.users = users.iter().cloned().map(|(name, password)| HttpUser { name, password }).collect();
            let user = |(name, password)| PostgresUser { name, secret: PostgresSecret::Password(password) };
            postgres.users = users.into_iter().map(user).collect();
            config.http = (!self.http_closed).then_some(http);
            config.postgres = (!self.postgres_closed).then_some(postgres);
        }
        if let (None, Some(bytes)) = (config.grid.memory_bytes_max, self.native_memory_bytes) {
            config.grid.memory_bytes_max = Some(saturating(bytes));
        }
        (config, self.needs_memory_limit)
    }
}

/// Converts a number to `usize`. A value beyond the address space is as good as no limit.
pub(crate) fn saturating(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The settings of the root.
pub(crate) const MEMBER: &[Setting<Draft>] = &[
    Setting {
        name: "cluster-name",
        kind: Kind::Text {
            what: "a name",
            get: |draft| draft.config.grid.cluster_name.clone(),
            set: |draft, text| {
                draft.config.grid.cluster_name = text.to_owned();
                !text.is_empty()
            },
        },
        unit: "",
        doc: "The name that clients must know to be let in.",
    },
    Setting {
        name: "instance-name",
        kind: Kind::Text {
            what: "a name",
            get: |draft| draft.config.instance_name.clone().unwrap_or_else(|| "none".to_owned()),
            set: |draft, text| {
                draft.config.instance_name = Some(text.to_owned());
                !text.is_empty()
            },
        },
        unit: "",
        doc: "The member's name in its own log.",
    },
    Setting {
        name: "network.port.port",
        kind: Kind::Whole {
            min: 0,
            max: u16::MAX as u64,
            get: |draft| draft.config.door.listen.port().into(),
            set: |draft, value| draft.config.door.listen.set_port(u16::try_from(value).unwrap_or(u16::MAX)),
        },
        unit: "",
        doc: "The port that clients connect to; 0 takes any free one. In XML it is the text of `port`, and in YAML too \
              it may be written as `port: 5701`.",
    },
    Setting {
        name: "network.port.auto-increment",
        kind: Kind::Flag {
            get: |draft| draft.config.door.port_auto_increment,
            set: |draft, value| draft.config.door.port_auto_increment = value,
        },
        unit: "",
        doc: "Whether the next ports are tried when the port is in use. Not in a cluster.",
    },
    Setting {
        name: "network.port.port-count",
        kind: Kind::Whole {
            min: 1,
            max: u16::MAX as u64,
            get: |draft| draft.config.door.port_count.into(),
            set: |draft, value| draft.config.door.port_count = u16::try_from(value).unwrap_or(u16::MAX),
        },
        unit: "ports",
        doc: "How many ports are tried, the first included.",
    },
    Setting {
        name: "network.public-address",
        kind: Kind::Text {
            what: "a host name or an address such as grid.example.com:5701 or 192.0.2.7, the port optional",
            get: |draft| draft.config.door.public_address.as_ref().map_or_else(|| "none".to_owned(), |a| a.to_string()),
            set: set_public_address,
        },
        unit: "",
        doc: "The address that clients are told to connect to, where it is not the one that this member listens on.",
    },
    Setting {
        name: "network.interfaces",
        kind: Kind::Structure {
            what: "a table with enabled and interfaces",
            default: "127.0.0.1",
            read: read_interfaces,
        },
        unit: "",
        doc: "`enabled` and `interfaces`: the address to listen on, where enabled. One exact address; a pattern such as \
              10.10.1.* is not supported. Without it, only this machine can connect.",
    },
    Setting {
        name: "network.join.tcp-ip",
        kind: Kind::Structure {
            what: "a table with enabled and member-list",
            default: "not enabled",
            read: join::read_tcp_ip,
        },
        unit: "",
        doc: "`enabled`, `member-list` and `required-member`: the members that form a cluster with this one, as `--join`, which wins. Hosts \
              and addresses, the port optional, or ranges such as 10.0.0.4-6. With `required-member`, nobody founds or joins a cluster \
              without that member.",
    },
    Setting {
        name: "lite-member",
        kind: Kind::Structure { what: "a table with enabled", default: "not enabled", read: join::read_lite },
        unit: "",
        doc: "`enabled`: whether this member of a cluster holds no data, and serves clients alone.",
    },
    Setting {
        name: "map",
        kind: Kind::Structure { what: "a table of maps", default: "none", read: read_maps },
        unit: "",
        doc: "Settings of maps by name. A name may hold one `*`, which stands for any text; an exact name wins, then \
              the pattern with the most other characters, then `default`.",
    },
    Setting {
        name: "native-memory",
        kind: Kind::Structure {
            what: "a table with enabled and capacity",
            default: "no limit",
            read: read_native_memory,
        },
        unit: "",
        doc: "`enabled` and `capacity` (`value` and `unit`: BYTES, KILOBYTES, MEGABYTES or GIGABYTES): the memory limit \
              of all maps, as `--memory-max`.",
    },
    Setting {
        name: "security",
        kind: Kind::Structure { what: "a table of settings", default: "not enabled", read: read_security },
        unit: "",
        doc: "Which credentials clients must show; see below.",
    },
    Setting {
        name: "serialization.byte-order",
        kind: Kind::Structure { what: "BIG_ENDIAN", default: "BIG_ENDIAN", read: read_byte_order },
        unit: "",
        doc: "Values stay as the client serialized them; the embedded API reads and writes BIG_ENDIAN.",
    },
    Setting {
        name: "properties",
        kind: Kind::Structure { what: "a table of properties", default: "none", read: read_properties },
        unit: "",
        doc: "Settings with dotted names; see below.",
    },
];

fn set_public_address(draft: &mut Draft, text: &str) -> bool {
    draft.config.door.public_address = MemberAddress::parse(text, draft.config.door.listen.port());
    draft.config.door.public_address.is_some()
}

fn read_interfaces(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let entries = walk.table(path, node)?;
    let enabled = match node.entry("enabled") {
        Some(entry) => walk.flag(&path.child("enabled"), &entry.node)?,
        None => false,
    };
    for entry in entries.iter().filter(|entry| entry.name != "enabled") {
        let path = path.child(&entry.name);
        if entry.name != "interfaces" {
            walk.unknown(&path, entry, &["enabled", "interfaces"]);
            continue;
        }
        let addresses = walk.list(&path, &entry.node)?;
        let Some(first) = addresses.first().filter(|_| enabled) else { continue };
        let text = walk.text(&path, first, "an address")?;
        draft.interface = text.parse().ok();
        if draft.interface.is_none() {
            let reason = "a pattern of addresses; name one address, here or with --listen";
            walk.note(&path, first.position, NoticeKind::Unsupported, reason);
        }
        if let Some(second) = addresses.get(1) {
            walk.note(&path, second.position, NoticeKind::Unsupported, "only the first address counts");
        }
    }
    Ok(())
}

fn read_maps(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let entries = walk.table(path, node)?;
    for (index, entry) in entries.iter().enumerate() {
        let path = path.named(&entry.name);
        walk.once(&path, entries, index)?;
        if entry.name.matches('*').count() > 1 {
            let place = Node::new(entry.position, Value::Empty);
            let found = format!("the name {}", quote(&entry.name));
            return Err(walk.found(&path, &place, found, "at most one * in a name".to_owned()));
        }
        let map = map::read(walk, &path, &entry.node)?;
        if map.eviction.policy != filbert_grid::EvictionPolicy::None
            && map.eviction.max_size_policy.needs_memory_limit()
        {
            let place = Node::new(entry.position, Value::Empty);
            let path = path.child("eviction.max-size-policy");
            let found = map.eviction.max_size_policy.name().to_owned();
            let expected = "a memory limit beside it (--memory-max)".to_owned();
            draft.needs_memory_limit.push(walk.found(&path, &place, found, expected));
        }
        if map.eviction.max_size_policy.is_percentage() && map.eviction.size > 100 {
            let place = Node::new(entry.position, Value::Empty);
            let found = map.eviction.size.to_string();
            return Err(walk.found(&path.child("eviction.size"), &place, found, "a percentage up to 100".to_owned()));
        }
        draft.config.grid.maps.insert(entry.name.clone(), map);
    }
    Ok(())
}

fn read_native_memory(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let mut memory = NativeMemory::default();
    walk.section(path, node, NATIVE_MEMORY, &mut memory)?;
    if memory.enabled {
        draft.native_memory_bytes = Some(memory.bytes);
    }
    Ok(())
}

struct NativeMemory {
    enabled: bool,
    bytes: u64,
}

impl Default for NativeMemory {
    fn default() -> NativeMemory {
        // Hazelcast's defaults: disabled, and 512 MB.
        NativeMemory { enabled: false, bytes: 512 << 20 }
    }
}

const NATIVE_MEMORY: &[Setting<NativeMemory>] = &[
    Setting {
        name: "enabled",
        kind: Kind::Flag { get: |memory| memory.enabled, set: |memory, value| memory.enabled = value },
        unit: "",
        doc: "Whether the capacity counts.",
    },
    Setting {
        name: "capacity",
        kind: Kind::Structure { what: SIZE_EXPECTED, default: "512MiB", read: read_capacity },
        unit: "",
        doc: "The limit.",
    },
    Setting {
        name: "size",
        kind: Kind::Structure { what: SIZE_EXPECTED, default: "512MiB", read: read_capacity },
        unit: "",
        doc: "What older versions call the capacity.",
    },
];

fn read_capacity(memory: &mut NativeMemory, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    if let Value::Text(_) = &node.value {
        let text = walk.text(path, node, SIZE_EXPECTED)?;
        let amount = bytes(&text).ok_or_else(|| walk.found(path, node, quote(&text), SIZE_EXPECTED.to_owned()))?;
        memory.bytes = amount;
        return Ok(());
    }
    let mut capacity = Capacity { value: 512, shift: 20 };
    walk.section(path, node, CAPACITY, &mut capacity)?;
    memory.bytes = capacity.value.saturating_mul(1 << capacity.shift);
    Ok(())
}

struct Capacity {
    value: u64,
    shift: u32,
}

const UNITS: &[(&str, u32)] = &[("BYTES", 0), ("KILOBYTES", 10), ("MEGABYTES", 20), ("GIGABYTES", 30)];

const CAPACITY: &[Setting<Capacity>] = &[
    Setting {
        name: "value",
        kind: Kind::Whole {
            min: 0,
            max: i64::MAX as u64,
            get: |capacity| capacity.value,
            set: |capacity, value| capacity.value = value,
        },
        unit: "in `unit`",
        doc: "How many of the unit.",
    },
    Setting {
        name: "unit",
        kind: Kind::Choice {
            of: &["BYTES", "KILOBYTES", "MEGABYTES", "GIGABYTES"],
            get: |capacity| UNITS.iter().find(|unit| unit.1 == capacity.shift).map_or("BYTES", |unit| unit.0),
            set: |capacity, word| {
                capacity.shift = UNITS.iter().find(|unit| unit.0 == word).map_or(0, |unit| unit.1);
            },
        },
        unit: "",
        doc: "What the value counts.",
    },
];

fn read_security(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    draft.config.door.authentication = security::read(walk, path, node)?.into_authentication();
    Ok(())
}

fn read_byte_order(_: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let text = walk.text(path, node, "BIG_ENDIAN")?;
    if !text.eq_ignore_ascii_case("BIG_ENDIAN") {
        let reason = "the embedded API reads and writes BIG_ENDIAN";
        walk.note(path, node.position, NoticeKind::Unsupported, reason);
    }
    Ok(())
}

fn read_properties(draft: &mut Draft, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    walk.section(path, node, PROPERTIES, draft)
}
