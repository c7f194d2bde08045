//! The life cycle of the member: start, readiness, signal, shutdown.

use std::io;

use filbert::config::Loaded;
use filbert::{Config, Ending, Filbert};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use super::failure::Failure;
use super::{welcome, write_out};

/// Serves until SIGTERM or SIGINT, or until the cluster requires the member to end. If the cluster
/// continued without the member, it drops its data and starts again.
pub(crate) fn serve(loaded: Loaded) -> Result<(), Failure> {
    // Install the signal handlers first: a signal during the start must not kill the member
    // half-way.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(Failure::Signals)?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new().map_err(Failure::Signals)?
    };
    let welcome = welcome::Welcome::new(&loaded);
    if let Some(name) = &loaded.config.instance_name {
        info!("this member is {name}");
    }
    let mut config = loaded.config;
    let (filbert, ending) = loop {
        let filbert = Filbert::start(config.clone()).map_err(Failure::Start)?;
        if let Some(hazelcast) = filbert.address() {
            let (http, postgres) = (filbert.http_address(), filbert.postgres_address());
            write_out(&welcome.text(&welcome::Doors { hazelcast, http, postgres }))?;
        }
        keep_addresses(&mut config, &filbert);
        let ending = runtime.block_on(async {
            tokio::select! {
                name = signals.next() => {
                    info!("{name} received: running invocations are finished, then clients are told");
                    None
                }
                ending = filbert.ending() => Some(ending),
            }
        });
        if ending != Some(Ending::LeftBehind) {
            break (filbert, ending);
        }
        error!(
            "the cluster has gone on without this member while most of its members were not there: what this one holds is dropped ({}), and \
             changes that were acknowledged on its side alone are lost. It joins the cluster as a new member",
            filbert.holdings()
        );
        filbert.shutdown();
    };
    match ending {
        Some(Ending::LeaveRequested) => {
            info!("an operator has this member leave its cluster: it ends when others have taken over")
        }
        Some(Ending::TakenOut) => error!(
            "this member was taken out of its cluster while the others did not hear of it: it ends, and what it holds is dropped"
        ),
        Some(Ending::LeftBehind) | None => {}
    }
    // A second signal ends the process immediately.
    std::thread::spawn(move || {
        let name = runtime.block_on(signals.next());
        warn!("{name} received again: ending at once");
        std::process::exit(1);
    });
    filbert.shutdown();
    info!("ended");
    if ending == Some(Ending::TakenOut) { Err(Failure::TakenOut) } else { Ok(()) }
}

/// Replaces the addresses of the settings with the addresses on which the member listens. After a
/// restart, clients find the member at the same ports, even if it has chosen them itself.
fn keep_addresses(config: &mut Config, filbert: &Filbert) {
    if let Some(address) = filbert.address() {
        config.door.listen = address;
    }
    if let (Some(http), Some(address)) = (&mut config.http, filbert.http_address()) {
        http.listen = address;
    }
    if let (Some(postgres), Some(address)) = (&mut config.postgres, filbert.postgres_address()) {
        postgres.listen = address;
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
