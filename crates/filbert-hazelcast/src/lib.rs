//! filbert-hazelcast.
