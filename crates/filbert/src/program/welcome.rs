//! The start message for the user: listen addresses, settings, and connection examples.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use filbert::config::Loaded;

use super::settings;

/// The listen addresses of the member.
pub(crate) struct Doors {
    pub(crate) hazelcast: SocketAddr,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) postgres: Option<SocketAddr>,
}

/// The parts of the message that are known before the address is known.
pub(crate) struct Welcome {
    cluster_name: String,
    memory: String,
    partitions: u32,
    settings: String,
}

impl Welcome {
    pub(crate) fn new(loaded: &Loaded) -> Welcome {
        let grid = &loaded.config.grid;
        let memory = grid.memory_bytes_max.map_or_else(
            || "no memory limit".to_owned(),
            |bytes| format!("at most {} of data", filbert::format_bytes(bytes as u64)),
        );
        Welcome {
            cluster_name: grid.cluster_name.clone(),
            memory,
            partitions: grid.partition_count,
            settings: settings::summary(loaded),
        }
    }

    /// The text for standard output. Its last line begins with `ready:` and ends with the address,
    /// so that programs can parse it. The preceding lines that begin with `serves:` contain the
    /// addresses of the other front doors.
    pub(crate) fn text(&self, doors: &Doors) -> String {
        let address = doors.hazelcast;
        let version = env!("CARGO_PKG_VERSION");
        let Welcome { cluster_name, memory, partitions, settings } = self;
        let connect = reachable(address);
        let mut text = format!(
            "Filbert {version} serves Hazelcast clients on {address}: cluster {cluster_name:?}, {partitions} \
             partitions, {memory}\n{settings}\n\n"
        );
        let _ = write!(
            text,
            "  Python   pip install hazelcast-python-client\n           \
             client = hazelcast.HazelcastClient(cluster_name={cluster_name:?}, cluster_members=[\"{connect}\"])\n           \
             client.get_map(\"greetings\").blocking().put(\"hello\", \"world\")\n\n  \
             Java     var config = new ClientConfig().setClusterName({cluster_name:?});\n           \
             config.getNetworkConfig().addAddress(\"{connect}\");\n           \
             HazelcastClient.newHazelcastClient(config).getMap(\"greetings\").put(\"hello\", \"world\");\n\n"
        );
        if let Some(http) = doors.http.map(reachable) {
            let _ = write!(text, "  Browser  http://{http}/\n  CrateDB  crash --hosts http://{http}\n");
        }
        if let Some(postgres) = doors.postgres.map(reachable) {
            let (host, port) = (postgres.ip(), postgres.port());
            let _ = write!(
                text,
                "  psql     psql -h {host} -p {port} -d filbert\n  SQL      filbert sql --host {postgres}\n"
            );
        }
        if doors.http.is_some() || doors.postgres.is_some() {
            text.push('\n');
        }
        if address.ip().is_loopback() {
            text.push_str("Only this machine can connect; --listen 0.0.0.0 serves others. ");
        }
        text.push_str("Ctrl-C ends.\n");
        if let Some(http) = doors.http {
            let _ = writeln!(text, "serves: HTTP on {http}");
        }
        if let Some(postgres) = doors.postgres {
            let _ = writeln!(text, "serves: PostgreSQL on {postgres}");
        }
        let _ = writeln!(text, "ready: Hazelcast clients on {address}");
        text
    }
}

/// The address for connections from this machine. If the server listens on every address, it is the
/// loopback address.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(_) => (Ipv6Addr::LOCALHOST, address.port()).into(),
    }
}
