//! Hazelcast settings that Filbert does not use: settings without an effect, and the missing
//! features of unsupported settings. Keys are dotted names in which `*` replaces a name that the
//! user chose.

/// Settings that can be ignored without a loss: Filbert has nothing that they could change.
pub(crate) const NO_EFFECT: &[(&str, &str)] = &[
    ("map.*.cache-deserialized-values", "values are never deserialized"),
    ("map.*.merge-policy", "without a split cluster there is nothing to merge"),
    ("map.*.metadata-policy", "metadata is never made ahead of a query"),
    ("map.*.near-cache.cache-local-entries", "a near cache lives in a client"),
    ("map.*.near-cache.name", "the map names it"),
    ("map.*.near-cache.preloader", "a near cache lives in a client"),
    ("map.*.near-cache.serialize-keys", "a near cache lives in a client"),
    ("member-attributes", "nothing asks for them"),
    ("native-memory.allocator-type", "there is one allocator"),
    ("native-memory.metadata-space-percentage", "metadata needs no space of its own"),
    ("native-memory.min-block-size", "the allocator chooses"),
    ("native-memory.page-size", "the allocator chooses"),
    ("network.outbound-ports", "connections to other members are from any port"),
    ("network.reuse-address", "the listening socket always reuses its address"),
    ("network.tpc-socket", "a network thread runs the operation itself"),
    (
        "properties.hazelcast.application.validation.token",
        "members compare names, counts of partitions and the secret of --secret-file",
    ),
    ("properties.hazelcast.discovery.enabled", "members of a cluster are named by --join"),
    ("properties.hazelcast.logging.type", "logging is set by --log"),
    ("properties.hazelcast.phone.home.enabled", "nothing is ever reported to anyone"),
    ("properties.hazelcast.prefer.ipv4.stack", "the listening address tells the stack"),
    ("properties.hazelcast.shutdownhook.enabled", "SIGTERM always ends the program in order"),
    ("properties.hazelcast.shutdownhook.policy", "SIGTERM always ends the program in order"),
    ("security.client-block-unmapped-actions", "there are no actions that ship code"),
    ("serialization.allow-override-default-serializers", "values stay as the client serialized them"),
    ("serialization.allow-unsafe", "values stay as the client serialized them"),
    ("serialization.check-class-def-errors", "values stay as the client serialized them"),
    ("serialization.compact-serialization", "schemas come from the clients"),
    ("serialization.data-serializable-factories", "values stay as the client serialized them"),
    ("serialization.enable-compression", "Java objects stay as the client serialized them"),
    ("serialization.enable-shared-object", "Java objects stay as the client serialized them"),
    ("serialization.global-serializer", "values stay as the client serialized them"),
    ("serialization.java-serialization-filter", "Java objects are never deserialized"),
    ("serialization.portable-factories", "values stay as the client serialized them"),
    ("serialization.portable-version", "values stay as the client serialized them"),
    ("serialization.serializers", "values stay as the client serialized them"),
    ("serialization.use-native-byte-order", "values stay as the client serialized them"),
    ("tpc", "a network thread runs the operation itself"),
];

/// Settings that Filbert does not need. The user gets a notice.
pub(crate) const NOT_NEEDED: &[(&str, &str)] = &[("license-key", "every feature is there without a licence")];

/// The reason for settings of other data structures.
const STRUCTURE: &str = "only maps are served";
/// The reason for unsupported ways to discover members.
const JOIN: &str = "members of a cluster are named, by network.join.tcp-ip or --join";

