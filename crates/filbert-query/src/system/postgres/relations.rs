//! Tables, views, indexes and their columns.

use filbert_functions::pg_types;

use super::super::facts::{IndexFacts, RelationFacts, RelationKind};
use super::super::relation::{Relation, Rows, row};
use super::super::scene::Scene;
use crate::oids;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_class",
        columns: "tableoid oid=1259, oid oid, relname name, relnamespace oid, reltype oid=0, reloftype oid=0, relowner oid=10, relam oid=0, \
                  relfilenode oid=0, reltablespace oid=0, relpages int4=0, reltuples float4=-1, relallvisible int4=0, \
                  reltoastrelid oid=0, relhasindex bool=f, relisshared bool=f, relpersistence char=p, relkind char, \
                  relnatts int2=0, relchecks int2=0, relhasrules bool=f, relhastriggers bool=f, relhassubclass bool=f, \
                  relrowsecurity bool=f, relforcerowsecurity bool=f, relispopulated bool=t, relreplident char=d, \
                  relispartition bool=f, relrewrite oid=0, relfrozenxid xid=0, relminmxid xid=0, relacl _aclitem, \
                  reloptions _text, relpartbound pg_node_tree, relhasoids bool=f",
        rows: classes,
    },
    Relation {
        name: "pg_attribute",
        columns: "tableoid oid=1249, attrelid oid, attname name, atttypid oid, attstattarget int4=-1, attlen int2, attnum int2, \
                  attndims int4=0, attcacheoff int4=-1, atttypmod int4=-1, attbyval bool=f, attalign char=i, attstorage char=p, \
                  attcompression char=, attnotnull bool=f, atthasdef bool=f, atthasmissing bool=f, attidentity char=, \
                  attgenerated char=, attisdropped bool=f, attislocal bool=t, attinhcount int4=0, attcollation oid=0, \
                  attacl _aclitem, attoptions _text, attfdwoptions _text, attmissingval text",
        rows: attributes,
    },
    Relation {
        name: "pg_attrdef",
        columns: "tableoid oid=2604, oid oid, adrelid oid, adnum int2, adbin pg_node_tree, adsrc text",
        rows: defaults,
    },
    Relation {
        name: "pg_index",
        columns: "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool=f, indnullsnotdistinct bool=f, \
                  indisprimary bool=f, indisexclusion bool=f, indimmediate bool=t, indisclustered bool=f, indisvalid bool=t, \
                  indcheckxmin bool=f, indisready bool=t, indislive bool=t, indisreplident bool=f, indkey int2vector, \
                  indcollation oidvector, indclass oidvector, indoption int2vector, indexprs pg_node_tree, indpred pg_node_tree",
        rows: indexes,
    },
    Relation {
        name: "pg_constraint",
        columns: "tableoid oid=2606, oid oid, conname name, connamespace oid, contype char, condeferrable bool=f, condeferred bool=f, \
                  convalidated bool=t, conrelid oid=0, contypid oid=0, conindid oid=0, conparentid oid=0, confrelid oid=0, \
                  confupdtype char= , confdeltype char= , confmatchtype char= , conislocal bool=t, coninhcount int4=0, \
                  connoinherit bool=t, conkey _int2, confkey _int2, conpfeqop _oid, conppeqop _oid, conffeqop _oid, \
                  conexclop _oid, conbin pg_node_tree, consrc text",
        rows: constraints,
    },
    Relation {
        name: "pg_tables",
        columns: "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool=f, hasrules bool=f, \
                  hastriggers bool=f, rowsecurity bool=f",
        rows: tables,
    },
    Relation {
        name: "pg_views",
        columns: "schemaname name, viewname name, viewowner name, definition text",
        rows: views,
    },
    Relation {
        name: "pg_indexes",
        columns: "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
        rows: index_texts,
    },
    Relation {
        name: "pg_stat_user_tables",
        columns: "relid oid, schemaname name, relname name, seq_scan int8=0, seq_tup_read int8=0, idx_scan int8=0, \
                  idx_tup_fetch int8=0, n_tup_ins int8=0, n_tup_upd int8=0, n_tup_del int8=0, n_tup_hot_upd int8=0, \
                  n_live_tup int8=0, n_dead_tup int8=0, n_mod_since_analyze int8=0, n_ins_since_vacuum int8=0, \
                  last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, \
                  vacuum_count int8=0, autovacuum_count int8=0, analyze_count int8=0, autoanalyze_count int8=0",
        rows: user_tables,
    },
    Relation {
        name: "pg_stat_all_tables",
        columns: "relid oid, schemaname name, relname name, seq_scan int8=0, seq_tup_read int8=0, idx_scan int8=0, \
                  n_tup_ins int8=0, n_tup_upd int8=0, n_tup_del int8=0, n_live_tup int8=0, n_dead_tup int8=0",
        rows: user_tables,
    },
    Relation {
        name: "pg_statio_user_tables",
        columns: "relid oid, schemaname name, relname name, heap_blks_read int8=0, heap_blks_hit int8=0, idx_blks_read int8=0, \
                  idx_blks_hit int8=0",
        rows: statio_tables,
    },
    Relation {
        name: "pg_description",
        columns: "objoid oid, classoid oid, objsubid int4=0, description text",
        rows: descriptions,
    },
];

