//! The embedded API: a member within a Rust program.

#[cfg(feature = "server")]
mod answering;
mod asynchronous;
#[cfg(feature = "server")]
mod cluster;
mod core;
#[cfg(feature = "server")]
mod door;
mod error;
mod events;
mod iterate;
mod lifetime;
mod locks;
mod map;
mod owner;
#[cfg(feature = "server")]
mod serving;
#[cfg(feature = "server")]
mod shared_port;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sql")]
mod sql_values;
mod timer;
mod view;

use std::fmt;
#[cfg(feature = "server")]
use std::net::SocketAddr;
use std::sync::Arc;

use filbert_grid::{Clock, Environment, Grid, SystemClock};
#[cfg(feature = "sql")]
use filbert_query::Engine;
use uuid::Uuid;

pub use asynchronous::AsyncMap;
pub use error::Error;
pub use events::{EntryEvent, EventKind, Events, Listener, ListenerOptions};
#[cfg(feature = "server")]
pub use filbert_member::Ending;
pub use iterate::Iter;
pub use lifetime::Lifetime;
pub use map::Map;
pub use owner::LockOwner;
#[cfg(feature = "sql")]
pub use sql::{SqlResult, SqlRows};
pub use view::{EntryView, MapStatistics};

use self::core::Core;
#[cfg(feature = "server")]
use self::serving::{Joined, Serving};
use crate::Config;
use events::Listeners;
use timer::Timer;

/// A running member. Dropping it shuts it down. Maps that are still held then reject operations.
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
    // Fields are dropped in this order: first the client connections, then the timer has no more
    // work.
    #[cfg(feature = "server")]
    serving: Serving,
    grid: Arc<Grid>,
    timer: Option<Timer>,
    instance: Uuid,
    listeners: Arc<Listeners>,
}

impl Filbert {
    /// Starts a member. Without [`Config::with_listener`] it opens no socket.
    ///
    /// # Errors
    /// A setting is invalid, the address is not available, or the operating system cannot start
    /// threads.
    pub fn start(config: Config) -> Result<Filbert, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        // The operating system's random source generates version 4 UUIDs. Half of a UUID is the
        // seed.
        let random_seed = Uuid::new_v4().as_u64_pair().1 ^ Uuid::new_v4().as_u64_pair().0;
        let environment = Environment { clock: clock.clone(), random_seed };
        #[cfg(feature = "server")]
        let joined = Joined::new(&config, environment)?;
        #[cfg(feature = "server")]
        let grid = joined.grid();
        #[cfg(not(feature = "server"))]
        let grid = Grid::new(config.grid, environment)?;
        #[cfg(feature = "sql")]
        Engine::start(&grid, config.query)?;
        let timer = Timer::start(grid.clone(), clock)?;
        Ok(Filbert {
            #[cfg(feature = "server")]
            serving: joined.serve()?,
            grid,
            timer: Some(timer),
            instance: Uuid::new_v4(),
            listeners: Arc::new(Listeners::new(config.listener_events_max)),
        })
    }

    /// Returns the map with this name. It is created on first use.
    ///
    /// # Errors
    /// The member is shut down, its limit of maps is reached, or two patterns of its configuration
    /// match the name equally well. A cluster member returns an error too: at present only clients
    /// can use the maps of a cluster.
    pub fn map<K, V>(&self, name: &str) -> Result<Map<K, V>, Error> {
        #[cfg(feature = "server")]
        self.serving.check_alone()?;
        let core = Core {
            map: self.grid.map(name)?,
            grid: self.grid.clone(),
            instance: self.instance,
            listeners: self.listeners.clone(),
        };
        Ok(Map::new(core))
    }

    /// The member's services below the typed API, for custom front doors.
    pub fn grid(&self) -> &Arc<Grid> {
        &self.grid
    }

    /// Shuts the member down. Running invocations of clients are completed, clients are notified,
    /// and waiting operations fail. Blocks until the shutdown is complete.
    pub fn shutdown(self) {
        drop(self);
    }
}

#[cfg(feature = "server")]
impl Filbert {
    /// The listen address for Hazelcast's clients, if they are served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.serving.addresses().hazelcast
    }

    /// The listen address of HTTP and the console, if they are served.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.serving.addresses().http
    }

    /// The listen address for PostgreSQL's drivers, if they are served.
    pub fn postgres_address(&self) -> Option<SocketAddr> {
        self.serving.addresses().postgres
    }

    /// Waits until this cluster member should be shut down: an operator ordered it to leave, or the
    /// other members removed it or continued without it while they could not reach it. The member
    /// then serves no requests any more. Never completes if there is no reason. This method does
    /// not shut the member down. A shutdown drops the data of the member. A member that is started
    /// afterwards joins the cluster again.
    ///
    /// Cancel safety: nothing is lost when the future is dropped.
    pub async fn ending(&self) -> Ending {
        self.serving.ending().await
    }

    /// The data of this cluster member, as a log text: entries by map. Empty if there is no
    /// cluster.
    pub fn holdings(&self) -> String {
        self.serving.holdings()
    }
}

impl Drop for Filbert {
    fn drop(&mut self) {
        #[cfg(feature = "server")]
        self.serving.end();
        self.grid.shutdown();
        self.listeners.close();
        self.timer.take();
    }
}

impl fmt::Debug for Filbert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filbert").field("instance", &self.instance).finish_non_exhaustive()
    }
}
