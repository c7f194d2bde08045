//! The numbers of Hazelcast's own classes of predicates, aggregators, projections and results.
//!
//! Source: Hazelcast's `PredicateDataSerializerHook`, `AggregatorDataSerializerHook`,
//! `MapDataSerializerHook` and the Python client's predicate.py, aggregator.py, projection.py and
//! serialization/objects.py.

use crate::TypeId;

/// Java's `HashSet`, laid out as a list.
pub(super) const HASH_SET: TypeId = TypeId(-37);
/// Java's `LinkedHashSet`, laid out as a list.
pub(super) const LINKED_HASH_SET: TypeId = TypeId(-39);
/// The class of the builder that `Predicates.newPredicateBuilder` returns in Java.
pub(super) const PREDICATE_BUILDER: &str = "com.hazelcast.query.impl.PredicateBuilderImpl";
/// The factory of the predicates.
pub(super) const PREDICATES: i32 = -20;
/// The factory of the aggregators.
pub(super) const AGGREGATORS: i32 = -29;
/// The factory of the projections.
pub(super) const PROJECTIONS: i32 = -30;
/// The factory and the class of an entry, the result of an aggregator.
pub(super) const ENTRY: (i32, i32) = (-4, 120);
/// The factory and the class of a set of distinct values.
pub(super) const DISTINCT_SET: (i32, i32) = (AGGREGATORS, 19);

pub(super) mod predicate {
    pub(in super::super) const SQL: i32 = 0;
    pub(in super::super) const AND: i32 = 1;
    pub(in super::super) const BETWEEN: i32 = 2;
    pub(in super::super) const EQUAL: i32 = 3;
    pub(in super::super) const GREATER_LESS: i32 = 4;
    pub(in super::super) const LIKE: i32 = 5;
    pub(in super::super) const ILIKE: i32 = 6;
    pub(in super::super) const IN: i32 = 7;
    pub(in super::super) const INSTANCE_OF: i32 = 8;
    pub(in super::super) const NOT_EQUAL: i32 = 9;
    pub(in super::super) const NOT: i32 = 10;
    pub(in super::super) const OR: i32 = 11;
    pub(in super::super) const REGEX: i32 = 12;
    pub(in super::super) const FALSE: i32 = 13;
    pub(in super::super) const TRUE: i32 = 14;
    pub(in super::super) const PAGING: i32 = 15;
    pub(in super::super) const PARTITION: i32 = 16;
    pub(in super::super) const PARTITIONS: i32 = 21;
}

pub(super) mod aggregator {
    pub(in super::super) const BIG_DECIMAL_AVG: i32 = 0;
    pub(in super::super) const BIG_DECIMAL_SUM: i32 = 1;
    pub(in super::super) const BIG_INTEGER_AVG: i32 = 2;
    pub(in super::super) const BIG_INTEGER_SUM: i32 = 3;
    pub(in super::super) const COUNT: i32 = 4;
    pub(in super::super) const DISTINCT: i32 = 5;
    pub(in super::super) const DOUBLE_AVG: i32 = 6;
    pub(in super::super) const DOUBLE_SUM: i32 = 7;
    pub(in super::super) const FIXED_SUM: i32 = 8;
    pub(in super::super) const FLOATING_SUM: i32 = 9;
    pub(in super::super) const INTEGER_AVG: i32 = 10;
    pub(in super::super) const INTEGER_SUM: i32 = 11;
    pub(in super::super) const LONG_AVG: i32 = 12;
    pub(in super::super) const LONG_SUM: i32 = 13;
    pub(in super::super) const MAX: i32 = 14;
    pub(in super::super) const MIN: i32 = 15;
    pub(in super::super) const NUMBER_AVG: i32 = 16;
    pub(in super::super) const MAX_BY: i32 = 17;
    pub(in super::super) const MIN_BY: i32 = 18;
}

pub(super) mod projection {
    pub(in super::super) const SINGLE: i32 = 0;
    pub(in super::super) const MULTI: i32 = 1;
    pub(in super::super) const IDENTITY: i32 = 2;
}
