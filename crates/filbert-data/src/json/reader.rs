//! Reads many fields of a document in one pass.

use super::find::in_part;
use super::scan::Scan;
use crate::{DataError, Path, Step, Value};

/// The maximum number of nodes with their `met` flags on the stack. More nodes need an allocation.
const NODES_ON_STACK: usize = 64;

/// Reads a fixed set of fields from documents. Paths with a common beginning are followed together.
pub(crate) struct Reader {
    /// The tree of all steps; the first node is the document itself.
    nodes: Vec<Node>,
    /// The steps of the first path, for [`Reader::read_first`].
    first: Box<[Step]>,
}

/// A place in documents on the way of one or more paths.
#[derive(Default)]
struct Node {
    /// The numbers of the fields at this place.
    fields: Vec<usize>,
    /// The members on the way of paths, each with its node.
    members: Vec<(Box<str>, usize)>,
    /// The items on the way of paths, each with its node.
    items: Vec<(usize, usize)>,
    /// The fields with `[any]` as their next step: their numbers, this step and their remaining
    /// steps.
    many: Vec<(usize, Box<[Step]>)>,
}

impl Reader {
    /// A reader of these paths. Each path has a number, which is passed to `visit` with the value.
    pub(crate) fn new(paths: &[(usize, Path)]) -> Reader {
        let first = paths.first().map(|(_, path)| path.steps().into()).unwrap_or_default();
        let mut reader = Reader { nodes: vec![Node::default()], first };
        for (number, path) in paths {
            reader.add(*number, path.steps());
        }
        reader
    }

    fn add(&mut self, field: usize, steps: &[Step]) {
        let mut at = 0;
        for (done, step) in steps.iter().enumerate() {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return };
            let found = match step {
                Step::Field(name) => node.members.iter().find(|(of, _)| of == name).map(|(_, node)| *node),
                Step::Index(index) => node.items.iter().find(|(of, _)| of == index).map(|(_, node)| *node),
                Step::Any => {
                    node.many.push((field, steps.get(done..).unwrap_or_default().into()));
                    return;
                }
            };
            at = match (found, step) {
                (Some(found), _) => found,
                (None, Step::Field(name)) => {
                    node.members.push((name.clone(), next));
                    next
                }
                (None, Step::Index(index)) => {
                    node.items.push((*index, next));
                    next
                }
                (None, Step::Any) => return,
            };
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.fields.push(field);
        }
    }

    /// Visits each path once. A field that is not in the document is null.
    ///
    /// # Errors
    ///
    /// The text is not valid JSON up to the last requested field.
    pub(crate) fn read<'a>(&self, text: &'a str, visit: &mut dyn FnMut(usize, Value<'a>)) -> Result<(), DataError> {
        let mut on_stack = [false; NODES_ON_STACK];
        let mut on_heap = Vec::new();
        let met = match on_stack.get_mut(..self.nodes.len()) {
            Some(met) => met,
            None => {
                on_heap.resize(self.nodes.len(), false);
                on_heap.as_mut_slice()
            }
        };
        let mut pass = Pass { nodes: &self.nodes, left: self.nodes.len(), met, visit };
        pass.part(&mut Scan::new(text), 0)?;
        let Pass { met, visit, .. } = pass;
        for (node, met) in self.nodes.iter().zip(met) {
            if !*met {
                node.visit_nulls(visit);
            }
        }
        Ok(())
    }

    /// Reads only the first path; null if there is no path.
    ///
    /// # Errors
    ///
    /// As [`Reader::read`].
    #[inline]
    pub(crate) fn read_first<'a>(&self, text: &'a str) -> Result<Value<'a>, DataError> {
        if self.first.is_empty() {
            return Ok(Value::Null);
        }
        in_part(&mut Scan::new(text), &self.first, false)
    }
}

impl Node {
    fn visit_nulls<'a>(&self, visit: &mut dyn FnMut(usize, Value<'a>)) {
        for field in self.fields.iter().chain(self.many.iter().map(|(field, _)| field)) {
            visit(*field, Value::Null);
        }
    }

    fn leads_on(&self) -> bool {
        !self.members.is_empty() || !self.items.is_empty()
    }
}

