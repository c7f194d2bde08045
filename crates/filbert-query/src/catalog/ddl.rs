//! The statement that creates a mapping.

use super::{Mapping, MappingColumn};

/// The statement that creates a mapping, as Hazelcast writes it.
pub(crate) fn ddl(mapping: &Mapping) -> String {
    let name = identifier(&mapping.name);
    let external = identifier(&mapping.external_name);
    let mut text =
        format!("CREATE OR REPLACE EXTERNAL MAPPING \"hazelcast\".\"public\".{name} EXTERNAL NAME {external}");
    let declared: Vec<&MappingColumn> = mapping.columns.iter().filter(|column| !column.hidden).collect();
    for (at, column) in declared.iter().enumerate() {
        text.push_str(if at == 0 { " (\n" } else { ",\n" });
        let name = identifier(&column.name);
        text.push_str(&format!("  {name} {} EXTERNAL NAME {}", column.field_type, identifier(&external_name(column))));
    }
    if !declared.is_empty() {
        text.push_str("\n)");
    }
    text.push_str("\nTYPE \"IMap\"");
    for (at, (key, value)) in mapping.options.iter().enumerate() {
        text.push_str(if at == 0 { "\nOPTIONS (\n" } else { ",\n" });
        text.push_str(&format!("  {}={}", literal(key), literal(value)));
    }
    if !mapping.options.is_empty() {
        text.push_str("\n)");
    }
    text
}

/// The path of a column for `EXTERNAL NAME`.
pub(crate) fn external_name(column: &MappingColumn) -> String {
    let path = column.path.to_string();
    match column.path.side {
        filbert_data::Side::Key => path,
        filbert_data::Side::Value if column.path.path.is_itself() => path,
        filbert_data::Side::Value => format!("this.{path}"),
    }
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
