//! The cluster and its one node.

use std::fmt::Write;

use filbert_functions::push_json_text;

use super::super::relation::{Rows, row};
use super::super::scene::Scene;
use crate::session::CRATE_VERSION;

/// A JSON object under construction.
struct Object(String);

impl Object {
    fn new() -> Object {
        Object("{".to_owned())
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_json_text(key, &mut self.0);
        self.0.push(':');
    }

    fn text(mut self, key: &str, value: &str) -> Object {
        self.key(key);
        push_json_text(value, &mut self.0);
        self
    }

    fn number(mut self, key: &str, value: impl std::fmt::Display) -> Object {
        self.key(key);
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    fn object(mut self, key: &str, value: Object) -> Object {
        self.key(key);
        self.0.push_str(&value.end());
        self
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn cluster(scene: &Scene, rows: &mut Rows<'_>) {
    let Ok(grid) = scene.server.tables.grid() else { return };
    let stats = Object::new().number("enabled", true).number("jobs_log_size", scene.server.jobs.log_max());
    row!(rows,
        id: grid.cluster_id().to_string(),
        name: grid.cluster_name(),
        master_node: scene.node_id(),
        settings: Object::new().object("stats", stats).end(),
    );
}

pub(super) fn nodes(scene: &Scene, rows: &mut Rows<'_>) {
    let Ok(grid) = scene.server.tables.grid() else { return };
    let statistics = grid.statistics();
    let machine = Machine::read();
    let used = statistics.memory_bytes;
    let max = statistics.memory_bytes_max.unwrap_or(machine.memory_bytes);
    let uptime_ms = (chrono::Utc::now() - scene.server.started).num_milliseconds();
    let heap = Object::new().number("free", max.saturating_sub(used)).number("max", max).number("used", used);
    let mem = Object::new()
        .number("free", machine.free_bytes)
        .number("used", machine.memory_bytes.saturating_sub(machine.free_bytes))
        .number("free_percent", percent(machine.free_bytes, machine.memory_bytes))
        .number("used_percent", 100 - percent(machine.free_bytes, machine.memory_bytes));
    let [one, five, fifteen] = machine.loads;
    // There is no Java, but tools read these members.
    let runtime = Object::new()
        .text("name", "none")
        .text("version", "none")
        .text("vm_name", "none")
        .text("vm_vendor", "none")
        .text("vm_version", "none");
    let os_info = Object::new()
        .text("name", std::env::consts::OS)
        .text("version", &machine.release)
        .text("arch", std::env::consts::ARCH)
        .number("available_processors", std::thread::available_parallelism().map_or(1, usize::from))
        .object("jvm", runtime);
    let connections = Object::new().number("open", statistics.connections).number("total", statistics.connections);
    row!(rows,
        id: scene.node_id(),
        name: scene.node_name(),
        hostname: &machine.hostname,
        rest_url: "",
        version: Object::new().text("number", CRATE_VERSION).number("build_snapshot", false).end(),
        heap: heap.end(),
        mem: mem.end(),
        load: Object::new().number("1", one).number("5", five).number("15", fifteen).end(),
        os: Object::new().number("uptime", machine.uptime_ms).number("timestamp", chrono::Utc::now().timestamp_millis()).end(),
        os_info: os_info.end(),
        process: Object::new().number("uptime", uptime_ms).number("memory", used).end(),
        connections: Object::new().object("http", connections).end(),
        attributes: "{}",
        thread_pools: "[]",
        network: "{}",
        fs: "{}",
        port: "{}",
    );
}

pub(super) fn users(scene: &Scene, rows: &mut Rows<'_>) {
    row!(rows, name: scene.user());
}

fn percent(part: usize, of: usize) -> usize {
    part.saturating_mul(100).checked_div(of).unwrap_or(0)
}

/// Facts from the operating system; empty where it reports nothing.
#[derive(Default)]
struct Machine {
    hostname: String,
    release: String,
    memory_bytes: usize,
    free_bytes: usize,
    uptime_ms: u64,
    loads: [f64; 3],
}

impl Machine {
    fn read() -> Machine {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let kilobytes = |name: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse::<usize>().ok()
        };
        let uptime = text("/proc/uptime");
        let seconds = uptime.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0);
        let loads = text("/proc/loadavg");
        let mut loads = loads.split_whitespace().map(|number| number.parse::<f64>().unwrap_or(0.0));
        let mut load = || loads.next().unwrap_or(0.0);
        Machine {
            hostname: text("/proc/sys/kernel/hostname").trim().to_owned(),
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: kilobytes("MemTotal").unwrap_or(0).saturating_mul(1024),
            free_bytes: kilobytes("MemAvailable").unwrap_or(0).saturating_mul(1024),
            uptime_ms: (seconds * 1e3) as u64,
            loads: [load(), load(), load()],
        }
    }
}
