//! Clients of an embedded member: the front door on threads of its own.
//!
//! The door is async and the embedded API need not be called from an async program, so it gets a runtime of its own,
//! which is made, used and dropped on one thread: a runtime may not be dropped where another one runs.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use filbert_grid::Grid;
use filbert_hazelcast::{Door, DoorConfig};
use tokio::sync::oneshot;

use super::Error;

/// An open front door. Dropping it closes the door: what runs is finished, clients are told.
pub(super) struct OpenDoor {
    address: SocketAddr,
    close: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OpenDoor {
    /// Opens the door and returns when it listens.
    pub(super) fn open(grid: Arc<Grid>, config: DoorConfig, threads: Option<usize>) -> Result<OpenDoor, Error> {
        let (close, closed) = oneshot::channel::<()>();
        let (opened, report) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("filbert-door".to_owned()).spawn(move || {
            let runtime = match runtime(threads) {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = opened.send(Err(Error::Thread(error)));
                    return;
                }
            };
            runtime.block_on(async move {
                match Door::bind(grid, config).await {
                    Ok(door) => {
                        let _ = opened.send(Ok(door.local_addr()));
                        door.run(async move {
                            // A sender that is dropped says the same as one that sends.
                            let _ = closed.await;
                        })
                        .await;
                    }
                    Err(error) => {
                        let _ = opened.send(Err(Error::Listen(error)));
                    }
                }
            });
        })?;
        let gone = || Error::Thread(io::Error::other("the thread that serves clients ended before it listened"));
        let address = report.recv().map_err(|_| gone())??;
        Ok(OpenDoor { address, close: Some(close), thread: Some(thread) })
    }

    /// The address that clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OpenDoor {
    fn drop(&mut self) {
        self.close.take();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

fn runtime(threads: Option<usize>) -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads.max(1));
    }
    builder.thread_name("filbert-net").enable_all().build()
}
