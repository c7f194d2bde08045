//! The cases of experiment Q: queries, their maps, and their published rates.

/// How values are serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// IdentifiedDataSerializable.
    Ids,
    /// Portable.
    Portable,
    /// Compact.
    Compact,
    /// JSON, mapped flat.
    Json,
}

impl Format {
    /// All formats, in the order in which they are measured.
    pub const ALL: [Format; 4] = [Format::Ids, Format::Portable, Format::Compact, Format::Json];

    /// The name for drivers and tables.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ids => "ids",
            Format::Portable => "portable",
            Format::Compact => "compact",
            Format::Json => "json",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// The maps of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// For reading all entries.
    Select,
    /// For scans; without an index.
    Scan,
    /// For lookups by its index.
    Index,
    /// For scans; additionally stored as columns. Filbert only.
    Columns,
}

impl Table {
    /// The map's name.
    pub(super) fn map(self, format: Format) -> String {
        let table = match self {
            Table::Select => "select",
            Table::Scan => "scan",
            Table::Index => "index",
            Table::Columns => "columns",
        };
        format!("q_{}_{table}", format.name())
    }
}

/// A query over a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    /// The name for the Java driver.
    pub(super) word: &'static str,
    /// The name in the report.
    pub(super) name: &'static str,
    /// The map.
    pub(super) table: Table,
    /// Calls per second in the published experiment.
    pub(super) rate: Option<f64>,
    /// The maximum number of calls in flight at that rate.
    pub(super) threads: u32,
}

impl Query {
    const fn new(word: &'static str, name: &'static str, table: Table, rate: Option<f64>) -> Query {
        let threads = if matches!(table, Table::Index) { 16 } else { 2 };
        Query { word, name, table, rate, threads }
    }

    /// The interface of the query.
    pub(super) fn driver(&self) -> &'static str {
        match self.word.split_once('-') {
            Some((driver, _)) => driver,
            None => "map",
        }
    }

    /// Whether the query applies to values in this format.
    pub(super) fn is_for(&self, format: Format) -> bool {
        format == Format::Json || self.word != "sql-sum-json"
    }

    /// The name of the case in a closed loop.
    pub(super) fn case(&self, format: Format) -> String {
        format!("{}, {}", format.name(), self.name)
    }

    /// The name of the case at a fixed rate.
    pub(super) fn case_at(&self, format: Format, rate: f64) -> String {
        format!("{}, {}, {rate}/s", format.name(), self.name)
    }
}

pub(super) const GET: &str = "get";
pub(super) const SUM: &str = "sum";
pub(super) const SUM_JSON: &str = "sum of JSON_VALUE";
pub(super) const FILTER: &str = "sum where";
pub(super) const LOOKUP_BY_INDEX: &str = "lookup by index";

/// The published queries and two further scans. A plain get is the reference for lookups.
pub(super) const QUERIES: [Query; 15] = [
    Query::new("sql-select", "select all", Table::Select, Some(24.0)),
    Query::new("predicate-entries", "select all", Table::Select, Some(24.0)),
    Query::new("sql-count", "count", Table::Scan, Some(6.0)),
    Query::new("sql-count-key", "count of keys", Table::Scan, Some(6.0)),
    Query::new("predicate-count", "count", Table::Scan, Some(6.0)),
    Query::new("sql-sum", SUM, Table::Scan, Some(6.0)),
    Query::new("sql-sum-json", SUM_JSON, Table::Scan, Some(5.0)),
    Query::new("predicate-sum", SUM, Table::Scan, Some(6.0)),
    Query::new("sql-filter", FILTER, Table::Scan, None),
    Query::new("sql-group", "sum by name", Table::Scan, None),
    Query::new("sql-lookup", "lookup by scan", Table::Scan, None),
    Query::new("predicate-lookup", "lookup by scan", Table::Scan, None),
    Query::new("sql-lookup", LOOKUP_BY_INDEX, Table::Index, Some(7_500.0)),
    Query::new("predicate-lookup", LOOKUP_BY_INDEX, Table::Index, Some(7_500.0)),
    Query::new("get", GET, Table::Index, Some(7_500.0)),
];

/// The scans that use columns.
pub(super) const COLUMN_QUERIES: [Query; 6] = [
    Query::new("sql-count", "count", Table::Columns, None),
    Query::new("sql-sum", SUM, Table::Columns, None),
    Query::new("predicate-sum", SUM, Table::Columns, None),
    Query::new("sql-filter", FILTER, Table::Columns, None),
    Query::new("sql-group", "sum by name", Table::Columns, None),
    Query::new("predicate-lookup", "lookup by scan", Table::Columns, None),
];

/// The same scans: name for the DuckDB driver, and name in the report.
pub(super) const DUCKDB_QUERIES: [(&str, &str); 4] =
    [("count", "count"), ("sum", SUM), ("filter", FILTER), ("group", "sum by name")];
