//! The environment of a run. It is printed before every experiment and stored in the experiment's
//! file, because figures are meaningless without it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Facts about the machine and the programs, from name to text, sorted by name.
pub type Environment = BTreeMap<String, String>;

/// Collects the available facts. Unavailable facts are omitted.
pub fn collect() -> Environment {
    let mut facts = Environment::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    add("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    add("processor", proc_field("/proc/cpuinfo", "model name"));
    add("memory", proc_field("/proc/meminfo", "MemTotal"));
    add("kernel", fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()));
    add("load average", fs::read_to_string("/proc/loadavg").ok().map(|text| text.trim().to_owned()));
    add("rustc", output("rustc", &["--version"]));
    add("java", output("java", &["-version"]));
    add("commit", output("git", &["rev-parse", "--short=12", "HEAD"]));
    add("uncommitted files", output("git", &["status", "--porcelain"]).map(|text| text.lines().count().to_string()));
    add("generator", Some(format!("filbert-bench {}", env!("CARGO_PKG_VERSION"))));
    facts
}

/// The value of the first line `name : value` of a file under /proc.
fn proc_field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns the output of a command, if it succeeds. For `java -version` it is the first line of
/// standard error.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = if output.stdout.is_empty() {
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
    } else {
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let facts = collect();
        for name in ["cores", "memory", "kernel", "generator"] {
            assert!(facts.contains_key(name), "{name} is missing in {facts:?}");
        }
    }
}
