//! The same query has the same result in every way: on maps with columns, with indexes, with both,
//! and with neither; by SQL with literals and with parameters, planned and from the plan cache; by
//! predicates; and by a model in plain Rust.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::Member;
use crate::model::{Double, Row, Test, number, row, shown, test};
use filbert_data::criteria::{Aggregator, Distinct};
use filbert_data::{FromBlob, ToBlob, Value};
use filbert_grid::query::{Answer, MapQuery, QueryEngine};
use filbert_grid::{Caller, Change, Expiry, Map, PutMode, ReadView};
use proptest::collection::vec;
use proptest::prelude::*;

/// The maps with the same entries. The map `source` provides the bytes for puts by the map API.
const MAPS: [&str; 4] = ["plain", "columns", "indexes", "both"];

#[derive(Clone, Copy, Debug)]
enum Format {
    JsonFlat,
    Compact,
    Portable,
}

#[derive(Clone, Debug)]
enum Step {
    /// Puts rows by SQL, all in one statement.
    Sink(Vec<(i32, Row)>),
    /// Puts a row by the map API.
    Put(i32, Row),
    /// Sets some columns of the rows that a condition finds.
    Update(Test, i64, Option<bool>),
    UpdateKey(i32, Row),
    Delete(Test),
    DeleteKey(i32),
    /// Removes a row by the map API.
    Take(i32),
    /// Removes rows by a predicate.
    RemoveAll(Test),
    Clear,
    /// Queries rows or an aggregate by SQL, with values as parameters (if true) or as literals, and
    /// the same rows by predicates.
    Ask(Test, Question, bool),
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Rows,
    One,
    Ordered,
    Numbers,
    Doubles,
    Texts,
    DistinctTexts,
    Groups,
}

fn step() -> impl Strategy<Value = Step> {
    use Question::{DistinctTexts, Doubles, Groups, Numbers, One, Ordered, Rows, Texts};
    let question = prop::sample::select(vec![Rows, Rows, One, Ordered, Numbers, Doubles, Texts, DistinctTexts, Groups]);
    let key = || 0..40_i32;
    prop_oneof![
        12 => (test(), question, any::<bool>()).prop_map(|(test, question, by_parameters)| Step::Ask(test, question, by_parameters)),
        2 => vec((key(), row()), 1..12).prop_map(Step::Sink),
        3 => (key(), row()).prop_map(|(key, row)| Step::Put(key, row)),
        1 => (test(), number(), any::<Option<bool>>()).prop_map(|(test, n, b)| Step::Update(test, n, b)),
        1 => (key(), row()).prop_map(|(key, row)| Step::UpdateKey(key, row)),
        1 => test().prop_map(Step::Delete),
        1 => key().prop_map(Step::DeleteKey),
        1 => key().prop_map(Step::Take),
        1 => test().prop_map(Step::RemoveAll),
        1 => Just(Step::Clear),
    ]
}

struct Maps {
    member: Member,
    format: Format,
    model: BTreeMap<i32, Row>,
}

impl Maps {
    fn start(format: Format) -> Maps {
        let member = Member::start();
        for map in MAPS.into_iter().chain(["source"]) {
            let columnar = if matches!(map, "columns" | "both") { ", 'columnar'='true'" } else { "" };
            let value = match format {
                Format::JsonFlat => "'valueFormat'='json-flat'",
                Format::Compact => "'valueFormat'='compact', 'valueCompactTypeName'='row'",
                Format::Portable => {
                    "'valueFormat'='portable', 'valuePortableFactoryId'='1', 'valuePortableClassId'='2', \
                     'valuePortableClassVersion'='0'"
                }
            };
            member.change(&format!(
                "CREATE MAPPING {map} (__key INT, n BIGINT, t VARCHAR, d DOUBLE, b BOOLEAN) TYPE IMap \
                 OPTIONS ('keyFormat'='int', {value}{columnar})"
            ));
            if matches!(map, "indexes" | "both") {
                member.change(&format!("CREATE INDEX {map}_t ON {map} (t) TYPE HASH"));
                member.change(&format!("CREATE INDEX {map}_n ON {map} (n) TYPE SORTED"));
                member.change(&format!("CREATE INDEX {map}_bd ON {map} (b, d) TYPE SORTED"));
            }
        }
        Maps { member, format, model: BTreeMap::new() }
    }

    fn map(&self, name: &str) -> std::sync::Arc<Map> {
        self.member.grid.map(name).unwrap()
    }

    fn kept(&self, row: Row) -> Row {
        if matches!(self.format, Format::Portable) { row.without_null_numbers() } else { row }
    }

