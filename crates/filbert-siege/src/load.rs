//! The definition of a load: a name, an attack on the member, and the expected result.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;

use crate::target::Target;

/// How long an endless attack runs before it is ended, so that it can do harm.
pub(crate) const HOLD: Duration = Duration::from_millis(1_500);

/// The target and the means of a load. Each kind is a module of [`crate::loads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Results of functions that grow without limit
    Functions,
    /// Statements that are hard to plan
    Planning,
    /// Statements that are hard to execute
    Queries,
    /// Misuse of PostgreSQL's protocol
    Postgres,
    /// Misuse of HTTP
    Http,
    /// Misuse of the client protocol
    Hazelcast,
    /// Many harmless statements or sessions
    Sessions,
    /// Loads of a member with maps that fill it
    Full,
}

/// The front door that a load attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Postgres,
    Http,
    Hazelcast,
}

impl Door {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Door::Postgres => "postgres",
            Door::Http => "http",
            Door::Hazelcast => "hazelcast",
        }
    }
}

/// A list of SQLSTATEs. The error must have one of them.
pub(crate) type States = &'static [&'static str];

/// The expected end of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It ends by itself with one of these SQLSTATEs.
    Refused(States),
    /// It ends by itself: it succeeds, or fails with one of these SQLSTATEs. Without SQLSTATEs it
    /// must succeed.
    Ends(States),
    /// It runs until it is cancelled (57014), or fails earlier with one of these SQLSTATEs.
    Cancelled(States),
    /// It runs until its client closes the connection, or fails earlier with one of these
    /// SQLSTATEs.
    Closed(States),
}

/// The result of an attack function: the member's reply as a short text, or an error that describes
/// the unexpected behaviour.
pub(crate) type Assault = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

/// An attack on the member.
pub(crate) enum Attack {
    /// A statement over PostgreSQL's protocol, with its expected end.
    Sql(Box<dyn Fn() -> String + Send + Sync>, Expect),
    /// A function that checks the replies itself. Its connections are closed when it ends.
    Does(Box<dyn Fn(Target) -> Assault + Send + Sync>),
}

/// One hostile load.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) door: Door,
    pub(crate) attack: Attack,
    /// Whether every test run includes the load.
    pub(crate) is_short: bool,
    /// Whether the load fills the maps up to the member's limit.
    pub(crate) fills: bool,
    /// The reason of a known failure.
    pub(crate) open: Option<&'static str>,
}

impl Load {
    /// Marks the load as one that fills the maps.
    pub(crate) fn fills(self) -> Load {
        Load { fills: true, ..self }
    }

    /// Adds the load to every test run.
    pub(crate) fn short(self) -> Load {
        Load { is_short: true, ..self }
    }

    /// Marks the load as a known failure. It is reported, but does not fail the run.
    #[allow(dead_code, reason = "no load is open at the moment")]
    pub(crate) fn open(self, reason: &'static str) -> Load {
        Load { open: Some(reason), ..self }
    }
}

/// The builder for the loads of a module.
pub(crate) struct Table(pub(crate) Kind);

impl Table {
    /// A load with a fixed statement.
    pub(crate) fn sql(&self, name: &'static str, text: &'static str, expect: Expect) -> Load {
        self.made(name, move || text.to_owned(), expect)
    }

    /// A load with a statement that a function generates.
    pub(crate) fn made(
        &self,
        name: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
        expect: Expect,
    ) -> Load {
        self.load(name, Door::Postgres, Attack::Sql(Box::new(text), expect))
    }

    /// A load with an attack function on a front door.
    pub(crate) fn does<F, Told>(&self, name: &'static str, door: Door, attack: F) -> Load
    where
        F: Fn(Target) -> Told + Send + Sync + 'static,
        Told: Future<Output = Result<String>> + Send + 'static,
    {
        self.load(name, door, Attack::Does(Box::new(move |target| Box::pin(attack(target)))))
    }

    fn load(&self, name: &'static str, door: Door, attack: Attack) -> Load {
        Load { name, kind: self.0, door, attack, is_short: false, fills: false, open: None }
    }
}
