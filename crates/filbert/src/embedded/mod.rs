//! The embedded API: a member within a Rust program.

mod asynchronous;
mod cluster;
mod core;
mod door;
mod error;
mod events;
mod iterate;
mod lifetime;
mod locks;
mod map;
mod owner;
mod shared_port;
mod sql;
mod sql_values;
mod timer;
mod view;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use filbert_grid::{Clock, Environment, Grid, GridError, SystemClock};
use filbert_query::Engine;
use uuid::Uuid;

pub use asynchronous::AsyncMap;
pub use error::Error;
pub use events::{EntryEvent, EventKind, Events, Listener, ListenerOptions};
pub use filbert_member::Ending;
pub use iterate::Iter;
pub use lifetime::Lifetime;
pub use map::Map;
pub use owner::LockOwner;
pub use sql::{SqlResult, SqlRows};
pub use view::{EntryView, MapStatistics};

use self::cluster::ClusterMember;
use self::core::Core;
use crate::Config;
use door::{Doors, OpenDoors};
use events::Listeners;
use timer::Timer;

/// A running member. Dropping it shuts it down; maps that are still held then refuse operations.
///
/// ```
/// use std::net::Ipv4Addr;
/// use filbert::{Config, Filbert};
///
/// let config = Config::default().with_listener((Ipv4Addr::LOCALHOST, 0).into());
/// let filbert = Filbert::start(config)?;
/// println!("Hazelcast's clients can connect to {:?}", filbert.address());
/// filbert.shutdown();
/// # Ok::<(), filbert::Error>(())
/// ```
pub struct Filbert {
    // Fields are dropped in this order: clients go first, then nothing is left for the timer to do.
    doors: Option<OpenDoors>,
    cluster: Option<ClusterMember>,
    grid: Arc<Grid>,
    timer: Option<Timer>,
    instance: Uuid,
    listeners: Arc<Listeners>,
}

impl Filbert {
    /// Starts a member. Without [`Config::with_listener`] it opens no socket.
    ///
    /// # Errors
    /// A setting cannot be used, the address cannot be listened on, or the system gives no threads.
    pub fn start(config: Config) -> Result<Filbert, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        // A version 4 UUID comes from the system's random source; half of it is a seed.
        let random_seed = Uuid::new_v4().as_u64_pair().1 ^ Uuid::new_v4().as_u64_pair().0;
        let environment = Environment { clock: clock.clone(), random_seed };
        let mut doors = Doors {
            hazelcast: config.serve_clients.then_some(config.door.clone()),
            hazelcast_listener: None,
            http: config.http,
            postgres: config.postgres,
        };
        // Settings of a cluster without members are of no use.
        let cluster = config.cluster.filter(|cluster| !cluster.members.is_empty() || cluster.is_lite);
        let (cluster, grid) = match cluster {
            None => {
                let grid = Grid::new(config.grid, environment)?;
                Engine::start(&grid, config.query)?;
                (None, grid)
            }
            Some(cluster) => {
                let mut member = ClusterMember::join(cluster, config.grid, &config.door, environment)?;
                doors.hazelcast_listener = member.clients();
                let grid = member.grid()?;
                Engine::start(&grid, config.query)?;
                (Some(member), grid)
            }
        };
        let timer = Timer::start(grid.clone(), clock)?;
        let doors = OpenDoors::open(&grid, doors, config.threads)?;
        if let Some(cluster) = &cluster {
            cluster.serve();
        }
        Ok(Filbert {
            doors,
            cluster,
            grid,
            timer: Some(timer),
            instance: Uuid::new_v4(),
            listeners: Arc::new(Listeners::new(config.listener_events_max)),
        })
    }

    /// The map of this name, made on first use.
    ///
    /// # Errors
    /// The member is shut down, has as many maps as its limit allows, or two patterns of its configuration fit the
    /// name equally well; or it is a member of a cluster, whose maps are served to clients alone so far.
    pub fn map<K, V>(&self, name: &str) -> Result<Map<K, V>, Error> {
        if self.cluster.is_some() {
            // What this member holds may be old, and others lead most of it.
            let text = "maps of a cluster are not served within its members yet, expected a client".to_owned();
            return Err(GridError::UnsupportedOperation(text).into());
        }
        let core = Core {
            map: self.grid.map(name)?,
            grid: self.grid.clone(),
            instance: self.instance,
            listeners: self.listeners.clone(),
        };
        Ok(Map::new(core))
    }

    /// The address that Hazelcast's clients connect to, if the member serves any.
    pub fn address(&self) -> Option<SocketAddr> {
        self.doors.as_ref()?.addresses().hazelcast
    }

    /// The address of HTTP and the console, if they are served.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.doors.as_ref()?.addresses().http
    }

    /// The address that PostgreSQL's drivers connect to, if they are served.
    pub fn postgres_address(&self) -> Option<SocketAddr> {
        self.doors.as_ref()?.addresses().postgres
    }

    /// Waits until there is a reason for this member of a cluster to be shut down: an operator has ordered it to leave, or the others have taken
    /// it out or gone on without it while they did not hear of it, and it serves nothing any more. For ever if there is none. Does nothing by
    /// itself: what it holds is dropped when it is shut down, and a member that is started then joins the others.
    ///
    /// Cancel safety: nothing is lost when the future is dropped.
    pub async fn ending(&self) -> Ending {
        match &self.cluster {
            Some(cluster) => cluster.ending().await,
            None => std::future::pending().await,
        }
    }

    /// What this member of a cluster holds, in words for a log: entries by map. Empty where there is no cluster.
    pub fn holdings(&self) -> String {
        self.cluster.as_ref().map(ClusterMember::holdings).unwrap_or_default()
    }

    /// The member's services below the typed API: for front doors of your own.
    pub fn grid(&self) -> &Arc<Grid> {
        &self.grid
    }

    /// Ends the member: running invocations of clients are finished, clients are told, waiting operations fail. Blocks
    /// until that is done.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Filbert {
    fn drop(&mut self) {
        if let Some(cluster) = &self.cluster {
            // Clients are served until others have taken over.
            cluster.hand_over();
        }
        // As long as clients are told something, this is a member: they leave one at once that is none.
        self.doors.take();
        if let Some(cluster) = &self.cluster {
            cluster.go();
        }
        self.cluster.take();
        self.grid.shutdown();
        self.listeners.close();
        self.timer.take();
    }
}

impl fmt::Debug for Filbert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filbert").field("address", &self.address()).finish_non_exhaustive()
    }
}
