//! The network side of a member: its place in a cluster, and its front doors.

use std::sync::Arc;

use filbert_grid::{Environment, Grid, GridError};
use filbert_member::Ending;

use super::Error;
use super::cluster::ClusterMember;
use super::door::{Addresses, ClientPort, Doors, OpenDoors, Reserved};
use crate::Config;

/// A member that has its grid and does not serve clients yet.
pub(super) struct Joined {
    grid: Arc<Grid>,
    cluster: Option<ClusterMember>,
    doors: Doors,
    threads: Option<usize>,
}

impl Joined {
    /// Joins the configured cluster, or creates the grid of a standalone member.
    ///
    /// # Errors
    /// A setting is invalid, or the cluster does not accept the member.
    pub(super) fn new(config: &Config, environment: Environment) -> Result<Joined, Error> {
        let mut doors = Doors {
            hazelcast: config.serve_clients.then(|| config.door.clone()),
            http: config.http.clone(),
            postgres: config.postgres.clone(),
            reserved: Reserved::default(),
        };
        // Cluster settings without members have no effect.
        let cluster = config.cluster.clone().filter(|cluster| !cluster.members.is_empty() || cluster.is_lite);
        let (cluster, grid) = match cluster {
            None => (None, Grid::new(config.grid.clone(), environment)?),
            Some(cluster) => {
                doors.reserve(cluster.listen.is_none())?;
                let mut door = config.door.clone();
                if let Some(ClientPort::Own(port)) = &doors.reserved.hazelcast {
                    door.listen = port.address();
                }
                let mut member = ClusterMember::join(cluster, config.grid.clone(), &door, environment)?;
                if let Some(clients) = member.clients() {
                    doors.reserved.hazelcast = Some(ClientPort::Shared(clients));
                }
                let grid = member.grid()?;
                (Some(member), grid)
            }
        };
        Ok(Joined { grid, cluster, doors, threads: config.threads })
    }

    pub(super) fn grid(&self) -> Arc<Grid> {
        self.grid.clone()
    }

    /// Opens the front doors.
    ///
    /// # Errors
    /// An address is not available, or the operating system cannot start threads.
    pub(super) fn serve(self) -> Result<Serving, Error> {
        let doors = OpenDoors::open(&self.grid, self.doors, self.threads)?;
        if let Some(cluster) = &self.cluster {
            cluster.serve();
        }
        Ok(Serving { doors, cluster: self.cluster })
    }
}

/// The front doors of a serving member, and its cluster. The front doors are closed first on drop.
pub(super) struct Serving {
    doors: Option<OpenDoors>,
    cluster: Option<ClusterMember>,
}

impl Serving {
    /// The listen addresses for clients.
    pub(super) fn addresses(&self) -> Addresses {
        self.doors.as_ref().map(OpenDoors::addresses).unwrap_or_default()
    }

    /// Rejects a cluster member: its own replicas may be stale, and other members lead most
    /// partitions.
    pub(super) fn check_alone(&self) -> Result<(), Error> {
        match self.cluster {
            None => Ok(()),
            Some(_) => {
                let text = "maps of a cluster are not served within its members yet, expected a client".to_owned();
                Err(GridError::UnsupportedOperation(text).into())
            }
        }
    }

    /// Waits until the member should end. Never returns if there is no cluster.
    pub(super) async fn ending(&self) -> Ending {
        match &self.cluster {
            Some(cluster) => cluster.ending().await,
            None => std::future::pending().await,
        }
    }

    /// Entries by map, as a log text. Empty if there is no cluster.
    pub(super) fn holdings(&self) -> String {
        self.cluster.as_ref().map(ClusterMember::holdings).unwrap_or_default()
    }

    /// Leaves the cluster, then closes the front doors.
    pub(super) fn end(&mut self) {
        if let Some(cluster) = &self.cluster {
            // Clients are served until other members have taken over.
            cluster.leave();
        }
        self.doors.take();
        self.cluster.take();
    }
}