    /// The entries for which a condition is true in SQL.
    fn found(&self, test: &Test) -> BTreeMap<i32, Row> {
        let found = self.model.iter().filter(|(key, row)| test.in_sql(**key, row) == Some(true));
        found.map(|(key, row)| (*key, row.clone())).collect()
    }

    /// Runs a statement on each of the maps. It must change `count` rows.
    fn change_all(&self, text: impl Fn(&str) -> String, count: usize) {
        for map in MAPS {
            let text = text(map);
            assert_eq!(self.member.change(&text), count as u64, "{text}");
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Sink(rows) => {
                let rows: BTreeMap<i32, Row> = rows.into_iter().map(|(key, row)| (key, self.kept(row))).collect();
                let values: Vec<_> = rows.iter().map(|(key, row)| format!("({key}, {})", row.literals())).collect();
                self.change_all(|map| format!("SINK INTO {map} VALUES {}", values.join(", ")), rows.len());
                self.model.extend(rows);
            }
            Step::Put(key, row) => {
                let row = self.kept(row);
                self.put(key, &row);
                self.model.insert(key, row);
            }
            Step::Update(test, n, b) => {
                let b = if matches!(self.format, Format::Portable) { b.or(Some(true)) } else { b };
                let found = self.found(&test);
                let (condition, b_text) = (test.sql(&mut None), shown(b).to_uppercase());
                let text = |map: &str| format!("UPDATE {map} SET n = {n}, b = {b_text} WHERE {condition}");
                self.change_all(text, found.len());
                self.model.extend(found.into_iter().map(|(key, row)| (key, Row { n: Some(n), b, ..row })));
            }
            Step::UpdateKey(key, row) => {
                let row = self.kept(row);
                let count = usize::from(self.model.contains_key(&key));
                for map in MAPS {
                    let text = format!("UPDATE {map} SET n = ?, t = ?, d = ?, b = ? WHERE __key = ?");
                    let fields = [
                        crate::model::Field::N,
                        crate::model::Field::T,
                        crate::model::Field::D,
                        crate::model::Field::B,
                        crate::model::Field::Key,
                    ];
                    let values = fields.map(|field| row.value(key, field));
                    assert_eq!(self.member.change_with(&text, &values), count as u64, "{text}");
                }
                if count > 0 {
                    self.model.insert(key, row);
                }
            }
            Step::Delete(test) => {
                let found = self.found(&test);
                let condition = test.sql(&mut None);
                self.change_all(|map| format!("DELETE FROM {map} WHERE {condition}"), found.len());
                self.model.retain(|key, _| !found.contains_key(key));
            }
            Step::DeleteKey(key) => {
                let count = usize::from(self.model.remove(&key).is_some());
                self.change_all(|map| format!("DELETE FROM {map} WHERE __key = {key}"), count);
            }
            Step::Take(key) => {
                self.model.remove(&key);
                let key = key.to_blob().unwrap();
                for map in MAPS.map(|map| self.map(map)) {
                    map.change(map.partition_of(&key), Caller::default(), Change::Delete { key: &key }, |_| ())
                        .unwrap();
                }
            }
            Step::RemoveAll(test) => {
                let before = self.model.len();
                self.model.retain(|key, row| !test.in_predicates(*key, row));
                let predicate = test.predicate().to_blob().unwrap();
                for map in MAPS {
                    let query = MapQuery::Remove { predicate: &predicate, caller: Caller::default() };
                    let mut removed = 0;
                    self.query(map, query, &mut |answer| {
                        if let Answer::Removed(count) = answer {
                            removed += count;
                        }
                    });
                    assert_eq!(removed, before - self.model.len(), "{map}: {test:?}");
                }
            }
            Step::Clear => {
                self.model.clear();
                for map in MAPS {
                    self.map(map).clear(Caller::default()).unwrap();
                }
            }
            Step::Ask(test, question, by_parameters) => {
                self.ask_sql(&test, question, by_parameters);
                self.ask_predicates(&test);
            }
        }
    }

    /// Puts a row by the map API, with the bytes that SQL has written into the map `source`.
    fn put(&self, key: i32, row: &Row) {
        self.member.change(&format!("SINK INTO source VALUES ({key}, {})", row.literals()));
        let source = self.map("source");
        let key = key.to_blob().unwrap();
        let value = source.get(source.partition_of(&key), &key, |value| value.unwrap().to_vec());
        for map in MAPS.map(|map| self.map(map)) {
            let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
            map.change(map.partition_of(&key), Caller::default(), change, |_| ()).unwrap();
        }
    }

