//! The functions over untyped fields. Functions that plans insert store the types of their
//! operands, so they do not depend on column metadata at run time.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringViewBuilder};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_data::{FieldType, Value};
use filbert_dialect::member_of;
use filbert_grid::query::ColumnReader;

use super::super::json::{Kind, Node};
use super::super::row::{Texts, text_of, wrong_arguments};
use super::arithmetic;
use super::read::{Rows, not_of_type, parsed};
use super::scalar::Scalar;
use super::set;
use crate::types::{
    JSONB, MEMBERS_KEY, field, field_type_of, field_type_of_arrow, is_untyped, pg_type_of, untyped_field, with_members,
    with_pg_type,
};

/// Which operands are untyped fields rather than typed values.
pub(super) type Untyped = [bool; 2];

/// The operation of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// The member at a path of keys: untyped, or of its declared type.
    Get,
    /// The object with a value at a path of keys.
    Set,
    /// A field as a value of a type. A value that does not fit is null, or an error if `strict`.
    Read { to: FieldType, strict: bool },
    /// A field as text; a typed value is unchanged.
    Plain,
    /// A field as a number; a typed number is unchanged.
    Number,
    /// A field as a boolean.
    Truth,
    /// Whether a value is an element of an array.
    Has,
    /// The comparison of two values.
    Compare(Operator, Untyped),
    /// The arithmetic of two numbers.
    Compute(Operator, Untyped),
    /// Texts that sort like the values; windows support them as well.
    Key,
    /// Marks a text that is a document as an untyped field.
    Mark,
}

#[derive(Debug)]
struct FieldFunction {
    what: What,
    name: String,
    signature: Signature,
}

impl What {
    /// The function.
    pub(super) fn udf(self) -> ScalarUDF {
        let name = match &self {
            What::Get => "object_get".to_owned(),
            What::Set => "object_set".to_owned(),
            What::Plain => "object_plain".to_owned(),
            What::Number => "object_number".to_owned(),
            What::Truth => "object_truth".to_owned(),
            What::Has => "object_has".to_owned(),
            What::Key => "object_key".to_owned(),
            What::Mark => "object_field".to_owned(),
            What::Read { to, .. } => format!("object_as {to}"),
            What::Compare(operator, _) | What::Compute(operator, _) => format!("object {operator}"),
        };
        ScalarUDF::new_from_impl(FieldFunction {
            what: self,
            name,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }

    /// A call of it.
    pub(super) fn call(self, arguments: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(datafusion::logical_expr::expr::ScalarFunction::new_udf(Arc::new(self.udf()), arguments))
    }
}

impl PartialEq for FieldFunction {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

impl Eq for FieldFunction {}

impl Hash for FieldFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.what.hash(state);
    }
}

impl ScalarUDFImpl for FieldFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{} returns a field", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of_type = |field_type: &FieldType| Ok(field(&self.name, field_type, true).into());
        let first = args.arg_fields.first();
        match &self.what {
            What::Get if first.is_some_and(|field| is_jsonb(field)) => {
                Ok(with_pg_type(field(&self.name, &FieldType::Json, true), JSONB).into())
            }
            What::Get => Ok(self.member(&args)),
            What::Set => of_type(&FieldType::Json),
            What::Read { to, .. } => of_type(to),
            What::Plain => match first.filter(|field| !is_untyped(field)) {
                Some(typed) => Ok(Arc::new(typed.as_ref().clone().with_name(&self.name))),
                None => of_type(&FieldType::Varchar),
            },
            What::Number => match first.filter(|field| field.data_type().is_numeric()) {
                Some(typed) => of_type(&field_type_of(typed)),
                None => of_type(&FieldType::Double),
            },
            What::Truth | What::Has | What::Compare(..) => of_type(&FieldType::Boolean),
            What::Compute(..) | What::Mark => Ok(untyped_field(&self.name).into()),
            What::Key => of_type(&FieldType::Varchar),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // Nothing is cast: keys must stay literals, and the functions themselves determine the
        // types of values.
        let least = match self.what {
            What::Get | What::Has | What::Compare(..) | What::Compute(..) => 2,
            What::Set => 3,
            _ => 1,
        };
        if types.len() < least { Err(wrong_arguments(&self.name, types)) } else { Ok(types.to_vec()) }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let made = self.compute(&args, rows)?;
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)),
            false => Ok(ColumnarValue::Array(made)),
        }
    }
}

impl FieldFunction {
    /// The field of the member that literal keys select, as the object declares it.
    fn member(&self, args: &ReturnFieldArgs<'_>) -> FieldRef {
        let members = args.arg_fields.first().and_then(|object| object.metadata().get(MEMBERS_KEY));
        let keys = args.scalar_arguments.get(1..).unwrap_or_default();
        let keys: Option<Vec<&str>> = keys.iter().map(|key| text_of(key.as_ref()?)).collect();
        let declared = members.zip(keys).and_then(|(members, keys)| member_of(members, &keys));
        let Some(declared) = declared else { return untyped_field(&self.name).into() };
        let member = field(&self.name, &declared.field_type(), true);
        match declared.members() {
            Some(members) => with_members(&member, members).into(),
            None => member.into(),
        }
    }

