//! Serves clients of an embedded member: runs the front doors on separate threads.
//!
//! The front doors are async, but the caller of the embedded API may be sync, so they have their
//! own runtime. It is created, used and dropped on one thread, because a runtime must not be
//! dropped inside another runtime.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use filbert_grid::Grid;
use filbert_hazelcast::{Door, DoorConfig};
use filbert_http::{HttpConfig, HttpDoor};
use filbert_listen::{Listener, Port};
use filbert_postgres::{PostgresConfig, PostgresDoor};
use tokio::sync::watch;

use super::{Error, answering};

/// The front doors to open.
pub(super) struct Doors {
    pub(super) hazelcast: Option<DoorConfig>,
    pub(super) http: Option<HttpConfig>,
    pub(super) postgres: Option<PostgresConfig>,
    pub(super) reserved: Reserved,
}

/// The ports that a cluster member reserves before it joins. Other front doors find a port when
/// they are opened.
#[derive(Default)]
pub(super) struct Reserved {
    pub(super) hazelcast: Option<ClientPort>,
    http: Option<Port>,
    postgres: Option<Port>,
}

/// The port of Hazelcast's clients.
pub(super) enum ClientPort {
    /// A port of its own.
    Own(Port),
    /// The members' port. Another component listens on it and hands the connections over.
    Shared(Listener),
}

impl Doors {
    /// Reserves the port of Hazelcast's clients if it is not shared with members, and all ports
    /// that are fixed.
    ///
    /// # Errors
    /// A port is not free, or an address does not belong to this machine.
    pub(super) fn reserve(&mut self, is_shared: bool) -> Result<(), Error> {
        if let Some(config) = self.hazelcast.as_ref().filter(|_| !is_shared) {
            self.reserved.hazelcast = Some(ClientPort::Own(Door::reserve(config)?));
        }
        if let Some(config) = self.http.as_ref().filter(|config| !config.port_auto_increment) {
            self.reserved.http = Some(HttpDoor::reserve(config)?);
        }
        if let Some(config) = self.postgres.as_ref().filter(|config| !config.port_auto_increment) {
            self.reserved.postgres = Some(PostgresDoor::reserve(config)?);
        }
        Ok(())
    }
}

/// The addresses of the open front doors.
#[derive(Clone, Copy, Default)]
pub(super) struct Addresses {
    pub(super) hazelcast: Option<SocketAddr>,
    pub(super) http: Option<SocketAddr>,
    pub(super) postgres: Option<SocketAddr>,
}

/// The open front doors. Dropping them closes them: running invocations are completed, and clients
/// are notified.
pub(super) struct OpenDoors {
    addresses: Addresses,
    close: Option<watch::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl OpenDoors {
    /// Opens the front doors and returns when all of them listen. Returns `None` if there is none
    /// to open.
    pub(super) fn open(grid: &Arc<Grid>, doors: Doors, threads: Option<usize>) -> Result<Option<OpenDoors>, Error> {
        if doors.hazelcast.is_none() && doors.http.is_none() && doors.postgres.is_none() {
            return Ok(None);
        }
        let grid = grid.clone();
        let (close, closed) = watch::channel(false);
        let (opened, report) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("filbert-door".to_owned()).spawn(move || {
            let runtime = match answering::runtime("filbert-net", threads) {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = opened.send(Err(Error::Thread(error)));
                    return;
                }
            };
            runtime.block_on(async move {
                match Listening::bind(&grid, doors).await {
                    Ok(listening) => {
                        let _ = opened.send(Ok(listening.addresses()));
                        listening.serve(closed).await;
                    }
                    Err(error) => {
                        let _ = opened.send(Err(error));
                    }
                }
            });
        })?;
        let gone = || Error::Thread(io::Error::other("the thread that serves clients ended before it listened"));
        let addresses = report.recv().map_err(|_| gone())??;
        Ok(Some(OpenDoors { addresses, close: Some(close), thread: Some(thread) }))
    }

    /// The addresses that clients connect to.
    pub(super) fn addresses(&self) -> Addresses {
        self.addresses
    }
}

impl Drop for OpenDoors {
    fn drop(&mut self) {
        self.close.take();
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// Sets the version that `version()` reports, unless the settings contain one.
fn with_version(config: PostgresConfig) -> PostgresConfig {
    match config.program_version.as_str() {
        "" => PostgresConfig { program_version: env!("CARGO_PKG_VERSION").to_owned(), ..config },
        _ => config,
    }
}

/// Front doors that listen and do not serve yet. Either all of them are opened, or none.
struct Listening {
    hazelcast: Option<Door>,
    http: Option<HttpDoor>,
    postgres: Option<PostgresDoor>,
}

impl Listening {
    async fn bind(grid: &Arc<Grid>, doors: Doors) -> Result<Listening, Error> {
        let Doors { hazelcast, http, postgres, reserved } = doors;
        let hazelcast = match (hazelcast, reserved.hazelcast) {
            (None, _) => None,
            (Some(config), None) => Some(Door::bind(grid.clone(), config).await?),
            (Some(config), Some(ClientPort::Own(port))) => {
                Some(Door::with_listener(grid.clone(), config, Listener::on(port)?))
            }
            (Some(config), Some(ClientPort::Shared(listener))) => {
                Some(Door::with_listener(grid.clone(), config, listener))
            }
        };
        let http = match (http, reserved.http) {
            (None, _) => None,
            (Some(config), None) => Some(HttpDoor::bind(grid.clone(), config).await?),
            (Some(config), Some(port)) => Some(HttpDoor::with_listener(grid.clone(), config, Listener::on(port)?)),
        };
        let postgres = match (postgres.map(with_version), reserved.postgres) {
            (None, _) => None,
            (Some(config), None) => Some(PostgresDoor::bind(grid.clone(), config).await?),
            (Some(config), Some(port)) => Some(PostgresDoor::with_listener(grid.clone(), config, Listener::on(port)?)?),
        };
        Ok(Listening { hazelcast, http, postgres })
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            hazelcast: self.hazelcast.as_ref().map(Door::local_addr),
            http: self.http.as_ref().map(HttpDoor::local_addr),
            postgres: self.postgres.as_ref().map(PostgresDoor::local_addr),
        }
    }

    /// Serves until the sender is dropped. Then all front doors shut down concurrently.
    async fn serve(self, closed: watch::Receiver<bool>) {
        let end = || {
            let mut closed = closed.clone();
            async move {
                // A dropped sender means the same as a sent value.
                let _ = closed.changed().await;
            }
        };
        let hazelcast = async {
            if let Some(door) = self.hazelcast {
                door.run(end()).await;
            }
        };
        let http = async {
            if let Some(door) = self.http {
                door.run(end()).await;
            }
        };
        let postgres = async {
            if let Some(door) = self.postgres {
                door.run(end()).await;
            }
        };
        tokio::join!(hazelcast, http, postgres);
    }
}