    fn ask_sql(&self, test: &Test, question: Question, by_parameters: bool) {
        let found = self.found(test);
        let mut parameters = by_parameters.then(Vec::new);
        let condition = test.sql(&mut parameters);
        let parameters: Vec<Value<'static>> = parameters.unwrap_or_default();
        let expected = answer(&found, question);
        for map in MAPS {
            let text = statement(map, &condition, question);
            // The second time the plan comes from the cache, and may be a short plan.
            for time in ["first", "second"] {
                let mut rows = self.member.rows_with(&text, &parameters);
                if !matches!(question, Question::Ordered) {
                    rows.sort();
                }
                assert_eq!(rows, expected, "{text} {parameters:?}, the {time} time");
            }
        }
    }

    fn ask_predicates(&self, test: &Test) {
        let found: BTreeMap<i32, Row> = self
            .model
            .iter()
            .filter(|(key, row)| test.in_predicates(**key, row))
            .map(|(key, row)| (*key, row.clone()))
            .collect();
        let predicate = test.predicate().to_blob().unwrap();
        let predicate = Some(&predicate[..]);
        let keys: Vec<i32> = found.keys().copied().collect();
        for map in MAPS {
            let mut answered = Vec::new();
            self.query(map, MapQuery::Entries { predicate, partitions: None }, &mut |answer| {
                if let Answer::Entry(key, _) = answer {
                    answered.push(i32::from_blob(key).unwrap());
                }
            });
            answered.sort_unstable();
            assert_eq!(answered, keys, "{map}: {test:?}");

            let n = || Some("n".to_owned());
            let d = || Some("d".to_owned());
            let aggregate = |aggregator: Aggregator| self.aggregate(map, predicate, &aggregator);
            let number = |aggregator| aggregate(aggregator).map(|blob| Value::from_blob(&blob).unwrap().into_owned());
            let same = |found: Option<Value<'static>>, expected: Option<Value<'static>>, what: &str| {
                let equal = match (&found, &expected) {
                    (Some(found), Some(expected)) => found.compare(expected).is_some_and(std::cmp::Ordering::is_eq),
                    (found, expected) => found.is_none() && expected.is_none(),
                };
                assert!(equal, "{what} of {map}: {found:?}, expected {expected:?}: {test:?}");
            };
            let numbers: Vec<i64> = found.values().filter_map(|row| row.n).collect();
            let doubles: Vec<f64> = found.values().filter_map(|row| row.d).collect();
            let total = doubles.iter().fold(0.0, |total, d| total + d);
            same(number(Aggregator::Count(None)), Some(Value::Int64(found.len() as i64)), "count");
            same(number(Aggregator::LongSum(n())), Some(Value::Int64(numbers.iter().sum())), "sum of n");
            same(number(Aggregator::Min(n())), numbers.iter().min().map(|min| Value::Int64(*min)), "least n");
            same(number(Aggregator::Max(n())), numbers.iter().max().map(|max| Value::Int64(*max)), "greatest n");
            same(number(Aggregator::DoubleSum(d())), Some(Value::Float64(total)), "sum of d");
            let mean = (!doubles.is_empty()).then(|| Value::Float64(total / doubles.len() as f64));
            same(number(Aggregator::DoubleAvg(d())), mean, "mean of d");
            let texts = aggregate(Aggregator::Distinct(Some("t".to_owned()))).unwrap();
            let texts = Distinct::<Option<String>>::from_blob(&texts).unwrap().0;
            assert_eq!(texts.len(), texts.iter().collect::<BTreeSet<_>>().len(), "a text came twice: {texts:?}");
            let expected: BTreeSet<_> = found.values().map(|row| row.t.clone()).collect();
            assert_eq!(texts.into_iter().collect::<BTreeSet<_>>(), expected, "texts of {map}: {test:?}");
        }
    }

    fn aggregate(&self, map: &str, predicate: Option<&[u8]>, aggregator: &Aggregator) -> Option<Vec<u8>> {
        let aggregator = aggregator.to_blob().unwrap();
        let mut result = None;
        self.query(map, MapQuery::Aggregate { aggregator: &aggregator, predicate }, &mut |answer| {
            if let Answer::Value(value) = answer {
                result = value.map(<[u8]>::to_vec);
            }
        });
        result
    }

    fn query(&self, map: &str, query: MapQuery<'_>, visit: &mut dyn FnMut(Answer<'_>)) {
        let mut prepared = self.member.engine.prepare(&self.map(map), query, ReadView::complete()).unwrap();
        prepared
            .run(&mut |answer| {
                visit(answer);
                Ok(())
            })
            .unwrap();
    }
}

