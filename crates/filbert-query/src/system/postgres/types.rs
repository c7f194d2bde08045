//! Types, and the empty relations of ranges and enumerations.

use filbert_functions::pg_types::{self, PgType, TYPES};

use super::super::facts::RelationFacts;
use super::super::relation::{Relation, Rows, no_rows, row};
use super::super::scene::Scene;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_type",
        columns: "tableoid oid=1247, oid oid, typname name, typnamespace oid=11, typowner oid=10, typlen int2, typbyval bool=f, typtype char=b, \
                  typcategory char, typispreferred bool=f, typisdefined bool=t, typdelim char, typrelid oid=0, \
                  typsubscript regproc=0, typelem oid=0, typarray oid=0, typinput regproc, typoutput regproc, typreceive regproc, \
                  typsend regproc, typmodin regproc=0, typmodout regproc=0, typanalyze regproc=0, typalign char=i, \
                  typstorage char=p, typnotnull bool=f, typbasetype oid=0, typtypmod int4=-1, typndims int4=0, \
                  typcollation oid=0, typdefaultbin pg_node_tree, typdefault text, typacl _aclitem",
        rows: all,
    },
    Relation {
        name: "pg_proc",
        columns: "tableoid oid=1255, oid oid, proname name, pronamespace oid=11, proowner oid=10, prolang oid=12, procost float4=1, \
                  prorows float4=0, provariadic oid=0, prosupport regproc=0, prokind char=f, prosecdef bool=f, \
                  proleakproof bool=f, proisstrict bool=t, proretset bool=f, provolatile char=i, proparallel char=s, \
                  pronargs int2=0, pronargdefaults int2=0, prorettype oid=25, proargtypes oidvector, proallargtypes _oid, \
                  proargmodes _char, proargnames _text, proargdefaults pg_node_tree, protrftypes _oid, prosrc text, probin text, \
                  prosqlbody pg_node_tree, proconfig _text, proacl _aclitem, proisagg bool=f, proiswindow bool=f",
        rows: functions,
    },
    Relation {
        name: "pg_enum",
        columns: "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
        rows: no_rows,
    },
    Relation {
        name: "pg_range",
        columns: "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical regproc, \
                  rngsubdiff regproc",
        rows: no_rows,
    },
];

fn all(scene: &Scene, rows: &mut Rows<'_>) {
    for found in TYPES {
        one(scene, found, rows);
        if found.array != 0 {
            array(scene, found, rows);
        }
    }
    for relation in scene.facts().of_users() {
        of_rows(scene, relation, rows);
    }
}

/// The type of a relation's rows.
fn of_rows(scene: &Scene, relation: &RelationFacts, rows: &mut Rows<'_>) {
    let function = |name| scene.server.function_oid(name);
    row!(rows,
        oid: relation.row_type,
        typname: &relation.name,
        typnamespace: relation.schema_oid,
        typlen: -1,
        typtype: "c",
        typcategory: "C",
        typdelim: ",",
        typrelid: relation.oid,
        typinput: function("record_in"),
        typoutput: function("record_out"),
        typreceive: function("record_recv"),
        typsend: function("record_send"),
        typalign: "d",
        typstorage: "x",
    );
}

fn one(scene: &Scene, found: &PgType, rows: &mut Rows<'_>) {
    let [input, output, receive, send] = pg_types::functions(found).map(|name| scene.server.function_oid(&name));
    let element = match found.name {
        "int2vector" => 21,
        "oidvector" => 26,
        "name" => 18,
        _ => 0,
    };
    row!(rows,
        oid: found.oid,
        typname: found.name,
        typlen: found.size,
        typbyval: matches!(found.size, 1 | 2 | 4 | 8),
        typtype: found.kind,
        typcategory: found.category,
        typispreferred: found.preferred,
        typdelim: ",",
        typelem: element,
        typarray: found.array,
        typinput: input,
        typoutput: output,
        typreceive: receive,
        typsend: send,
        typalign: if found.size == 8 { "d" } else { "i" },
        typstorage: if found.size < 0 { "x" } else { "p" },
        typcollation: if found.category == "S" { crate::oids::COLLATION } else { 0 },
    );
}

fn array(scene: &Scene, found: &PgType, rows: &mut Rows<'_>) {
    let [input, output, receive, send] = pg_types::ARRAY_FUNCTIONS.map(|name| scene.server.function_oid(name));
    row!(rows,
        oid: found.array,
        typname: format!("_{}", found.name),
        typlen: -1,
        typcategory: "A",
        typdelim: ",",
        typsubscript: scene.server.function_oid("array_subscript_handler"),
        typelem: found.oid,
        typinput: input,
        typoutput: output,
        typreceive: receive,
        typsend: send,
        typstorage: "x",
        typcollation: if found.category == "S" { crate::oids::COLLATION } else { 0 },
    );
}

/// The functions that statements can call, without their arguments.
fn functions(scene: &Scene, rows: &mut Rows<'_>) {
    for (at, (name, kind)) in scene.server.function_names().iter().enumerate() {
        row!(rows,
            oid: crate::oids::of_function(at),
            proname: name,
            prokind: *kind,
            proargtypes: Vec::<i64>::new(),
            prosrc: name,
            proisagg: *kind == "a",
            proiswindow: *kind == "w",
        );
    }
}