/// The number of rows of a relation; -1 if it is not known.
fn tuples(scene: &Scene, relation: &RelationFacts) -> f64 {
    scene.rows_of(relation).map_or(-1.0, |rows| rows as f64)
}

fn classes(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in &scene.facts().relations {
        let is_table = relation.kind == RelationKind::Table;
        let checks = relation.constraints.iter().filter(|constraint| constraint.kind == "c").count();
        row!(rows,
            oid: relation.oid,
            relname: &relation.name,
            relnamespace: relation.schema_oid,
            reltype: relation.row_type,
            relam: if relation.letter() == "r" { oids::HEAP } else { 0 },
            relfilenode: if is_table { relation.oid } else { 0 },
            relpages: scene.bytes_of(relation).map_or(0, |bytes| bytes / 8192),
            reltuples: tuples(scene, relation),
            relhasindex: !relation.indexes.is_empty(),
            relkind: relation.letter(),
            relnatts: relation.columns.len(),
            relchecks: checks,
            relhasrules: relation.letter() == "v",
        );
    }
    for (relation, index) in scene.facts().indexes() {
        row!(rows,
            oid: index.oid,
            relname: &index.name,
            relnamespace: relation.schema_oid,
            relam: if index.is_hash { oids::HASH } else { oids::BTREE },
            relfilenode: index.oid,
            reltuples: tuples(scene, relation),
            relkind: "i",
            relnatts: index.columns.len(),
            relreplident: "n",
        );
    }
}

fn attributes(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in &scene.facts().relations {
        for (at, column) in relation.columns.iter().enumerate() {
            let (oid, modifier) = column.declared;
            attribute(
                rows,
                relation.oid,
                at,
                &column.name,
                column.not_null,
                column.default.is_some(),
                (oid, modifier),
                if column.generated.is_some() { "s" } else { "" },
                match column.identity {
                    Some((true, _)) => "a",
                    Some((false, _)) => "d",
                    None => "",
                },
            );
        }
    }
    for (relation, index) in scene.facts().indexes() {
        for (at, (place, name)) in index.columns.iter().zip(&index.attributes).enumerate() {
            let column = usize::try_from(*place - 1).ok().and_then(|at| relation.columns.get(at));
            let declared = column.map_or((25, -1), |column| column.declared);
            attribute(rows, index.oid, at, name, false, false, declared, "", "");
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "they are the columns of one row")]
fn attribute(
    rows: &mut Rows<'_>,
    relation: i64,
    at: usize,
    name: &str,
    not_null: bool,
    has_default: bool,
    (oid, modifier): pg_types::Declared,
    generated: &str,
    identity: &str,
) {
    let found = pg_types::by_oid(oid);
    let size = match found {
        Some((found, false)) => found.size,
        _ => -1,
    };
    let is_text = matches!(found, Some((found, false)) if found.category == "S");
    row!(rows,
        attrelid: relation,
        attname: name,
        atttypid: oid,
        attlen: size,
        attnum: at + 1,
        attndims: i64::from(matches!(found, Some((_, true)))),
        atttypmod: modifier,
        attbyval: (1..=8).contains(&size),
        attstorage: if size < 0 { "x" } else { "p" },
        attnotnull: not_null,
        atthasdef: has_default || !generated.is_empty(),
        attidentity: identity,
        attgenerated: generated,
        attcollation: if is_text { oids::COLLATION } else { 0 },
    );
}

fn defaults(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for (at, column) in relation.columns.iter().enumerate() {
            if let Some(text) = column.default.as_ref().or(column.generated.as_ref()) {
                let oid = relation.oid.wrapping_add(i64::try_from(at).unwrap_or(0)) % i64::from(i32::MAX);
                row!(rows, oid: oid, adrelid: relation.oid, adnum: at + 1, adbin: text, adsrc: text);
            }
        }
    }
}

