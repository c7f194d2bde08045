//! `properties` of the file: the supported properties of Hazelcast, and Filbert's own properties.
//!
//! Filbert's own properties begin with `filbert.`. Environment variables override them
//! (`environment.rs`).

use std::path::PathBuf;
use std::time::Duration;

use filbert_postgres::PostgresTls;

use super::member::{Draft, saturating};
use super::setting::{Kind, Setting};
use crate::config::TlsFiles;

const INT_MAX: u64 = i32::MAX as u64;

/// The properties.
pub(crate) const PROPERTIES: &[Setting<Draft>] = &[
    Setting {
        name: "hazelcast.partition.count",
        kind: Kind::Whole {
            min: 1,
            max: 65_535,
            get: |draft| draft.config.grid.partition_count.into(),
            set: |draft, value| draft.config.grid.partition_count = u32::try_from(value).unwrap_or(u32::MAX),
        },
        unit: "partitions",
        doc: "How many partitions the data is divided into; clients learn it when they connect.",
    },
    Setting {
        name: "hazelcast.client.max.no.heartbeat.seconds",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.door.heartbeat_timeout.as_secs(),
            set: |draft, value| draft.config.door.heartbeat_timeout = Duration::from_secs(value),
        },
        unit: "seconds",
        doc: "A client that is silent for this long is disconnected, and what it locked is freed.",
    },
    Setting {
        name: "hazelcast.operation.call.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.config.door.call_timeout),
            set: |draft, value| draft.config.door.call_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long a write waits for a locked key before it fails.",
    },
    Setting {
        name: "hazelcast.socket.bind.any",
        kind: Kind::Flag { get: |draft| draft.bind_any, set: |draft, value| draft.bind_any = value },
        unit: "",
        doc: "Whether to listen on every address of the machine (0.0.0.0).",
    },
    Setting {
        name: "hazelcast.socket.server.bind.any",
        kind: Kind::Flag { get: |draft| draft.bind_any, set: |draft, value| draft.bind_any = value },
        unit: "",
        doc: "The same as `hazelcast.socket.bind.any`.",
    },
    Setting {
        name: "hazelcast.max.no.heartbeat.seconds",
        kind: HEARTBEAT,
        unit: "seconds",
        doc: "The same as `filbert.cluster.heartbeat`.",
    },
    Setting {
        name: "filbert.cluster.heartbeat",
        kind: HEARTBEAT,
        unit: "seconds",
        doc: "A member of a cluster that has not answered for this long is taken for dead: others take its place. A leader is missed far \
              earlier, after one to two seconds.",
    },
    Setting {
        name: "filbert.cluster.pair",
        kind: Kind::Choice {
            of: &["stop", "continue"],
            get: |draft| if draft.cluster.pair_continues { "continue" } else { "stop" },
            set: |draft, word| draft.cluster.pair_continues = word == "continue",
        },
        unit: "",
        doc: "What one of two members with data does when the other one has not answered for `filbert.cluster.heartbeat`. It stops, as \
              neither is a majority; or it goes on alone, and so does the other one if it is alive and cut off: what one of both acknowledges \
              then is lost when they meet again.",
    },
    Setting {
        name: "filbert.cluster.tls.authority",
        kind: Kind::Text {
            what: PEM,
            get: |draft| draft.cluster.tls.as_ref().map_or_else(none, |tls| tls.authority.display().to_string()),
            set: |draft, text| set_path(&mut member_tls(draft).authority, text),
        },
        unit: "",
        doc: "Certificates of the authority that signs those of members; as `--member-tls-authority`. With it, members show each other \
              certificates, and all connections between them are encrypted.",
    },
    Setting {
        name: "filbert.cluster.tls.certificate",
        kind: Kind::Text {
            what: PEM,
            get: |draft| draft.cluster.tls.as_ref().map_or_else(none, |tls| tls.certificate.display().to_string()),
            set: |draft, text| set_path(&mut member_tls(draft).certificate, text),
        },
        unit: "",
        doc: "This member's certificate for connections between members, and those that vouch for it behind it; as \
              `--member-tls-certificate`.",
    },
    Setting {
        name: "filbert.cluster.tls.key",
        kind: Kind::Text {
            what: PEM,
            get: |draft| draft.cluster.tls.as_ref().map_or_else(none, |tls| tls.key.display().to_string()),
            set: |draft, text| set_path(&mut member_tls(draft).key, text),
        },
        unit: "",
        doc: "The private key of that certificate; as `--member-tls-key`.",
    },
    Setting {
        name: "filbert.cluster.tls.name",
        kind: Kind::Text {
            what: "a name",
            get: |draft| draft.cluster.tls.as_ref().and_then(|tls| tls.name.clone()).unwrap_or_else(none),
            set: |draft, text| {
                member_tls(draft).name = Some(text.to_owned());
                !text.is_empty()
            },
        },
        unit: "",
        doc: "A name that the certificates of all members have, where the authority signs others as well. Without it, whoever has a \
              certificate of the authority is taken for a member.",
    },
    Setting {
        name: "filbert.memory.max",
        kind: Kind::Bytes {
            get: |draft| draft.config.grid.memory_bytes_max.map(|bytes| bytes as u64),
            set: |draft, value| draft.config.grid.memory_bytes_max = Some(saturating(value)),
        },
        unit: "",
        doc: "Memory of the member; as `--memory-max`. Maps may take all of it, keys, values and tables together: a write beyond it \
              fails with an error; reads and removals go on. Statements and buffers share what maps leave, and have an eighth and a \
              sixteenth in any case (at least 64MiB and 32MiB, at most 1GiB and 512MiB). By default the program takes up to three quarters of the \
              machine's memory, or of its container's; an embedded member has no limit, as only you know what else \
              the process does.",
    },
    Setting {
        name: "filbert.buffers.memory.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.grid.buffers_bytes() as u64),
            set: |draft, value| draft.config.grid.buffers_bytes_max = Some(saturating(value)),
        },
        unit: "",
        doc: "Memory of all that is under way, beside the maps': messages and bodies that are being received, events that clients have not \
              read, what sessions keep. Without it, half of `filbert.memory.max`, at least 64MiB and at most 1GiB; never more than maps and statements leave of it. What does not fit is \
              refused; small requests always fit.",
    },
    Setting {
        name: "filbert.session.memory.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.postgres.session_bytes_max as u64),
            set: |draft, value| {
                draft.postgres.session_bytes_max = saturating(value);
                draft.http.session_bytes_max = saturating(value);
            },
        },
        unit: "",
        doc: "Memory of the settings and savepoints of one session of SQL; more are refused. Settings have some hundred bytes.",
    },
    Setting {
        name: "filbert.authentication.failures.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.http.guesses.free.into(),
            set: |draft, value| {
                let free = u32::try_from(value).unwrap_or(u32::MAX);
                draft.http.guesses.free = free;
                draft.postgres.guesses.free = free;
                draft.config.door.guesses.free = free;
            },
        },
        unit: "attempts",
        doc: "Wrong passwords that one address may show for one user at once, at each door; ten times as many for all users together. After \
              that, attempts are refused without looking at them, but for one in each `filbert.authentication.failures.pause.millis`.",
    },
    Setting {
        name: "filbert.authentication.failures.pause.millis",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| millis(draft.http.guesses.pause),
            set: |draft, value| {
                let pause = Duration::from_millis(value);
                draft.http.guesses.pause = pause;
                draft.postgres.guesses.pause = pause;
                draft.postgres.key_guesses.pause = pause;
                draft.config.door.guesses.pause = pause;
            },
        },
        unit: "milliseconds",
        doc: "After which time an address that was wrong too often may try once more, also with keys of cancel requests; 0 sets no limit.",
    },
    Setting {
        name: "filbert.http.hosts",
        kind: Kind::Text {
            what: "names with commas between them, such as filbert.example.com, *.example.org",
            get: |draft| if draft.http.hosts.is_empty() { none() } else { draft.http.hosts.join(", ") },
            set: |draft, text| {
                draft.http.hosts =
                    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
                true
            },
        },
        unit: "",
        doc: "Names by which HTTP is reached, beside addresses, names without a dot, and those under `local`, `internal`, `svc` and the like. \
              Requests to other names are refused where there are no users, since pages of strangers may send them.",
    },
    Setting {
        name: "filbert.http.origins",
        kind: Kind::Text {
            what: "origins with commas between them, such as https://dashboard.example",
            get: |draft| if draft.http.origins.is_empty() { none() } else { draft.http.origins.join(", ") },
            set: |draft, text| {
                draft.http.origins =
                    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
                true
            },
        },
        unit: "",
        doc: "Pages of other servers that may send requests, as browsers name them.",
    },
    Setting {
        name: "filbert.http.bodies.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.http.bodies_bytes_max as u64),
            set: |draft, value| draft.http.bodies_bytes_max = saturating(value),
        },
        unit: "",
        doc: "Memory of all bodies of HTTP requests and of what is made of them, as a part of `filbert.buffers.memory.max`; more are refused \
              with 429.",
    },
    Setting {
        name: "filbert.http.head.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.http.head_timeout),
            set: |draft, value| draft.http.head_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long a new connection over HTTP may take until the head of its first request is there; then it is closed.",
    },
    Setting {
        name: "filbert.http.idle.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.http.idle_timeout),
            set: |draft, value| draft.http.idle_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long a connection over HTTP may be idle between requests, the next one's head included; then it is closed.",
    },
    Setting {
        name: "filbert.http.body.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.http.body_timeout),
            set: |draft, value| draft.http.body_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long to wait for the next bytes of a body; then the request is refused with 408.",
    },
    Setting {
        name: "filbert.http.body.rate.min",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.http.body_rate_min as u64,
            set: |draft, value| draft.http.body_rate_min = saturating(value),
        },
        unit: "bytes a second",
        doc: "How fast a body must come, taken over all of it and after `filbert.http.body.timeout.millis`; a slower request is refused with 408.",
    },
    Setting {
        name: "filbert.http.enabled",
        kind: Kind::Flag { get: |draft| !draft.http_closed, set: |draft, on| draft.http_closed = !on },
        unit: "",
        doc: "Whether CrateDB's tools and browsers are served. Where clients must show a token, they are not: the other \
              doors know users and passwords only.",
    },
    Setting {
        name: "filbert.http.port",
        kind: Kind::Whole {
            min: 0,
            max: u16::MAX as u64,
            get: |draft| draft.http.listen.port().into(),
            set: |draft, value| draft.http.listen.set_port(u16::try_from(value).unwrap_or(u16::MAX)),
        },
        unit: "",
        doc: "The port of HTTP and the console; 0 takes any free one, and where it is taken the next ones are tried.",
    },
    Setting {
        name: "filbert.http.body.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.http.body_bytes_max as u64),
            set: |draft, value| draft.http.body_bytes_max = saturating(value),
        },
        unit: "",
        doc: "The largest body of an HTTP request; a larger one is refused.",
    },
    Setting {
        name: "filbert.http.connections.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.http.connections_max as u64,
            set: |draft, value| draft.http.connections_max = saturating(value),
        },
        unit: "connections",
        doc: "Connections over HTTP at once; one more is refused.",
    },
    Setting {
        name: "filbert.postgres.enabled",
        kind: Kind::Flag { get: |draft| !draft.postgres_closed, set: |draft, on| draft.postgres_closed = !on },
        unit: "",
        doc: "Whether PostgreSQL's drivers are served. Where clients must show a token, they are not.",
    },
    Setting {
        name: "filbert.postgres.port",
        kind: Kind::Whole {
            min: 0,
            max: u16::MAX as u64,
            get: |draft| draft.postgres.listen.port().into(),
            set: |draft, value| draft.postgres.listen.set_port(u16::try_from(value).unwrap_or(u16::MAX)),
        },
        unit: "",
        doc: "The port of PostgreSQL's protocol; 0 takes any free one, and where it is taken the next ones are tried.",
    },
    Setting {
        name: "filbert.postgres.connections.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.postgres.connections_max as u64,
            set: |draft, value| draft.postgres.connections_max = saturating(value),
        },
        unit: "connections",
        doc: "Connections over PostgreSQL's protocol at once; one more is refused.",
    },
    Setting {
        name: "filbert.postgres.message.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.postgres.message_bytes_max as u64),
            set: |draft, value| draft.postgres.message_bytes_max = saturating(value),
        },
        unit: "",
        doc: "The largest message over PostgreSQL's protocol; a larger one ends its connection.",
    },
    Setting {
        name: "filbert.postgres.tls.certificate",
        kind: Kind::Text {
            what: "the path of a PEM file",
            get: |draft| draft.postgres.tls.as_ref().map_or_else(none, |tls| tls.certificate.display().to_string()),
            set: |draft, text| set_path(&mut tls(draft).certificate, text),
        },
        unit: "",
        doc: "The certificate for connections of PostgreSQL's clients within TLS, and those that vouch for it behind it. The member does \
              not start without the key.",
    },
    Setting {
        name: "filbert.postgres.tls.key",
        kind: Kind::Text {
            what: "the path of a PEM file",
            get: |draft| draft.postgres.tls.as_ref().map_or_else(none, |tls| tls.key.display().to_string()),
            set: |draft, text| set_path(&mut tls(draft).key, text),
        },
        unit: "",
        doc: "The private key of that certificate.",
    },
    Setting {
        name: "filbert.postgres.tls.required",
        kind: Kind::Flag {
            get: |draft| draft.postgres.tls.as_ref().is_some_and(|tls| tls.required),
            set: |draft, on| {
                // Switching the requirement off must not require a certificate.
                if on || draft.postgres.tls.is_some() {
                    tls(draft).required = on;
                }
            },
        },
        unit: "",
        doc: "Whether connections without TLS are refused.",
    },
    Setting {
        name: "filbert.copy.directory",
        kind: Kind::Text {
            what: "the path of a directory",
            get: |draft| shown(draft.config.query.copy_directory.as_ref()),
            set: |draft, text| set_path(draft.config.query.copy_directory.get_or_insert_default(), text),
        },
        unit: "",
        doc: "The directory whose files `COPY table FROM 'path'` and `TO 'path'` read and write. Without it, COPY goes to and from clients \
              only.",
    },
    Setting {
        name: "filbert.jobs.log.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.query.jobs_log_max as u64,
            set: |draft, value| draft.config.query.jobs_log_max = saturating(value),
        },
        unit: "statements",
        doc: "Ended statements that `sys.jobs_log` shows.",
    },
    Setting {
        name: "filbert.slow.statement.millis",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.query.slow_statement_ms.unwrap_or(0),
            set: |draft, value| draft.config.query.slow_statement_ms = (value > 0).then_some(value),
        },
        unit: "ms",
        doc: "A statement that takes longer is logged, with its time, its user and its text; 0 logs none.",
    },
    Setting {
        name: "filbert.log.hide.literals",
        kind: Kind::Flag {
            get: |draft| draft.config.query.hides_literals,
            set: |draft, on| draft.config.query.hides_literals = on,
        },
        unit: "",
        doc: "Whether logged statements have `?` in place of their literals, which may be personal data or secrets.",
    },
    Setting {
        name: "filbert.query.threads",
        kind: Kind::Number {
            min: 1,
            max: 1_024,
            unset: "one for each processor",
            get: |draft| draft.config.query.threads.map(|threads| threads as u64),
            set: |draft, value| draft.config.query.threads = Some(saturating(value)),
        },
        unit: "threads",
        doc: "Threads that queries run on, apart from those that serve clients.",
    },
    Setting {
        name: "filbert.query.memory.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.query.query_memory_bytes(draft.config.grid.memory_bytes_max) as u64),
            set: |draft, value| draft.config.query.query_memory_bytes_max = Some(saturating(value)),
        },
        unit: "",
        doc: "Memory that one query may hold for joining, grouping and sorting. Sorting and grouping go to disk beyond \
              it; a join fails with an error. Without it, a quarter of `filbert.memory.max`, at least 64MiB and at most 1GiB.",
    },
    Setting {
        name: "filbert.queries.memory.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.query.queries_memory_bytes(draft.config.grid.memory_bytes_max) as u64),
            set: |draft, value| draft.config.query.queries_memory_bytes_max = Some(saturating(value)),
        },
        unit: "",
        doc: "Memory that all queries together may hold. Without it, half of `filbert.memory.max`, at least 128MiB and at most 2GiB; never more than maps and buffers leave of it.",
    },
    Setting {
        name: "filbert.memory.huge.pages",
        kind: Kind::Flag { get: |draft| draft.config.huge_pages, set: |draft, on| draft.config.huge_pages = on },
        unit: "",
        doc: "Whether memory may be in huge pages of 2 MiB. With them, pipelined gets of a million entries take up to a tenth less \
              processor time; queries may then hold several times the memory that they use, and `filbert.memory.max` with the \
              reserve of 256 MiB is no bound.",
    },
    Setting {
        name: "filbert.queries.spill.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.query.queries_spill_bytes_max),
            set: |draft, value| draft.config.query.queries_spill_bytes_max = value,
        },
        unit: "",
        doc: "Disk space that all queries together may use for rows that they sort or group and cannot hold in memory.",
    },
    Setting {
        name: "filbert.queries.spill.directory",
        kind: Kind::Text {
            what: "the path of a directory",
            get: |draft| shown(draft.config.query.spill_directory.as_ref()),
            set: |draft, text| set_path(draft.config.query.spill_directory.get_or_insert_default(), text),
        },
        unit: "",
        doc: "The directory of these rows. It is created when it is missing. Without it, the directory of the system for temporary \
              files.",
    },
    Setting {
        name: "filbert.query.lock.wait.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.query.lock_wait_ms,
            set: |draft, value| draft.config.query.lock_wait_ms = value,
        },
        unit: "milliseconds",
        doc: "How long a statement that changes rows waits for a key that others have locked, each time that it does, before \
              it fails and changes nothing.",
    },
    Setting {
        name: "filbert.plans.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.query.plans_max as u64,
            set: |draft, value| draft.config.query.plans_max = saturating(value),
        },
        unit: "plans",
        doc: "Plans of statements that are kept, by their texts.",
    },
    Setting {
        name: "filbert.statement.bytes.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.query.statement_bytes_max as u64),
            set: |draft, value| draft.config.query.statement_bytes_max = saturating(value),
        },
        unit: "",
        doc: "Length of one SQL statement.",
    },
    Setting {
        name: "filbert.statement.parameters.max",
        kind: Kind::Whole {
            min: 0,
            max: 100_000,
            get: |draft| draft.config.query.parameters_max as u64,
            set: |draft, value| {
                draft.config.query.parameters_max = saturating(value);
                draft.http.parameters_max = saturating(value);
            },
        },
        unit: "parameters",
        doc: "Values that one SQL statement may take.",
    },
    Setting {
        name: "filbert.lock.waiters.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.grid.lock_waiters_max as u64,
            set: |draft, value| draft.config.grid.lock_waiters_max = saturating(value),
        },
        unit: "calls",
        doc: "Calls that may wait for locked keys at once; each holds its key and value in memory.",
    },
    Setting {
        name: "filbert.objects.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.grid.objects_max as u64,
            set: |draft, value| draft.config.grid.objects_max = saturating(value),
        },
        unit: "objects",
        doc: "Maps and other distributed objects; an empty one costs a few bytes in every partition.",
    },
    Setting {
        name: "filbert.schemas.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.grid.schemas_max as u64,
            set: |draft, value| draft.config.grid.schemas_max = saturating(value),
        },
        unit: "schemas",
        doc: "Compact schemas kept for clients.",
    },
    Setting {
        name: "filbert.schema.fields.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.grid.schema_fields_max as u64,
            set: |draft, value| draft.config.grid.schema_fields_max = saturating(value),
        },
        unit: "fields",
        doc: "Fields of one Compact schema.",
    },
    Setting {
        name: "filbert.listeners.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.grid.listeners_max as u64,
            set: |draft, value| draft.config.grid.listeners_max = saturating(value),
        },
        unit: "listeners",
        doc: "Listeners of all clients together; each change asks those of its map.",
    },
    Setting {
        name: "filbert.client.statistics.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.grid.client_statistics_bytes_max as u64),
            set: |draft, value| draft.config.grid.client_statistics_bytes_max = saturating(value),
        },
        unit: "",
        doc: "The statistics text that one client may leave here; stock clients send a few thousand bytes.",
    },
    Setting {
        name: "filbert.expiry.interval.max.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| u64::try_from(draft.config.grid.expiry_interval_ms_max).unwrap_or(0),
            set: |draft, value| draft.config.grid.expiry_interval_ms_max = i64::try_from(value).unwrap_or(i64::MAX),
        },
        unit: "milliseconds",
        doc: "How long expired entries may stay in memory. Readers never see them.",
    },
    Setting {
        name: "filbert.expiry.interval.min.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| u64::try_from(draft.config.grid.expiry_interval_ms_min).unwrap_or(0),
            set: |draft, value| draft.config.grid.expiry_interval_ms_min = i64::try_from(value).unwrap_or(i64::MAX),
        },
        unit: "milliseconds",
        doc: "The shortest pause between two sweeps of expired entries, leases and lock waits.",
    },
    Setting {
        name: "filbert.expiry.batch.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.grid.expire_batch_max as u64,
            set: |draft, value| draft.config.grid.expire_batch_max = saturating(value),
        },
        unit: "entries",
        doc: "Entries that a sweep frees before it lets others at the partition.",
    },
    Setting {
        name: "filbert.connections.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.door.connections_max as u64,
            set: |draft, value| draft.config.door.connections_max = saturating(value),
        },
        unit: "connections",
        doc: "Connections of clients at once; one more is refused.",
    },
    Setting {
        name: "filbert.message.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.message_bytes_max as u64),
            set: |draft, value| draft.config.door.message_bytes_max = saturating(value),
        },
        unit: "",
        doc: "The largest message that a client may send; a larger one ends its connection.",
    },
    Setting {
        name: "filbert.write.buffer.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.write_buffer_bytes_max as u64),
            set: |draft, value| draft.config.door.write_buffer_bytes_max = saturating(value),
        },
        unit: "",
        doc: "Replies that may wait for a slow client; beyond it, no more of its requests are read.",
    },
    Setting {
        name: "filbert.read.buffer",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.read_buffer_bytes as u64),
            set: |draft, value| draft.config.door.read_buffer_bytes = saturating(value),
        },
        unit: "",
        doc: "What is read from a connection at once.",
    },
    Setting {
        name: "filbert.unauthenticated.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.config.door.unauthenticated_timeout),
            set: |draft, value| draft.config.door.unauthenticated_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long a connection may take to authenticate.",
    },
    Setting {
        name: "filbert.event.buffer.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.event_buffer_bytes_max as u64),
            set: |draft, value| draft.config.door.event_buffer_bytes_max = saturating(value),
        },
        unit: "",
        doc: "Events that may wait for a slow client; beyond it, its connection is ended, since a client that lost events would be wrong without knowing it.",
    },
    Setting {
        name: "filbert.events.memory.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.events_bytes_max as u64),
            set: |draft, value| draft.config.door.events_bytes_max = saturating(value),
        },
        unit: "",
        doc: "Memory of events that wait for all Hazelcast clients together, as a part of `filbert.buffers.memory.max` and at most half of it. A \
              client with many of them for which there is no room is disconnected.",
    },
    Setting {
        name: "filbert.query.cache.listeners.max",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |draft| draft.config.door.query_cache_listeners_max as u64,
            set: |draft, value| draft.config.door.query_cache_listeners_max = saturating(value),
        },
        unit: "listeners",
        doc: "Listeners to query caches of all clients; one more is refused.",
    },
    Setting {
        name: "filbert.unauthenticated.message.max",
        kind: Kind::Bytes {
            get: |draft| Some(draft.config.door.unauthenticated_message_bytes_max as u64),
            set: |draft, value| draft.config.door.unauthenticated_message_bytes_max = saturating(value),
        },
        unit: "",
        doc: "The largest message of a client that has not authenticated yet.",
    },
    Setting {
        name: "filbert.connection.handles.max",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| draft.config.door.handles_max as u64,
            set: |draft, value| draft.config.door.handles_max = saturating(value),
        },
        unit: "maps",
        doc: "Maps that a connection keeps at hand; more are looked up each time.",
    },
    Setting {
        name: "filbert.close.timeout.millis",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |draft| millis(draft.config.door.close_timeout),
            set: |draft, value| draft.config.door.close_timeout = Duration::from_millis(value),
        },
        unit: "milliseconds",
        doc: "How long a connection that is being ended may take to read its last replies.",
    },
];

const PEM: &str = "the path of a PEM file";

const HEARTBEAT: Kind<Draft> = Kind::Whole {
    min: 1,
    max: INT_MAX,
    get: |draft| draft.cluster.heartbeat.as_secs(),
    set: |draft, value| draft.cluster.heartbeat = Duration::from_secs(value),
};

/// Returns the TLS settings of connections between members. Each of these settings enables TLS.
fn member_tls(draft: &mut Draft) -> &mut TlsFiles {
    draft.cluster.tls.get_or_insert_default()
}

fn none() -> String {
    "none".to_owned()
}

/// Sets a path, and returns whether it is one.
fn set_path(path: &mut PathBuf, text: &str) -> bool {
    *path = text.into();
    !text.is_empty()
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(none, |path| path.display().to_string())
}

/// Returns the TLS settings of the PostgreSQL front door. Each of these settings enables TLS.
fn tls(draft: &mut Draft) -> &mut PostgresTls {
    let nothing = || PostgresTls { certificate: PathBuf::new(), key: PathBuf::new(), required: false };
    draft.postgres.tls.get_or_insert_with(nothing)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
