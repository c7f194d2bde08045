//! Reads predicates, aggregators and projections from the blobs that clients send.
//!
//! ```text
//! type id -2 │ flags u8 │ factory id i32 │ class id i32 │ [version, 2 bytes] │ fields
//!
//! flags: bit 0 identified, bit 1 versioned
//! ```

use super::class::{self, aggregator, predicate, projection};
use super::object::Source;
use super::{Aggregator, IterationType, PagingPredicate, Predicate, Projection};
use crate::items::broken;
use crate::{Blob, DataError, TypeId};

impl Predicate {
    /// Reads a predicate.
    ///
    /// # Errors
    ///
    /// The bytes are broken, nest predicates more than 200 deep, or are not one of Hazelcast's own
    /// predicates.
    pub fn from_blob(blob: &[u8]) -> Result<Predicate, DataError> {
        let mut source = Source::of(blob)?;
        source.predicate_payload(true)
    }
}

impl PagingPredicate {
    /// Reads a paging predicate from a blob. Its anchors are ignored: they only save work.
    ///
    /// # Errors
    ///
    /// As [`Predicate::from_blob`], or the paging predicate has a comparator.
    pub fn from_blob(blob: &[u8]) -> Result<PagingPredicate, DataError> {
        let mut source = Source::of(blob)?;
        let class = source.head(class::PREDICATES, "a paging predicate")?;
        if class != predicate::PAGING {
            return Err(broken(source.input(), format!("the predicate class {class}"), "a paging predicate (15)"));
        }
        let predicate = source.optional_predicate()?;
        if TypeId(source.input().i32()?) != TypeId::NULL {
            let expected = "none, since comparators are Java code, which this server does not run,";
            return Err(broken(source.input(), "a comparator", expected));
        }
        let page = source.size("page", 0)?;
        let page_size = source.size("page size", 1)?;
        let iteration = match source.input().text()? {
            Some("KEY") => IterationType::Key,
            Some("VALUE") => IterationType::Value,
            Some("ENTRY") | None => IterationType::Entry,
            Some(other) => {
                return Err(broken(source.input(), format!("the iteration type {other:?}"), "KEY, VALUE or ENTRY"));
            }
        };
        Ok(PagingPredicate { predicate, page_size, page, iteration })
    }
}

impl Aggregator {
    /// Reads an aggregator. Its accumulated state is ignored; clients send it as zeros.
    ///
    /// # Errors
    ///
    /// The bytes are broken, or are not one of Hazelcast's own aggregators.
    pub fn from_blob(blob: &[u8]) -> Result<Aggregator, DataError> {
        let mut source = Source::of(blob)?;
        let class = source.head(class::AGGREGATORS, "an aggregator")?;
        let path = |source: &mut Source<'_>| Ok::<_, DataError>(source.input().text()?.map(str::to_owned));
        Ok(match class {
            aggregator::BIG_DECIMAL_AVG => Aggregator::BigDecimalAvg(path(&mut source)?),
            aggregator::BIG_DECIMAL_SUM => Aggregator::BigDecimalSum(path(&mut source)?),
            aggregator::BIG_INTEGER_AVG => Aggregator::BigIntegerAvg(path(&mut source)?),
            aggregator::BIG_INTEGER_SUM => Aggregator::BigIntegerSum(path(&mut source)?),
            aggregator::COUNT => Aggregator::Count(path(&mut source)?),
            aggregator::DISTINCT => Aggregator::Distinct(path(&mut source)?),
            aggregator::DOUBLE_AVG => Aggregator::DoubleAvg(path(&mut source)?),
            aggregator::DOUBLE_SUM => Aggregator::DoubleSum(path(&mut source)?),
            aggregator::FIXED_SUM => Aggregator::FixedSum(path(&mut source)?),
            aggregator::FLOATING_SUM => Aggregator::FloatingSum(path(&mut source)?),
            aggregator::INTEGER_AVG => Aggregator::IntegerAvg(path(&mut source)?),
            aggregator::INTEGER_SUM => Aggregator::IntegerSum(path(&mut source)?),
            aggregator::LONG_AVG => Aggregator::LongAvg(path(&mut source)?),
            aggregator::LONG_SUM => Aggregator::LongSum(path(&mut source)?),
            aggregator::MAX => Aggregator::Max(path(&mut source)?),
            aggregator::MIN => Aggregator::Min(path(&mut source)?),
            aggregator::NUMBER_AVG => Aggregator::NumberAvg(path(&mut source)?),
            aggregator::MAX_BY => Aggregator::MaxBy(path(&mut source)?),
            aggregator::MIN_BY => Aggregator::MinBy(path(&mut source)?),
            _ => return Err(broken(source.input(), format!("the aggregator class {class}"), "0 to 18")),
        })
    }
}