fn indexes(scene: &Scene, rows: &mut Rows<'_>) {
    for (relation, index) in scene.facts().indexes() {
        let zeros = vec![0; index.columns.len()];
        row!(rows,
            indexrelid: index.oid,
            indrelid: relation.oid,
            indnatts: index.columns.len(),
            indnkeyatts: index.columns.len(),
            indisunique: index.is_primary,
            indisprimary: index.is_primary,
            indkey: index.columns.clone(),
            indcollation: zeros.clone(),
            indclass: zeros.clone(),
            indoption: zeros,
        );
    }
}

fn constraints(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in &relation.constraints {
            row!(rows,
                oid: constraint.oid,
                conname: &constraint.name,
                connamespace: relation.schema_oid,
                contype: constraint.kind,
                conrelid: relation.oid,
                conindid: constraint.index,
                conkey: constraint.columns.clone(),
                conbin: if constraint.kind == "c" { Some(&constraint.definition) } else { None },
            );
        }
    }
}

fn tables(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().relations.iter().filter(|relation| relation.letter() == "r") {
        row!(rows,
            schemaname: &relation.schema,
            tablename: &relation.name,
            tableowner: scene.user(),
            hasindexes: !relation.indexes.is_empty(),
        );
    }
}

fn views(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().relations.iter().filter(|relation| relation.letter() == "v") {
        let definition = relation.definition.as_deref().unwrap_or_default();
        row!(rows,
            schemaname: &relation.schema,
            viewname: &relation.name,
            viewowner: scene.user(),
            definition: definition,
        );
    }
}

fn index_texts(scene: &Scene, rows: &mut Rows<'_>) {
    for (relation, index) in scene.facts().indexes() {
        row!(rows,
            schemaname: &relation.schema,
            tablename: &relation.name,
            indexname: &index.name,
            indexdef: index_definition(relation, index),
        );
    }
}

/// The statement that would create an index.
pub(crate) fn index_definition(relation: &RelationFacts, index: &IndexFacts) -> String {
    let columns: Vec<String> = index.attributes.iter().map(|name| filbert_dialect::quote_ident(name)).collect();
    format!(
        "CREATE {}INDEX {} ON {}.{} USING {} ({})",
        if index.is_primary { "UNIQUE " } else { "" },
        filbert_dialect::quote_ident(&index.name),
        filbert_dialect::quote_ident(&relation.schema),
        filbert_dialect::quote_ident(&relation.name),
        if index.is_hash { "hash" } else { "btree" },
        columns.join(", ")
    )
}

fn user_tables(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users().filter(|relation| relation.kind == RelationKind::Table) {
        row!(rows,
            relid: relation.oid,
            schemaname: &relation.schema,
            relname: &relation.name,
            n_live_tup: scene.rows_of(relation),
        );
    }
}

fn statio_tables(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users().filter(|relation| relation.kind == RelationKind::Table) {
        row!(rows, relid: relation.oid, schemaname: &relation.schema, relname: &relation.name);
    }
}

fn descriptions(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        if let Some(comment) = &relation.comment {
            row!(rows, objoid: relation.oid, classoid: 1259, description: comment);
        }
        for (at, column) in relation.columns.iter().enumerate() {
            if let Some(comment) = &column.comment {
                row!(rows, objoid: relation.oid, classoid: 1259, objsubid: at + 1, description: comment);
            }
        }
    }
}
