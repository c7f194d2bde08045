//! The configuration of this run: the file, then the variables, then the flags.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use filbert::config::{Loaded, Loader, NoticeKind};
use tracing::{info, warn};

use super::args::{Args, Door, Listen};
use super::failure::Failure;
use super::memory;

/// Reads the configuration that the command line asks for.
pub(crate) fn load(args: &Args) -> Result<Loaded, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    let loader = Loader::new(&environment);
    let read = match &args.config {
        Some(path) => loader.file(path),
        None => loader.search(Path::new(".")),
    };
    let mut loaded = read.map_err(Failure::Config)?;
    apply_flags(args, &mut loaded);
    if args.strict {
        loaded.strict().map_err(Failure::Config)?;
    }
    loaded.check().map_err(Failure::Config)?;
    Ok(loaded)
}

fn apply_flags(args: &Args, loaded: &mut Loaded) {
    let config = &mut loaded.config;
    if let Some(listen) = args.listen {
        config.door.listen.set_ip(listen.address);
        if let Some(port) = listen.port {
            // Who names a port means that port.
            config.door.listen.set_port(port);
            config.door.port_auto_increment = false;
        }
    }
    if let Some(http) = &mut config.http {
        door_address(&mut http.listen, &mut http.port_auto_increment, args.listen, args.http);
    }
    if let Some(postgres) = &mut config.postgres {
        door_address(&mut postgres.listen, &mut postgres.port_auto_increment, args.listen, args.postgres);
    }
    if args.http == Some(Door::Closed) {
        config.http = None;
    }
    if args.postgres == Some(Door::Closed) {
        config.postgres = None;
    }
    if let Some(name) = &args.cluster_name {
        config.grid.cluster_name.clone_from(name);
    }
    config.grid.memory_bytes_max = args.memory_max.or(config.grid.memory_bytes_max).or_else(memory::default_limit);
    if let Some(threads) = args.threads {
        config.threads = Some(usize::from(threads));
    }
}

/// The address of one of the other doors: its own flag's, else that of the flag for all, whose port 0 counts for all.
fn door_address(address: &mut SocketAddr, tries_next: &mut bool, all: Option<Listen>, own: Option<Door>) {
    if let Some(all) = all {
        address.set_ip(all.address);
        if all.port == Some(0) {
            address.set_port(0);
        }
    }
    let Some(Door::Open(own)) = own else { return };
    address.set_ip(own.address);
    if let Some(port) = own.port {
        address.set_port(port);
        *tries_next = false;
    }
}

/// Logs what the file says without an effect, one line each.
pub(crate) fn log_notices(loaded: &Loaded) {
    for notice in &loaded.notices {
        match notice.kind {
            NoticeKind::Unsupported => warn!("{}: {notice}", loaded.file),
            NoticeKind::NotNeeded => info!("{}: {notice}", loaded.file),
        }
    }
}

/// What `--check-config` prints.
pub(crate) fn report(loaded: &Loaded) -> String {
    let mut text = String::new();
    for notice in &loaded.notices {
        let _ = writeln!(text, "{}: {notice}", loaded.file);
    }
    let _ = writeln!(text, "{}", summary(loaded));
    text
}

/// One line about where the settings come from.
pub(crate) fn summary(loaded: &Loaded) -> String {
    if loaded.file.is_empty() {
        return "no configuration file: every setting has its default unless a flag or a variable says otherwise"
            .to_owned();
    }
    let unsupported = loaded.notices.iter().filter(|notice| notice.kind == NoticeKind::Unsupported).count();
    match unsupported {
        0 => format!("{}: everything in it is supported", loaded.file),
        1 => format!("{}: usable; 1 setting is not supported", loaded.file),
        count => format!("{}: usable; {count} settings are not supported", loaded.file),
    }
}