/// One pass through one document.
struct Pass<'r, 'a> {
    nodes: &'r [Node],
    /// The number of nodes that were not met yet. The pass ends when it is 0.
    left: usize,
    met: &'r mut [bool],
    visit: &'r mut dyn FnMut(usize, Value<'a>),
}

impl<'a> Pass<'_, 'a> {
    /// Reads the next JSON value, which is at the place of the node `number`. Returns false if no
    /// fields are left to be found; then the position of the scan is arbitrary.
    fn part(&mut self, scan: &mut Scan<'a>, number: usize) -> Result<bool, DataError> {
        let Some(node) = self.nodes.get(number) else { return scan.skip().map(|()| true) };
        if let Some(met) = self.met.get_mut(number) {
            *met = true;
            self.left -= 1;
        }
        let from = *scan;
        for (field, steps) in &node.many {
            (self.visit)(*field, in_part(&mut { from }, steps, false)?);
        }
        if !node.leads_on() {
            return match node.fields.as_slice() {
                [] => {
                    // The fields in `many` were read above.
                    if self.left > 0 {
                        scan.skip()?;
                    }
                    Ok(self.left > 0)
                }
                fields => {
                    let value = scan.value()?;
                    self.visit_all(fields, value);
                    Ok(self.left > 0)
                }
            };
        }
        if !node.fields.is_empty() {
            let value = { from }.value()?;
            self.visit_all(&node.fields, value);
        }
        let goes_on = match scan.peek() {
            Some(b'{') if !node.members.is_empty() => self.members(scan, node)?,
            Some(b'[') if !node.items.is_empty() => self.items(scan, node)?,
            _ => scan.skip().map(|()| true)?,
        };
        if self.left > 0 {
            self.pass_by(node);
        }
        Ok(goes_on && self.left > 0)
    }

    /// Visits the unmet nodes below a finished node with nulls. They are missing, because only the
    /// first member of a name is used.
    fn pass_by(&mut self, node: &Node) {
        let nodes = self.nodes;
        let below = node.members.iter().map(|(_, number)| number).chain(node.items.iter().map(|(_, number)| number));
        for number in below {
            let (Some(node), Some(met @ false)) = (nodes.get(*number), self.met.get_mut(*number)) else { continue };
            *met = true;
            self.left -= 1;
            node.visit_nulls(self.visit);
            self.pass_by(node);
        }
    }

    fn visit_all(&mut self, fields: &[usize], value: Value<'a>) {
        if let Some((last, others)) = fields.split_last() {
            for field in others {
                (self.visit)(*field, value.clone());
            }
            (self.visit)(*last, value);
        }
    }

    fn members(&mut self, scan: &mut Scan<'a>, node: &Node) -> Result<bool, DataError> {
        scan.take(b'{');
        if scan.take(b'}') {
            return Ok(true);
        }
        loop {
            let name = scan.name()?;
            let mut next = None;
            for (member, number) in &node.members {
                if name.is(member)? {
                    next = Some(*number).filter(|number| self.met.get(*number) == Some(&false));
                    break;
                }
            }
            match next {
                Some(number) => {
                    if !self.part(scan, number)? {
                        return Ok(false);
                    }
                }
                None => scan.skip()?,
            }
            if !scan.goes_on(b'}')? {
                return Ok(true);
            }
        }
    }

    fn items(&mut self, scan: &mut Scan<'a>, node: &Node) -> Result<bool, DataError> {
        scan.take(b'[');
        if scan.take(b']') {
            return Ok(true);
        }
        for at in 0usize.. {
            match node.items.iter().find(|(index, _)| *index == at) {
                Some((_, number)) => {
                    if !self.part(scan, *number)? {
                        return Ok(false);
                    }
                }
                None => scan.skip()?,
            }
            if !scan.goes_on(b']')? {
                break;
            }
        }
        Ok(true)
    }
}