impl Projection {
    /// Reads a projection. A user-defined projection is read as [`Projection::Unknown`].
    ///
    /// # Errors
    ///
    /// The bytes are broken.
    pub fn from_blob(blob: &[u8]) -> Result<Projection, DataError> {
        let mut source = Source::of(blob)?;
        let Ok(class) = source.head(class::PROJECTIONS, "a projection") else {
            return Ok(Projection::Unknown(Blob::from(blob)));
        };
        match class {
            projection::SINGLE => Ok(Projection::Single(source.attribute()?)),
            projection::MULTI => {
                let length = source.input().length(4)?.ok_or_else(|| source.input().null())?;
                (0..length).map(|_| source.attribute()).collect::<Result<_, _>>().map(Projection::Multi)
            }
            projection::IDENTITY => Ok(Projection::Identity),
            _ => Ok(Projection::Unknown(Blob::from(blob))),
        }
    }
}

impl Source<'_> {
    /// Reads the bytes before the fields of an object of this factory. Returns the class id.
    fn head(&mut self, factory: i32, expected: &'static str) -> Result<i32, DataError> {
        let type_id = self.input().type_id();
        match type_id {
            TypeId::IDENTIFIED => {}
            TypeId::NULL => return Err(self.input().null()),
            _ => return Err(DataError::WrongType { expected: TypeId::IDENTIFIED, found: type_id }),
        }
        let [flags] = self.input().array()?;
        if flags & 1 == 0 {
            let name = self.input().text()?.unwrap_or_default();
            let found = format!("the Java class {name:?}, whose code this server does not have");
            return Err(broken(self.input(), found, expected));
        }
        let (found, class) = (self.input().i32()?, self.input().i32()?);
        if flags & 2 != 0 {
            self.input().take(2)?;
        }
        if found != factory {
            let found = format!("a class of the factory {found} ({class}), whose code this server does not have");
            return Err(broken(self.input(), found, expected));
        }
        Ok(class)
    }

    fn attribute(&mut self) -> Result<String, DataError> {
        self.input().text()?.map(str::to_owned).ok_or_else(|| broken(self.input(), "no attribute", "its path"))
    }

    fn pattern(&mut self) -> Result<Option<String>, DataError> {
        Ok(self.input().text()?.map(str::to_owned))
    }

    fn flag(&mut self) -> Result<bool, DataError> {
        Ok(self.input().array::<1>()? != [0])
    }

    fn size(&mut self, what: &str, min: usize) -> Result<usize, DataError> {
        let number = self.input().i32()?;
        let size = usize::try_from(number).ok().filter(|size| *size >= min);
        size.ok_or_else(|| broken(self.input(), format!("the {what} {number}"), "one that counts"))
    }

    /// Reads a nested predicate: its type id, then its payload.
    fn predicate(&mut self) -> Result<Predicate, DataError> {
        self.nested(|source| source.predicate_payload(false))
    }

    fn optional_predicate(&mut self) -> Result<Option<Predicate>, DataError> {
        if self.input().clone().i32()? == TypeId::NULL.0 {
            self.input().i32()?;
            return Ok(None);
        }
        self.predicate().map(Some)
    }

    fn predicates(&mut self) -> Result<Vec<Predicate>, DataError> {
        let length = self.input().length(4)?.unwrap_or_default();
        // Not `with_capacity`: a predicate in memory is far larger than the minimum of 4 bytes of a
        // serialized predicate.
        (0..length).map(|_| self.predicate()).collect()
    }

    /// Reads a predicate after its type id. `last`: nothing follows the predicate.
    fn predicate_payload(&mut self, last: bool) -> Result<Predicate, DataError> {
        if let Some(built) = self.built()? {
            return Ok(built);
        }
        let class = self.head(class::PREDICATES, "one of Hazelcast's own predicates")?;
        match class {
            predicate::AND => self.predicates().map(Predicate::And),
            predicate::OR => self.predicates().map(Predicate::Or),
            predicate::NOT => Ok(Predicate::Not(Box::new(self.predicate()?))),
            predicate::PARTITION => {
                let key = self.blob()?;
                Ok(Predicate::Partition { key, predicate: Box::new(self.predicate()?) })
            }
            predicate::PARTITIONS => {
                let keys = self.partition_keys()?;
                Ok(Predicate::Partitions { keys, predicate: Box::new(self.predicate()?) })
            }
            _ => self.condition(class, last),
        }
    }

    /// Reads a predicate of this class that contains no other. It is a function of its own, so that
    /// a level of nesting uses little of the stack.
    fn condition(&mut self, class: i32, last: bool) -> Result<Predicate, DataError> {
        Ok(match class {
            predicate::SQL => match self.pattern()? {
                Some(text) => Predicate::Sql(text),
                None => return Err(broken(self.input(), "no condition", "its text")),
            },
            predicate::BETWEEN => {
                // The upper bound comes first.
                let (attribute, to, from) = (self.attribute()?, self.value(false)?, self.value(last)?);
                Predicate::Between { attribute, from, to }
            }
            predicate::EQUAL => Predicate::Equal(self.attribute()?, self.value(last)?),
            predicate::NOT_EQUAL => Predicate::NotEqual(self.attribute()?, self.value(last)?),
            predicate::GREATER_LESS => {
                let (attribute, value) = (self.attribute()?, self.value(false)?);
                Predicate::Compare { attribute, value, equal: self.flag()?, less: self.flag()? }
            }
            predicate::LIKE | predicate::ILIKE => Predicate::Like {
                attribute: self.attribute()?,
                pattern: self.pattern()?,
                ignore_case: class == predicate::ILIKE,
            },
            predicate::REGEX => Predicate::Regex { attribute: self.attribute()?, pattern: self.pattern()? },
            predicate::IN => {
                let attribute = self.attribute()?;
                let length = self.input().length(4)?.unwrap_or_default();
                let values = (0..length).map(|number| self.value(last && number + 1 == length));
                Predicate::In(attribute, values.collect::<Result<_, _>>()?)
            }
            predicate::INSTANCE_OF => match self.pattern()? {
                Some(name) => Predicate::InstanceOf(name),
                None => return Err(broken(self.input(), "no class", "its name")),
            },
            predicate::FALSE => Predicate::False,
            predicate::TRUE => Predicate::True,
            predicate::PAGING => {
                let expected = "one without pages, since pages have messages of their own,";
                return Err(broken(self.input(), "a paging predicate within another request", expected));
            }
            _ => return Err(broken(self.input(), format!("the predicate class {class}"), "0 to 16 or 21")),
        })
    }

    /// Reads the object that Java's `PredicateBuilder` creates, which has a class name instead of a
    /// class number: the last requested attribute, and a list of predicates. The first predicate of
    /// the list is the result. Returns `None` for any other object.
    fn built(&mut self) -> Result<Option<Predicate>, DataError> {
        let mut ahead = self.input().clone();
        if ahead.type_id() != TypeId::IDENTIFIED {
            return Ok(None);
        }
        let [flags] = ahead.array()?;
        if flags & 1 != 0 || ahead.text()? != Some(class::PREDICATE_BUILDER) {
            return Ok(None);
        }
        if flags & 2 != 0 {
            ahead.take(2)?;
        }
        *self.input() = ahead;
        self.input().text()?;
        let first = self.predicates()?.into_iter().next();
        first.map(Some).ok_or_else(|| broken(self.input(), "a builder without a predicate", "one that it has built"))
    }

    /// Reads a set of keys: a Java collection with a known layout.
    fn partition_keys(&mut self) -> Result<Vec<Blob>, DataError> {
        self.nested(|source| {
            let type_id = source.input().type_id();
            if !matches!(type_id, class::HASH_SET | class::LINKED_HASH_SET | TypeId::ARRAY_LIST | TypeId::LINKED_LIST) {
                return Err(broken(source.input(), "the place of a set of keys", "a HashSet or a list"));
            }
            let length = source.input().length(4)?.unwrap_or_default();
            (0..length).map(|_| source.blob()).collect()
        })
    }
}
