//! What a load is: a name, what is done to the member, and what must become of it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;

use crate::target::Target;

/// How long something that goes on until it is ended is left alone, so that it can hurt.
pub(crate) const HOLD: Duration = Duration::from_millis(1_500);

/// What is attacked, and by what: the modules of [`crate::loads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Results of functions that grow without measure
    Functions,
    /// Statements that are hard to plan
    Planning,
    /// Statements that are hard to run
    Queries,
    /// PostgreSQL's protocol, misused
    Postgres,
    /// HTTP, misused
    Http,
    /// The client protocol, misused
    Hazelcast,
    /// Many statements or sessions, each of which is harmless
    Sessions,
}

/// The front door that a load comes in by.
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

/// SQLSTATEs of which one is told.
pub(crate) type States = &'static [&'static str];

/// What must become of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It ends by itself, with one of these states.
    Refused(States),
    /// It ends by itself: it is answered, or refused with one of these states. No states: it must be answered.
    Ends(States),
    /// It goes on until it is cancelled (57014), or is refused before with one of these states.
    Cancelled(States),
    /// It goes on until its client closes the connection, or is refused before with one of these states.
    Closed(States),
}

/// What a function that attacks comes to: what the member told it, in a few words, or what was wrong about that.
pub(crate) type Assault = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

/// What is done to the member.
pub(crate) enum Attack {
    /// A statement over PostgreSQL's protocol, and what must become of it.
    Sql(Box<dyn Fn() -> String + Send + Sync>, Expect),
    /// A function, which judges the answers itself. Its connections are closed when it ends.
    Does(Box<dyn Fn(Target) -> Assault + Send + Sync>),
}

/// One hostile load.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) door: Door,
    pub(crate) attack: Attack,
    /// Whether it is one of those that every test run has.
    pub(crate) is_short: bool,
    /// Why it is known to fail, if it is.
    pub(crate) open: Option<&'static str>,
}

impl Load {
    /// One of those that every test run has.
    pub(crate) fn short(self) -> Load {
        Load { is_short: true, ..self }
    }

    /// Known to fail, for this reason: told, and no failure of the run.
    pub(crate) fn open(self, reason: &'static str) -> Load {
        Load { open: Some(reason), ..self }
    }
}

/// A module's loads, as a table.
pub(crate) struct Table(pub(crate) Kind);

impl Table {
    /// A statement as it stands.
    pub(crate) fn sql(&self, name: &'static str, text: &'static str, expect: Expect) -> Load {
        self.made(name, move || text.to_owned(), expect)
    }

    /// A statement that a function writes.
    pub(crate) fn made(
        &self,
        name: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
        expect: Expect,
    ) -> Load {
        self.load(name, Door::Postgres, Attack::Sql(Box::new(text), expect))
    }

    /// A function at a door.
    pub(crate) fn does<F, Told>(&self, name: &'static str, door: Door, attack: F) -> Load
    where
        F: Fn(Target) -> Told + Send + Sync + 'static,
        Told: Future<Output = Result<String>> + Send + 'static,
    {
        self.load(name, door, Attack::Does(Box::new(move |target| Box::pin(attack(target)))))
    }

    fn load(&self, name: &'static str, door: Door, attack: Attack) -> Load {
        Load { name, kind: self.0, door, attack, is_short: false, open: None }
    }
}
