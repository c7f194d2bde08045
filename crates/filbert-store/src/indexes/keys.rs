//! The keys of one entry in the indexes.

use filbert_data::{Kinds, Value};

/// The encoded values of each indexed field of one entry. The buffers are reused for the next
/// entry, so that reading an entry allocates nothing.
#[derive(Default)]
pub(crate) struct EntryKeys {
    fields: Vec<FieldKeys>,
    /// The buffer in which keys of several fields are built.
    composite: Vec<u8>,
}

/// The values of one field: one value, or one for each item of an array.
#[derive(Default, PartialEq, Eq)]
struct FieldKeys {
    bytes: Vec<u8>,
    /// The end of each value.
    ends: Vec<usize>,
    /// The kinds of the values. Different kinds of values can have equal keys.
    kinds: Kinds,
}

impl EntryKeys {
    /// Removes the previous entry, and makes room for `field_count` fields.
    pub(crate) fn clear(&mut self, field_count: usize) {
        self.fields.resize_with(field_count, FieldKeys::default);
        for field in &mut self.fields {
            field.bytes.clear();
            field.ends.clear();
            field.kinds = Kinds::NONE;
            // The memory for one huge value is not kept forever.
            field.bytes.shrink_to(4_096);
            field.ends.shrink_to(512);
        }
        self.composite.shrink_to(4_096);
    }

    /// Sets the value of a field. With `finds_many`, each item of an array is a value; an empty
    /// array is a null.
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

    /// Whether one of these fields was not read.
    pub(crate) fn lack(&self, fields: &[usize]) -> bool {
        fields.iter().any(|field| self.fields.get(*field).is_none_or(|field| field.ends.is_empty()))
    }

    /// The kinds of the values of a field.
    pub(crate) fn kinds(&self, field: usize) -> Kinds {
        self.fields.get(field).map_or(Kinds::NONE, |field| field.kinds)
    }

    /// Whether two entries have the same values in some fields.
    pub(crate) fn are_same(&self, other: &EntryKeys, fields: &[usize]) -> bool {
        fields.iter().all(|field| self.fields.get(*field) == other.fields.get(*field))
    }

    /// Whether the entry may have several keys in an index over these fields.
    pub(crate) fn have_several(&self, fields: &[usize]) -> bool {
        fields.iter().any(|field| self.fields.get(*field).is_some_and(|field| field.ends.len() > 1))
    }

    /// Visits the entry's keys in an index over these fields. There are none if a field was not
    /// read.
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

    /// Visits every combination of the fields' values. The depth of the recursion is limited,
    /// because an index has at most 255 fields.
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
