//! Prints the table of supported messages in Markdown, from the table of messages and the table of
//! handlers. The README contains this output; `cargo xtask fix` inserts it.

#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, HashMap};

use filbert_hazelcast::{Support, support};
use filbert_wire::table;

/// The messages of one service, by their support.
#[derive(Default)]
struct Service {
    served: Vec<String>,
    refused: BTreeMap<&'static str, Vec<String>>,
    absent: usize,
}

fn main() {
    let mut supports: HashMap<_, _> = support().collect();
    let mut order = Vec::new();
    let mut services: HashMap<&str, Service> = HashMap::new();
    for spec in table::all() {
        let service = services.entry(spec.service).or_insert_with(|| {
            order.push(spec.service);
            Service::default()
        });
        let full = spec.to_string();
        let method = full.rsplit('.').next().unwrap_or(&full).to_owned();
        match supports.remove(&spec.id).unwrap_or(Support::NotServed) {
            Support::Served => service.served.push(method),
            Support::Refused(reason) => service.refused.entry(reason).or_default().push(method),
            Support::NotServed => service.absent += 1,
        }
    }

    println!("| service | served | refused, and why |");
    println!("|---|---|---|");
    let mut absent = Vec::new();
    for name in order {
        let Some(service) = services.get(name) else { continue };
        let refused: usize = service.refused.values().map(Vec::len).sum();
        if service.served.is_empty() && refused == 0 {
            absent.push(format!("{name} ({})", service.absent));
            continue;
        }
        let total = service.served.len() + refused + service.absent;
        let reasons = service.refused.iter().map(|(reason, methods)| format!("{reason}: {}", methods.join(", ")));
        let mut reasons: Vec<String> = reasons.collect();
        if service.absent > 0 {
            reasons.push(format!("not there yet: {} messages", service.absent));
        }
        println!("| {name} | {} of {total} messages | {} |", service.served.len(), reasons.join("; "));
    }
    if !absent.is_empty() {
        println!("\n{}", wrapped(&format!("Not there yet, with the number of messages: {}.", absent.join(", "))));
    }
}

/// A paragraph in lines of 100 columns.
fn wrapped(text: &str) -> String {
    const COLUMNS: usize = 100;
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > COLUMNS {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}