    fn compute(&self, args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
        match &self.what {
            What::Get => get(args, rows),
            What::Set => set::set(args, rows),
            What::Read { to, strict } => read(args, rows, to, *strict),
            What::Plain if args.arg_fields.first().is_some_and(|field| !is_untyped(field)) => first(args, rows),
            What::Plain => read(args, rows, &FieldType::Varchar, false),
            What::Number => match args.arg_fields.first().is_some_and(|field| field.data_type().is_numeric()) {
                true => first(args, rows),
                false => read(args, rows, &FieldType::Double, true),
            },
            What::Truth => match args.arg_fields.first().is_some_and(|field| *field.data_type() == DataType::Boolean) {
                true => first(args, rows),
                false => read(args, rows, &FieldType::Boolean, true),
            },
            What::Has => Sides::of(args, [false, false], rows)?.truths(rows, has),
            What::Compare(operator, untyped) => Sides::of(args, *untyped, rows)?.truths(rows, |left, right| {
                let ordering = Scalar::of_value(left).compare(&Scalar::of_value(right));
                Ok(ordering.map(|ordering| holds(*operator, ordering)))
            }),
            What::Compute(operator, untyped) => {
                let mut builder = StringViewBuilder::with_capacity(rows);
                Sides::of(args, *untyped, rows)?.each(rows, |left, right| {
                    let made = arithmetic::compute(*operator, &Scalar::of_value(left), &Scalar::of_value(right))?;
                    builder.append_option(made.map(|number| number.text()));
                    Ok(())
                })?;
                Ok(Arc::new(builder.finish()))
            }
            What::Key => {
                let texts = Texts::of(args, 0)?;
                let mut builder = StringViewBuilder::with_capacity(rows);
                for row in 0..rows {
                    builder.append_option(texts.get(row).and_then(|text| Scalar::of_json(text).key()));
                }
                Ok(Arc::new(builder.finish()))
            }
            What::Mark => first(args, rows),
        }
    }
}

fn first(args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    match args.args.first() {
        Some(value) => value.to_array(rows),
        None => Err(DataFusionError::Internal("an argument is missing".to_owned())),
    }
}

fn holds(operator: Operator, ordering: Ordering) -> bool {
    match operator {
        Operator::Eq => ordering.is_eq(),
        Operator::NotEq => ordering.is_ne(),
        Operator::Lt => ordering.is_lt(),
        Operator::LtEq => ordering.is_le(),
        Operator::Gt => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// The members of a batch's objects.
fn get(args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    if is_jsonb(&args.return_field) {
        return part(args, rows);
    }
    let untyped = is_untyped(&args.return_field);
    let to = if untyped { FieldType::Json } else { field_type_of(&args.return_field) };
    let objects = Texts::of(args, 0)?;
    let keys = (1..args.args.len()).map(|at| Key::of(args, at)).collect::<Result<Vec<_>>>()?;
    let mut found = Rows::new(&to);
    for row in 0..rows {
        let Some(text) = objects.get(row) else {
            found.append(None)?;
            continue;
        };
        let member = keys.iter().try_fold(parsed(text)?, |node, key| key.step(node, row));
        found.append(member)?;
    }
    Ok(found.finish())
}

/// Whether a field is PostgreSQL's `jsonb`, with its own rules for subscripts.
fn is_jsonb(field: &Field) -> bool {
    pg_type_of(field) == Some(JSONB)
}

/// The parts of `jsonb` documents at a path of keys, as documents: a name may be the position of an
/// element, and a part that is `null` is a document as well.
fn part(args: &ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
    let documents = Texts::of(args, 0)?;
    let keys = (1..args.args.len()).map(|at| Key::of(args, at)).collect::<Result<Vec<_>>>()?;
    let mut found = StringViewBuilder::with_capacity(rows);
    for row in 0..rows {
        let node = match documents.get(row) {
            Some(text) => keys.iter().try_fold(parsed(text)?, |node, key| key.step_within(node, row)),
            None => None,
        };
        found.append_option(node.map(Node::text));
    }
    Ok(Arc::new(found.finish()))
}

/// A key: the name of a member, or the position of an element, from 0.
enum Key {
    Name(Texts),
    Place(ArrayRef),
}

impl Key {
    fn of(args: &ScalarFunctionArgs, at: usize) -> Result<Key> {
        match args.args.get(at) {
            Some(value) if value.data_type().is_integer() => {
                Ok(Key::Place(datafusion::arrow::compute::cast(&value.to_array(1)?, &DataType::Int64)?))
            }
            _ => Texts::of(args, at).map(Key::Name),
        }
    }

    fn step<'n>(&self, node: Node<'n>, row: usize) -> Option<Node<'n>> {
        match self {
            Key::Name(texts) => node.member(texts.get(row)?),
            Key::Place(places) => element(node, place(places)?),
        }
    }

    /// Like [`Key::step`]; the kind of the document decides what a key is.
    fn step_within<'n>(&self, node: Node<'n>, row: usize) -> Option<Node<'n>> {
        match (self, node.kind()) {
            (Key::Name(texts), Kind::Array) => element(node, texts.get(row)?.parse().ok()?),
            (Key::Place(places), Kind::Object) => node.member(&place(places)?.to_string()),
            _ => self.step(node, row),
        }
    }
}

