-- What the first runs found, a statement for each cause.

-- A statement that fails changes nothing.
create table tbl_2 (id int, k int, primary key (id));
insert into tbl_2 values (3, 6), (4, 6), (5, 2);
create table tbl_3 (id int, k int, primary key (id));
insert into tbl_3 values (1, 1), (2, 0), (3, null), (4, 2);
insert into tbl_2 (id, k) select 1, 1 from tbl_3 as a1;
select * from tbl_2;

-- Sums of float4 that overflow are errors.
select '3.4e38'::float4 * '3.4e38'::float4;

-- IN and NOT IN with NULLs in the list, beside joins in the query.
create table tbl_1 (id int, k int, i11 int, primary key (id));
insert into tbl_1 values (1, 0, null), (2, 1, 2), (3, null, 5), (4, 2, null);
select a1.k from tbl_1 as a1 where a1.k not in (select a4.i11 from tbl_1 as a4);
select a1.k from tbl_1 as a1 where (a1.k not in (select a4.i11 from tbl_1 as a4)) is null;
select a1.k from tbl_1 as a1 where (0 + a1.k) not in (select a4.i11 from tbl_2 as a2 left join tbl_3 as a3 on a2.id = a3.id join tbl_1 as a4 on a3.k = a4.id);
select a1.k from tbl_1 as a1 group by a1.k having count(*) in (select a4.k as c1 from tbl_3 as a2 full join tbl_1 as a4 on a2.k = a4.k);

-- A row is not null when none of its values is.
select row(null::int4, 'x') is not null, row(1, 'x') is not null, row(null, null) is null;

-- Patterns.
select 'a' similar to '%', 'zz' not similar to '%', 'ab' similar to 'a_';

-- Types of literals and of what takes one of several.
select true;
select (-1);
select nullif('00000000-0000-0000-0000-000000000000'::uuid, '00000000-0000-0000-0000-000000000000'::uuid);
select '-2147483648'::int4 << 5, '1'::int2 << 3, ~ '3'::int2, '-4'::int2 & 7::int2;
-- parameters: [[1114,"2024-01-01 00:00:00"]]
select $1, 1 order by 2;

-- Numbers.
select to_hex('-2147483648'::int4);
select round('-2.5'::float8), round('2.5'::float8);
select '2.50'::numeric::int4, '-2.5'::numeric::int4, '2.5'::float8::int4;
select trunc('1'::numeric, 2), round('3.1'::numeric, 2), nullif('2.50'::numeric, '0'::numeric);
select sqrt('2.50'::numeric), power('0.001'::numeric, 4), ln('100.99'::numeric), log('11'::numeric), exp('0.9999'::numeric);

-- Dates.
select extract(second from '23:59:59.999999'::time), date_part('second', '1969-12-31 23:59:59.999999'::timestamp);
select '1999-12-31 00:00:01'::timestamp - '2023-12-31 23:59:59.999999'::timestamp;
select 'Ab'::text || '2024-01-01 00:00:00'::timestamp, concat('A', '0001-01-01 00:00:00'::timestamp);
select extract(epoch from '2000-01-01 06:00:00+00'::timestamptz), extract(milliseconds from '9999-12-31 23:59:59'::timestamp);

-- char(n), arrays, documents.
select length('a  '::bpchar), 'a  '::bpchar = 'a'::bpchar, 'Ab'::char(4);
select array_length('{}'::int4[], 1), array_dims('{-1,0,1}'::int4[]), 100 = any('{1,NULL,3}'::int4[]);
select jsonb_build_object('', '2000-01-01 06:00:00+00'::timestamptz), to_jsonb('100'::float4), '"ä\n\u0041"'::jsonb ->> 0;

-- Queries without rows at the start of a union of unions.
(select '{}'::int4[], '\x'::bytea where (true is false)) union ((select '{}'::int4[] as c1, '\x'::bytea) union all (select '{}'::int4[], '\x'::bytea));
drop table if exists tbl_2;
create table tbl_2 (id int, primary key (id));
drop table if exists tbl_3;
create table tbl_3 (id int, primary key (id));
(select 1, 1 from tbl_3 as a2 join tbl_2 as a3 on false) union ((select 1, 1 as c2) union all (select 1, 1));
drop table if exists tbl_3;
create table tbl_3 (id int, j32 jsonb, primary key (id));
insert into tbl_3 values ('1', '{}');
select (select jsonb_object_agg(coalesce('a', ''), 1) group by a1.j32, a1.j32) from tbl_3 as a1;
select not exists (select min(1) where ((date '2024-01-01', date '2024-01-01') overlaps ((null - 1), date '2024-01-01')));
