//! Schemas, databases, roles, and other objects that every PostgreSQL server has.

use super::super::relation::{Relation, Rows, row};
use super::super::scene::Scene;
use crate::oids;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_namespace",
        columns: "tableoid oid=2615, oid oid, nspname name, nspowner oid=10, nspacl _aclitem",
        rows: namespaces,
    },
    Relation {
        name: "pg_database",
        columns: "tableoid oid=1262, oid oid, datname name, datdba oid=10, encoding int4=6, datlocprovider char=c, datistemplate bool=f, \
                  datallowconn bool=t, datconnlimit int4=-1, datlastsysoid oid=16383, datfrozenxid xid=0, datminmxid xid=1, \
                  dattablespace oid=1663, datcollate name=C, datctype name=C, daticulocale text, datcollversion text, \
                  datacl _aclitem",
        rows: databases,
    },
    Relation {
        name: "pg_roles",
        columns: "rolname name, rolsuper bool=t, rolinherit bool=t, rolcreaterole bool=t, rolcreatedb bool=t, rolcanlogin bool=t, \
                  rolreplication bool=f, rolconnlimit int4=-1, rolpassword text=********, rolvaliduntil timestamptz, \
                  rolbypassrls bool=t, rolconfig _text, oid oid",
        rows: roles,
    },
    Relation {
        name: "pg_authid",
        columns: "oid oid, rolname name, rolsuper bool=t, rolinherit bool=t, rolcreaterole bool=t, rolcreatedb bool=t, \
                  rolcanlogin bool=t, rolreplication bool=f, rolbypassrls bool=t, rolconnlimit int4=-1, rolpassword text, \
                  rolvaliduntil timestamptz",
        rows: roles,
    },
    Relation {
        name: "pg_user",
        columns: "usename name, usesysid oid, usecreatedb bool=t, usesuper bool=t, userepl bool=f, usebypassrls bool=t, \
                  passwd text=********, valuntil timestamptz, useconfig _text",
        rows: users,
    },
    Relation {
        name: "pg_shadow",
        columns: "usename name, usesysid oid, usecreatedb bool=t, usesuper bool=t, userepl bool=f, usebypassrls bool=t, \
                  passwd text, valuntil timestamptz, useconfig _text",
        rows: users,
    },
    Relation {
        name: "pg_tablespace",
        columns: "tableoid oid=1213, oid oid, spcname name, spcowner oid=10, spcacl _aclitem, spcoptions _text",
        rows: |_, rows| {
            row!(rows, oid: oids::TABLESPACE, spcname: "pg_default");
            row!(rows, oid: 1664, spcname: "pg_global");
        },
    },
    Relation {
        name: "pg_am",
        columns: "tableoid oid=2601, oid oid, amname name, amhandler regproc, amtype char",
        rows: |scene, rows| {
            for (oid, name, handler, kind) in [
                (oids::HEAP, "heap", "heap_tableam_handler", "t"),
                (oids::BTREE, "btree", "bthandler", "i"),
                (oids::HASH, "hash", "hashhandler", "i"),
            ] {
                row!(rows, oid: oid, amname: name, amhandler: scene.server.function_oid(handler), amtype: kind);
            }
        },
    },
    Relation {
        name: "pg_collation",
        columns: "tableoid oid=3456, oid oid, collname name, collnamespace oid=11, collowner oid=10, collprovider char=c, \
                  collisdeterministic bool=t, collencoding int4=-1, collcollate text=C, collctype text=C, colliculocale text, \
                  collversion text",
        rows: |_, rows| {
            row!(rows, oid: oids::COLLATION, collname: "default", collprovider: "d");
            row!(rows, oid: 950, collname: "C");
            row!(rows, oid: 951, collname: "POSIX");
        },
    },
    Relation {
        name: "pg_language",
        columns: "tableoid oid=2612, oid oid, lanname name, lanowner oid=10, lanispl bool=f, lanpltrusted bool=f, lanplcallfoid oid=0, \
                  laninline oid=0, lanvalidator oid=0, lanacl _aclitem",
        rows: |_, rows| {
            row!(rows, oid: 12, lanname: "internal");
            row!(rows, oid: 14, lanname: "sql", lanpltrusted: true);
        },
    },
    Relation {
        name: "pg_extension",
        columns: "tableoid oid=3079, oid oid, extname name, extowner oid=10, extnamespace oid=11, extrelocatable bool=f, extversion text, \
                  extconfig _oid, extcondition _text",
        rows: super::super::relation::no_rows,
    },
];

fn namespaces(scene: &Scene, rows: &mut Rows<'_>) {
    for (name, oid) in &scene.facts().schemas {
        row!(rows, oid: *oid, nspname: name);
    }
}

fn databases(scene: &Scene, rows: &mut Rows<'_>) {
    row!(rows, oid: oids::DATABASE, datname: scene.database());
}

fn roles(scene: &Scene, rows: &mut Rows<'_>) {
    row!(rows, oid: oids::SUPERUSER, rolname: scene.user());
}

fn users(scene: &Scene, rows: &mut Rows<'_>) {
    row!(rows, usesysid: oids::SUPERUSER, usename: scene.user());
}
