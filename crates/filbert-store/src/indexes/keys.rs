//! The keys of one entry: what indexes find it by.

use filbert_data::{Kinds, Value};

/// The encoded values of each indexed field of one entry. Kept between entries, so that reading one allocates nothing.
#[derive(Default)]
pub(crate) struct EntryKeys {
    fields: Vec<FieldKeys>,
    /// Where keys of several fields are put together.
    composite: Vec<u8>,
}

/// The values of one field: one, or one for each item of an array.
#[derive(Default, PartialEq, Eq)]
struct FieldKeys {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// What the values are: equal keys may be those of unlike values.
    kinds: Kinds,
}

impl EntryKeys {
    /// Forgets the entry that was read, and makes room for `field_count` fields.
    pub(crate) fn clear(&mut self, field_count: usize) {
        self.fields.resize_with(field_count, FieldKeys::default);
        for field in &mut self.fields {
            field.bytes.clear();
            field.ends.clear();
            field.kinds = Kinds::NONE;
            // What one huge value needed is not kept for ever.
            field.bytes.shrink_to(4_096);
            field.ends.shrink_to(512);
        }
        self.composite.shrink_to(4_096);
    }

    /// Notes the value of a field. With `finds_many`, each item of an array is a value; of an empty one, a null is.
    pub(crate) fn set(&mut self, field: usize, value: &Value<'_>, finds_many: bool) {
        let Some(field) = self.fields.get_mut(field) else { return };
        match value {
            Value::Array(items) if finds_many && !items.is_empty() => {
                for item in items {
                    field.push(item);
                }
            }
            Value::Array(_) if finds_many => field.push(&Value::Null),
            value => field.push(value),
        }
    }

    /// Whether one of these fields could not be read.
    pub(crate) fn lack(&self, fields: &[usize]) -> bool {
        fields.iter().any(|field| self.fields.get(*field).is_none_or(|field| field.ends.is_empty()))
    }

    /// What one of the fields has.
    pub(crate) fn kinds(&self, field: usize) -> Kinds {
        self.fields.get(field).map_or(Kinds::NONE, |field| field.kinds)
    }

    /// Whether two entries have the same values in some fields.
    pub(crate) fn are_same(&self, other: &EntryKeys, fields: &[usize]) -> bool {
        fields.iter().all(|field| self.fields.get(*field) == other.fields.get(*field))
    }

    /// Whether the entry may have more than one key in an index over these fields.
    pub(crate) fn have_several(&self, fields: &[usize]) -> bool {
        fields.iter().any(|field| self.fields.get(*field).is_some_and(|field| field.ends.len() > 1))
    }

    /// Visits the entry's keys in an index over these fields; none if it lacks one.
    pub(crate) fn for_each(&mut self, fields: &[usize], visit: &mut dyn FnMut(&[u8])) {
        match fields {
            [field] => {
                for value in self.fields.get(*field).into_iter().flat_map(FieldKeys::values) {
                    visit(value);
                }
            }
            fields => {
                let mut composite = std::mem::take(&mut self.composite);
                composite.clear();
                self.combine(fields, &mut composite, visit);
                self.composite = composite;
            }
        }
    }

    /// Every combination of the fields' values. An index has 255 fields at most, so the recursion ends.
    fn combine(&self, fields: &[usize], composite: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8])) {
        let Some((first, rest)) = fields.split_first() else { return visit(composite) };
        let len = composite.len();
        for value in self.fields.get(*first).into_iter().flat_map(FieldKeys::values) {
            composite.extend_from_slice(value);
            self.combine(rest, composite, visit);
            composite.truncate(len);
        }
    }
}

impl FieldKeys {
    fn push(&mut self, value: &Value<'_>) {
        value.append_index_key(&mut self.bytes);
        self.kinds = self.kinds.and(Kinds::of(value));
        self.ends.push(self.bytes.len());
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: &Value<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        value.append_index_key(&mut key);
        key
    }

    #[test]
    fn keys_of_several_fields_are_put_together_for_every_item() {
        let (a, b, c) = (Value::Int32(1), Value::text("b"), Value::text("c"));
        let mut keys = EntryKeys::default();
        keys.clear(3);
        keys.set(0, &a, false);
        keys.set(1, &Value::Array(vec![b.clone(), c.clone()]), true);
        assert!(keys.lack(&[0, 2]) && !keys.lack(&[0, 1]));
        keys.set(2, &Value::Array(Vec::new()), true);
        let mut found = Vec::new();
        keys.for_each(&[0, 1, 2], &mut |key| found.push(key.to_vec()));
        assert_eq!(found, [[key(&a), key(&b), vec![0]].concat(), [key(&a), key(&c), vec![0]].concat()]);
        found.clear();
        keys.for_each(&[2], &mut |key| found.push(key.to_vec()));
        assert_eq!(found, [vec![0]]);
    }
}