/// The missing feature for each unsupported setting.
const REASONS: &[(&str, &str)] = &[
    ("advanced-network", "only network is read"),
    ("cache", STRUCTURE),
    ("cardinality-estimator", STRUCTURE),
    ("config-replacers", "replacers are Java code; only variables of the environment are replaced"),
    ("cp-subsystem", "there are no CP data structures"),
    ("crdt-replication", STRUCTURE),
    ("data-connection", "there are no connections to other systems"),
    ("durable-executor-service", STRUCTURE),
    ("dynamic-configuration", "the configuration is read at start only"),
    ("executor-service", STRUCTURE),
    ("flake-id-generator", STRUCTURE),
    ("hot-restart-persistence", "maps live in memory only"),
    ("import", "the imported file is not read; write its settings here"),
    ("jet", "there are no jobs"),
    ("list", STRUCTURE),
    ("listeners", "listeners in the configuration are Java code; add them from a client"),
    ("local-device", "maps live in memory only"),
    ("management-center", "there is no Management Center connection"),
    ("map.*.attributes", "custom attribute extractors are Java code"),
    ("map.*.data-persistence", "maps live in memory only"),
    ("map.*.entry-listeners", "listeners in the configuration are Java code; add them from a client"),
    ("map.*.hot-restart", "maps live in memory only"),
    ("map.*.interceptors", "interceptors are Java code"),
    ("map.*.map-store", "values are not loaded from or written to another store"),
    ("map.*.partition-lost-listeners", "listeners in the configuration are Java code; add them from a client"),
    ("map.*.query-caches", "clients declare their query caches"),
    ("map.*.split-brain-protection-ref", "most of a partition's members must be there in any case"),
    ("map.*.tiered-store", "maps live in memory only"),
    ("map.*.user-code-namespace", "there is no Java code to run"),
    ("map.*.wan-replication-ref", "changes are not sent to other clusters"),
    ("metrics", "metrics are at /metrics over HTTP"),
    ("multimap", STRUCTURE),
    ("native-memory.persistent-memory", "maps live in memory only"),
    ("network.failure-detector", "members of a cluster hear each other by its groups' heartbeats"),
    ("network.join.auto-detection", JOIN),
    ("network.join.aws", JOIN),
    ("network.join.azure", JOIN),
    ("network.join.discovery-strategies", JOIN),
    ("network.join.eureka", JOIN),
    ("network.join.gcp", JOIN),
    ("network.join.kubernetes", JOIN),
    ("network.join.multicast", JOIN),
    ("network.memcache-protocol", "there is no memcache endpoint"),
    ("network.rest-api", "there is no REST endpoint"),
    ("network.socket-interceptor", "socket interceptors are Java code"),
    ("network.ssl", "clients are served without TLS"),
    ("partition-group", "copies are spread over all members alike"),
    ("persistence", "maps live in memory only"),
    ("pn-counter", STRUCTURE),
    ("queue", STRUCTURE),
    ("reliable-topic", STRUCTURE),
    ("replicatedmap", STRUCTURE),
    ("ringbuffer", STRUCTURE),
    ("scheduled-executor-service", STRUCTURE),
    ("security.client-permission-policy", "every authenticated client may do everything"),
    ("security.client-permissions", "every authenticated client may do everything"),
    ("set", STRUCTURE),
    ("split-brain-protection", "most of a partition's members must be there in any case"),
    ("sql", "limits of statements are properties, filbert.query.*"),
    ("topic", STRUCTURE),
    ("user-code-deployment", "there is no Java code to run"),
    ("user-code-namespaces", "there is no Java code to run"),
    ("vector-collection", STRUCTURE),
    ("wan-replication", "changes are not sent to other clusters"),
];

/// Whether a setting can be ignored without a notice.
pub(crate) fn has_no_effect(pattern: &str) -> bool {
    find(NO_EFFECT, pattern).is_some()
}

/// The reason why a setting is not needed, if it is in the table.
pub(crate) fn not_needed(pattern: &str) -> Option<&'static str> {
    find(NOT_NEEDED, pattern)
}

/// The missing feature of a setting, if it is in the table.
pub(crate) fn reason(pattern: &str) -> Option<&'static str> {
    find(REASONS, pattern)
}

fn find(table: &[(&str, &'static str)], pattern: &str) -> Option<&'static str> {
    table.iter().find(|(name, _)| *name == pattern).map(|(_, text)| *text)
}

/// Returns the candidate that `name` is probably a typo of, if there is one.
pub(crate) fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // A distance of 2 is a typo in a long name, but another word in a short name.
    let distance_max = if name.chars().count() >= 6 { 2 } else { 1 };
    candidates
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (b, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            *cell = (diagonal + usize::from(a != *b)).min(above + 1).min(before + 1);
            diagonal = above;
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_wrong_letters() {
        for (left, right, expect) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("size", "size", 0),
            ("sise", "size", 1),
        ] {
            assert_eq!(distance(left, right), expect, "{left} {right}");
        }
    }

    #[test]
    fn only_a_slip_is_taken_for_another_name() {
        let names = ["time-to-live-seconds", "max-idle-seconds", "size"];
        assert_eq!(nearest("time-to-live-second", &names), Some("time-to-live-seconds"));
        assert_eq!(nearest("sise", &names), Some("size"));
        assert_eq!(nearest("side-effect", &names), None);
        assert_eq!(nearest("map-store", &names), None);
    }
}
