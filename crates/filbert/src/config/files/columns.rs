//! The columns that a map stores next to its entries: `map.<name>.columns` of the file.

use filbert_data::{FieldPath, FieldType};
use filbert_grid::{ColumnConfig, MapConfig};

use super::error::Problem;
use super::setting::{Kind, Setting};
use super::tree::Node;
use super::walk::{Path, Walk};

/// The column types except `DECIMAL`, which has precision and scale in its name.
const TYPES: &[(&str, FieldType)] = &[
    ("BOOLEAN", FieldType::Boolean),
    ("TINYINT", FieldType::TinyInt),
    ("SMALLINT", FieldType::SmallInt),
    ("INTEGER", FieldType::Integer),
    ("INT", FieldType::Integer),
    ("BIGINT", FieldType::BigInt),
    ("REAL", FieldType::Real),
    ("DOUBLE", FieldType::Double),
    ("VARCHAR", FieldType::Varchar),
    ("DATE", FieldType::Date),
    ("TIME", FieldType::Time),
    ("TIMESTAMP", FieldType::Timestamp),
    ("TIMESTAMP WITH TIME ZONE", FieldType::TimestampTz),
    ("JSON", FieldType::Json),
];
const TYPE_EXPECTED: &str = "a type of SQL such as INTEGER, DOUBLE, VARCHAR or DECIMAL(10, 2)";

/// A partially read column.
#[derive(Default)]
struct Draft {
    path: String,
    field_type: Option<FieldType>,
}

const COLUMN: &[Setting<Draft>] = &[
    Setting {
        name: "path",
        kind: Kind::Text {
            what: "the path of a field, such as address.city",
            get: |column| column.path.clone(),
            set: |column, text| {
                column.path = text.to_owned();
                FieldPath::parse(text).is_ok_and(|field| !field.path.finds_many())
            },
        },
        unit: "",
        doc: "The field, as queries name it.",
    },
    Setting {
        name: "type",
        kind: Kind::Text {
            what: TYPE_EXPECTED,
            get: |column| column.field_type.as_ref().map_or_else(String::new, FieldType::to_string),
            set: |column, text| {
                column.field_type = type_of(text);
                column.field_type.is_some()
            },
        },
        unit: "",
        doc: "The type that values are converted to.",
    },
];

/// Reads the column list of a map.
pub(super) fn read(map: &mut MapConfig, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for (number, item) in walk.list(path, node)?.iter().enumerate() {
        let path = path.item(number);
        let mut draft = Draft::default();
        walk.section(&path, item, COLUMN, &mut draft)?;
        let field = FieldPath::parse(&draft.path).ok().filter(|_| !draft.path.is_empty());
        let (Some(field), Some(field_type)) = (field, draft.field_type) else {
            let found = "a column without path or type".to_owned();
            return Err(walk.found(&path, item, found, "both of them".to_owned()));
        };
        map.columns.push(ColumnConfig { field, field_type });
    }
    Ok(())
}

fn type_of(text: &str) -> Option<FieldType> {
    let text = text.trim();
    if let Some((_, field_type)) = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Some(field_type.clone());
    }
    let (name, digits) = text.strip_suffix(')')?.split_once('(')?;
    let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
    let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let fits = (1..=38).contains(&precision) && (0..=precision).contains(&scale);
    (name.trim().eq_ignore_ascii_case("DECIMAL") && fits)
        // Both are at most 38.
        .then_some(FieldType::Decimal(Some((precision, scale as i8))))
}