fn place(places: &ArrayRef) -> Option<i64> {
    match ScalarValue::try_from_array(places, 0).ok()? {
        ScalarValue::Int64(place) => place,
        _ => None,
    }
}

/// The element at a position, from 0 or, if negative, from the end.
fn element(node: Node<'_>, place: i64) -> Option<Node<'_>> {
    let is_array = node.kind() == Kind::Array;
    let place = match usize::try_from(place) {
        Ok(place) => place,
        Err(_) => node.children().count().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
    };
    node.children().nth(place).filter(|_| is_array).map(|(_, item)| item)
}

/// Fields as values of a type.
fn read(args: &ScalarFunctionArgs, rows: usize, to: &FieldType, strict: bool) -> Result<ArrayRef> {
    let texts = Texts::of(args, 0)?;
    let mut found = Rows::new(to);
    for row in 0..rows {
        // A text that is no document is taken as a plain text.
        let quoted;
        let node = match texts.get(row) {
            None => None,
            Some(text) => match Node::parse(text) {
                Ok(node) => Some(node),
                Err(_) => {
                    let mut out = String::new();
                    super::super::json::push_json_text(text, &mut out);
                    quoted = out;
                    Node::parse(&quoted).ok()
                }
            },
        };
        let is_null = found.append(node)?;
        if strict
            && is_null
            && let Some(node) = node.filter(|node| node.kind() != Kind::Null)
        {
            return Err(not_of_type(node.text(), to));
        }
    }
    Ok(found.finish())
}

/// One operand of a batch.
struct Side {
    array: ArrayRef,
    field_type: FieldType,
    is_constant: bool,
}

impl Side {
    fn of(args: &ScalarFunctionArgs, at: usize, untyped: bool, rows: usize) -> Result<Side> {
        let (Some(value), Some(field)) = (args.args.get(at), args.arg_fields.get(at)) else {
            return Err(DataFusionError::Internal("an operand is missing".to_owned()));
        };
        let is_constant = matches!(value, ColumnarValue::Scalar(_));
        let field_type = match field_type_of(field) {
            _ if untyped => FieldType::Json,
            // The remaining mark of a former type.
            FieldType::Json if field_type_of_arrow(field.data_type()) != FieldType::Varchar => {
                field_type_of_arrow(field.data_type())
            }
            other => other,
        };
        Ok(Side { array: value.to_array(if is_constant { 1 } else { rows })?, field_type, is_constant })
    }

    fn reader(&self) -> Result<ColumnReader<'_>> {
        let reader = ColumnReader::new(self.array.as_ref(), &self.field_type);
        reader.ok_or_else(|| wrong_arguments("compare", &[self.array.data_type().clone()]))
    }

    fn row(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }
}

/// Two operands.
struct Sides {
    left: Side,
    right: Side,
}

impl Sides {
    fn of(args: &ScalarFunctionArgs, [left, right]: Untyped, rows: usize) -> Result<Sides> {
        Ok(Sides { left: Side::of(args, 0, left, rows)?, right: Side::of(args, 1, right, rows)? })
    }

    /// Calls `take` with the operands of each row.
    fn each(&self, rows: usize, mut take: impl FnMut(Value<'_>, Value<'_>) -> Result<()>) -> Result<()> {
        let (left, right) = (self.left.reader()?, self.right.reader()?);
        (0..rows).try_for_each(|row| take(left.get(self.left.row(row)), right.get(self.right.row(row))))
    }

    /// Computes a boolean for the operands of each row.
    fn truths(&self, rows: usize, truth: impl Fn(Value<'_>, Value<'_>) -> Result<Option<bool>>) -> Result<ArrayRef> {
        let mut builder = BooleanBuilder::with_capacity(rows);
        self.each(rows, |left, right| {
            builder.append_option(truth(left, right)?);
            Ok(())
        })?;
        Ok(Arc::new(builder.finish()))
    }
}

/// Whether an array, typed or within a document, contains an element.
fn has(whole: Value<'_>, item: Value<'_>) -> Result<Option<bool>> {
    let item = Scalar::of_value(item);
    if whole.is_null() || item == Scalar::Null {
        return Ok(None);
    }
    let is_it = |found: Scalar<'_>| found.compare(&item) == Some(Ordering::Equal);
    Ok(Some(match whole {
        Value::Array(items) => items.into_iter().any(|found| is_it(Scalar::of_value(found))),
        Value::Json(text) | Value::Text(text) => match parsed(&text)? {
            array if array.kind() == Kind::Array => {
                array.children().any(|(_, found)| is_it(Scalar::of_json(found.text())))
            }
            _ => false,
        },
        _ => false,
    }))
}
