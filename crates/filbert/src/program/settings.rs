//! The configuration of this run: the file, overridden by environment variables, overridden by
//! flags.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use filbert::config::{ClusterConfig, Loaded, Loader, MEMBER_PORT, NoticeKind, TlsFiles, with_port};
use filbert::{Config, MapConfig};
use tracing::{info, warn};

use super::args::{Args, Door, Listen};
use super::failure::Failure;
use super::memory;

/// Reads the configuration that the command line selects.
pub(crate) fn load(args: &Args) -> Result<Loaded, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    let loader = Loader::new(&environment);
    let read = match &args.config {
        Some(path) => loader.file(path),
        None => loader.search(Path::new(".")),
    };
    let mut loaded = read.map_err(Failure::Config)?;
    apply_flags(args, &mut loaded);
    loaded.config.cluster = cluster(args, &mut loaded.config)?;
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
            // An explicit port is used exactly.
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

/// The cluster settings from the file and the flags. Flags override the file. The client port must
/// be known before the member joins, so the search for the next free port is disabled.
fn cluster(args: &Args, config: &mut Config) -> Result<Option<ClusterConfig>, Failure> {
    let of_file = config.cluster.take().unwrap_or_default();
    let is_lite = of_file.is_lite;
    let door = &mut config.door;
    let mut cluster = match args.join.is_empty() {
        true => of_file,
        false => ClusterConfig { members: Vec::new(), required: None, ..of_file },
    };
    cluster.listen =
        args.member_listen.map(|listen| SocketAddr::new(listen.address, listen.port.unwrap_or(MEMBER_PORT)));
    let port = cluster.listen.map_or(door.listen.port(), |listen| listen.port());
    cluster.members.extend(args.join.iter().map(|member| with_port(member, port)));
    if cluster.members.is_empty() {
        let flags = [
            ("--member-listen", args.member_listen.is_some()),
            ("--member-address", args.member_address.is_some()),
            ("--replicas", args.replicas.is_some()),
            ("--secret-file", args.secret_file.is_some()),
            ("--member-tls-authority", args.member_tls_authority.is_some()),
            ("--member-tls-certificate", args.member_tls_certificate.is_some()),
            ("--member-tls-key", args.member_tls_key.is_some()),
        ];
        if let Some((flag, _)) = flags.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::NoCluster(flag));
        }
        if is_lite {
            warn!("lite-member has no effect: no members are named, by --join or network.join.tcp-ip");
        }
        return Ok(None);
    }
    door.port_auto_increment = false;
    cluster.public_address.clone_from(&args.member_address);
    cluster.replicas = args.replicas.unwrap_or(cluster.replicas);
    if let Some(path) = &args.secret_file {
        let failed = |source| Failure::Secret { path: path.clone(), source };
        let secret = std::fs::read(path).map_err(failed)?;
        cluster.secret = Some(secret.trim_ascii().to_vec());
    }
    for (flag, file) in [
        (&args.member_tls_authority, (|tls| &mut tls.authority) as fn(&mut TlsFiles) -> &mut PathBuf),
        (&args.member_tls_certificate, |tls| &mut tls.certificate),
        (&args.member_tls_key, |tls| &mut tls.key),
    ] {
        if let Some(path) = flag {
            file(cluster.tls.get_or_insert_default()).clone_from(path);
        }
    }
    if let Some(tls) = &cluster.tls {
        let files = [
            ("filbert.cluster.tls.authority", &tls.authority),
            ("filbert.cluster.tls.certificate", &tls.certificate),
            ("filbert.cluster.tls.key", &tls.key),
        ];
        if let Some((missing, _)) = files.into_iter().find(|(_, path)| path.as_os_str().is_empty()) {
            return Err(Failure::Certificate(missing));
        }
    }
    Ok(Some(cluster))
}

/// Logs the cluster settings, with the requested and the actual number of backups.
pub(crate) fn log_cluster(config: &Config) {
    let Some(cluster) = &config.cluster else { return };
    let backups = |map: &MapConfig| u32::from(map.backup_count) + u32::from(map.async_backup_count);
    let asked =
        config.grid.maps.iter().map(|(_, map)| backups(map)).max().unwrap_or_else(|| backups(&MapConfig::default()));
    let (replicas, held) = (cluster.replicas, cluster.replicas.saturating_sub(1));
    let lite = if cluster.is_lite { "; this one is a lite member, and holds no data" } else { "" };
    let required =
        cluster.required.as_ref().map(|member| format!(", of which {member} is required")).unwrap_or_default();
    info!(
        "a cluster of {}{required}: each partition is held by {replicas} members; maps ask for up to {asked} backups, and have {held}{lite}",
        cluster.members.join(", ")
    );
    if asked > held {
        warn!("maps ask for {asked} backups and have {held}: --replicas {} gives them", asked + 1);
    }
}

/// Sets the address of another front door: from its own flag, or else from `--listen`. Port 0 of
/// `--listen` applies to all front doors.
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

/// Logs the settings of the file without an effect, one line for each.
pub(crate) fn log_notices(loaded: &Loaded) {
    for notice in &loaded.notices {
        match notice.kind {
            NoticeKind::Unsupported => warn!("{}: {notice}", loaded.file),
            NoticeKind::NotNeeded => info!("{}: {notice}", loaded.file),
        }
    }
}

/// The output of `--check-config`.
pub(crate) fn report(loaded: &Loaded) -> String {
    let mut text = String::new();
    for notice in &loaded.notices {
        let _ = writeln!(text, "{}: {notice}", loaded.file);
    }
    let _ = writeln!(text, "{}", summary(loaded));
    text
}

/// One line about the source of the settings.
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
