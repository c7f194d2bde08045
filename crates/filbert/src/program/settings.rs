//! The configuration of this run: the file, then the variables, then the flags.

use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use filbert::DoorConfig;
use filbert::config::{ClusterConfig, Loaded, Loader, MEMBER_PORT, NoticeKind};
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
    loaded.config.cluster = cluster(args, &mut loaded.config.door)?;
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

/// How the flags say that this member is one of a cluster. Its clients' port must be known before it joins: the next free one is not taken.
fn cluster(args: &Args, door: &mut DoorConfig) -> Result<Option<ClusterConfig>, Failure> {
    if args.join.is_empty() {
        return Ok(None);
    }
    door.port_auto_increment = false;
    if door.listen.port() == 0 {
        // A port that is free now.
        let free = TcpListener::bind(door.listen).and_then(|free| free.local_addr()).map_err(Failure::Port)?;
        door.listen.set_port(free.port());
    }
    let mut cluster = ClusterConfig::default();
    cluster.listen.set_ip(args.member_listen.map_or(door.listen.ip(), |listen| listen.address));
    if let Some(port) = args.member_listen.and_then(|listen| listen.port) {
        cluster.listen.set_port(port);
    }
    let with_port = |address: &String| match address.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => address.clone(),
        _ => format!("{address}:{MEMBER_PORT}"),
    };
    cluster.members = args.join.iter().map(with_port).collect();
    cluster.public_address.clone_from(&args.member_address);
    cluster.replicas = args.replicas.unwrap_or(cluster.replicas);
    if let Some(path) = &args.secret_file {
        let failed = |source| Failure::Secret { path: path.clone(), source };
        let secret = std::fs::read(path).map_err(failed)?;
        cluster.secret = Some(secret.trim_ascii().to_vec());
    }
    Ok(Some(cluster))
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