fn statement(map: &str, condition: &str, question: Question) -> String {
    let (what, then) = match question {
        Question::Rows => ("*", ""),
        Question::One => ("t", ""),
        Question::Ordered => ("__key, n, t, d, b", " ORDER BY n DESC NULLS LAST, __key LIMIT 5"),
        Question::Numbers => ("count(*), count(n), sum(n), min(n), max(n)", ""),
        Question::Doubles => ("count(d), sum(d), avg(d), min(d), max(d)", ""),
        Question::Texts => ("count(t), min(t), max(t), count(DISTINCT t)", ""),
        Question::DistinctTexts => ("DISTINCT t", ""),
        Question::Groups => ("b, count(*), sum(n), max(t)", " GROUP BY b"),
    };
    format!("SELECT {what} FROM {map} WHERE {condition}{then}")
}

/// The result of a query over rows; sorted, if the query has no order.
fn answer(found: &BTreeMap<i32, Row>, question: Question) -> Vec<String> {
    let sum = |rows: &[&Row]| {
        let numbers: Vec<i64> = rows.iter().filter_map(|row| row.n).collect();
        (!numbers.is_empty()).then(|| numbers.iter().sum::<i64>())
    };
    let all: Vec<&Row> = found.values().collect();
    let texts: Vec<&str> = all.iter().filter_map(|row| row.t.as_deref()).collect();
    let numbers: Vec<i64> = all.iter().filter_map(|row| row.n).collect();
    let doubles: Vec<f64> = all.iter().filter_map(|row| row.d).collect();
    let mut rows = match question {
        Question::Rows => found.iter().map(|(key, row)| row.text(*key)).collect(),
        Question::One => all.iter().map(|row| shown(row.t.as_deref())).collect(),
        Question::Ordered => {
            let mut ordered: Vec<(&i32, &Row)> = found.iter().collect();
            ordered.sort_by_key(|(key, row)| (row.n.map_or(i128::MAX, |n| -i128::from(n)), **key));
            return ordered.into_iter().take(5).map(|(key, row)| row.text(*key)).collect();
        }
        Question::Numbers => {
            let (min, max) = (numbers.iter().min(), numbers.iter().max());
            vec![format!("{}|{}|{}|{}|{}", all.len(), numbers.len(), shown(sum(&all)), shown(min), shown(max))]
        }
        Question::Doubles => {
            let total = doubles.iter().fold(0.0, |total, d| total + d);
            let some = |value: f64| shown((!doubles.is_empty()).then_some(Double(value)));
            let min = doubles.iter().copied().fold(f64::INFINITY, f64::min);
            let max = doubles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = total / doubles.len() as f64;
            vec![format!("{}|{}|{}|{}|{}", doubles.len(), some(total), some(mean), some(min), some(max))]
        }
        Question::Texts => {
            let distinct = texts.iter().collect::<BTreeSet<_>>().len();
            vec![format!("{}|{}|{}|{distinct}", texts.len(), shown(texts.iter().min()), shown(texts.iter().max()))]
        }
        Question::DistinctTexts => {
            all.iter().map(|row| shown(row.t.as_deref())).collect::<BTreeSet<_>>().into_iter().collect()
        }
        Question::Groups => {
            let mut groups: BTreeMap<Option<bool>, Vec<&Row>> = BTreeMap::new();
            all.iter().for_each(|row| groups.entry(row.b).or_default().push(row));
            let line = |(b, rows): (Option<bool>, Vec<&Row>)| {
                let max = rows.iter().filter_map(|row| row.t.as_deref()).max();
                format!("{}|{}|{}|{}", shown(b), rows.len(), shown(sum(&rows)), shown(max))
            };
            groups.into_iter().map(line).collect()
        }
    };
    rows.sort();
    rows
}

/// Cases do not start after this time, so that this test does not delay the others on a busy
/// machine.
const TIME_MAX: Duration = Duration::from_secs(15);
static BEGIN: OnceLock<Instant> = OnceLock::new();

fn check(format: Format, steps: Vec<Step>) {
    if BEGIN.get_or_init(Instant::now).elapsed() > TIME_MAX {
        return;
    }
    let mut maps = Maps::start(format);
    for step in steps {
        maps.run(step);
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let first = vec((0..40_i32, row()), 1..40).prop_map(|rows| vec![Step::Sink(rows)]);
    (first, vec(step(), 1..12)).prop_map(|(first, then)| first.into_iter().chain(then).collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_way_to_ask_answers_the_same(
        format in prop::sample::select(vec![Format::JsonFlat, Format::Compact, Format::Portable]),
        steps in steps(),
    ) {
        check(format, steps);
    }
}
