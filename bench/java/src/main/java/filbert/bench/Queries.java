package filbert.bench;

import com.hazelcast.aggregation.Aggregators;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.query.Predicates;
import com.hazelcast.sql.SqlResult;
import com.hazelcast.sql.SqlRow;
import com.hazelcast.sql.SqlService;

import java.util.Map;
import java.util.Objects;

/**
 * The queries of experiment Q over one map of {@link Formats} values with keys from 0. Every answer is compared with
 * what was loaded.
 */
final class Queries {
    /** Half of all numbers are above it. */
    private static final long MIDDLE = 1L << 30;

    private final SqlService sql;
    private final IMap<Integer, Object> map;
    private final String name;
    private final int entries;
    private long sum;
    private long sumAboveMiddle;
    private final long[] sumsByName = new long[Formats.names()];

    Queries(HazelcastInstance client, String name, int entries) {
        this.sql = client.getSql();
        this.map = client.getMap(name);
        this.name = name;
        this.entries = entries;
        for (int key = 0; key < entries; key++) {
            long number = Formats.number(key);
            sum += number;
            sumAboveMiddle += number > MIDDLE ? number : 0;
            sumsByName[key % sumsByName.length] += number;
        }
    }

    /** The query of a name. */
    Pace.Call call(String query) {
        String all = "SELECT __key, this FROM " + name;
        String lookup = all + " WHERE \"value\" = ?";
        String filter = "SELECT sum(\"value\") FROM " + name + " WHERE \"value\" > ?";
        String group = "SELECT name, sum(\"value\") FROM " + name + " GROUP BY name";
        String json = "SELECT sum(JSON_VALUE(this, '$.value' RETURNING INTEGER)) FROM " + name + "_json";
        switch (query) {
            case "get":
                return number -> expect("a get", Formats.number(key(number)), Formats.numberOf(map.get(key(number))));
            case "sql-select":
                return number -> select(all);
            case "sql-count":
                return number -> expect(query, entries, one("SELECT count(*) FROM " + name));
            case "sql-count-key":
                return number -> expect(query, entries, one("SELECT count(__key) FROM " + name));
            case "sql-sum":
                return number -> expect(query, sum, one("SELECT sum(\"value\") FROM " + name));
            case "sql-sum-json":
                return number -> expect(query, sum, one(json));
            case "sql-filter":
                return number -> expect(query, sumAboveMiddle, one(filter, MIDDLE));
            case "sql-group":
                return number -> group(group);
            case "sql-lookup":
                return number -> sqlLookup(lookup, key(number));
            case "predicate-entries":
                return number -> entries();
            case "predicate-count":
                return number -> expect(query, entries, map.aggregate(Aggregators.count()));
            case "predicate-sum":
                return number -> expect(query, sum, map.aggregate(Aggregators.longSum("value")));
            case "predicate-lookup":
                return number -> predicateLookup(key(number));
            default:
                throw new IllegalArgumentException("unknown query " + query);
        }
    }

    /** Some key, another one for every call. */
    private int key(long number) {
        return (int) Math.floorMod(number * 7_919L + 17, (long) entries);
    }

    /** The one number of a statement's one row. */
    private long one(String statement, Object... parameters) {
        try (SqlResult result = sql.execute(statement, parameters)) {
            Number number = null;
            for (SqlRow row : result) {
                if (number != null) {
                    throw new Wrong("more than one row of " + statement);
                }
                number = row.getObject(0);
            }
            if (number == null) {
                throw new Wrong("no number from " + statement);
            }
            return number.longValue();
        }
    }

    private void select(String statement) {
        long rows = 0;
        long total = 0;
        try (SqlResult result = sql.execute(statement)) {
            for (SqlRow row : result) {
                int key = row.getObject(0);
                long number = Formats.numberOf(row.getObject(1));
                expect("the value of key " + key, Formats.number(key), number);
                rows++;
                total += number;
            }
        }
        expect("rows", entries, rows);
        expect("the sum of all rows", sum, total);
    }

    private void group(String statement) {
        int rows = 0;
        try (SqlResult result = sql.execute(statement)) {
            for (SqlRow row : result) {
                String group = row.getObject(0);
                Number number = row.getObject(1);
                expect(group, sumsByName[Integer.parseInt(group.substring(5))], number.longValue());
                rows++;
            }
        }
        expect("groups", Math.min(entries, sumsByName.length), rows);
    }

    private void sqlLookup(String statement, int key) {
        int rows = 0;
        try (SqlResult result = sql.execute(statement, Formats.number(key))) {
            for (SqlRow row : result) {
                expect("the key looked up", key, row.<Integer>getObject(0));
                expect("the number looked up", Formats.number(key), Formats.numberOf(row.getObject(1)));
                rows++;
            }
        }
        expect("rows of a lookup", 1, rows);
    }

    private void predicateLookup(int key) {
        int rows = 0;
        for (Map.Entry<Integer, Object> entry : map.entrySet(Predicates.equal("value", Formats.number(key)))) {
            expect("the key looked up", key, entry.getKey());
            expect("the number looked up", Formats.number(key), Formats.numberOf(entry.getValue()));
            rows++;
        }
        expect("entries of a lookup", 1, rows);
    }

    private void entries() {
        long rows = 0;
        long total = 0;
        for (Map.Entry<Integer, Object> entry : map.entrySet()) {
            long number = Formats.numberOf(entry.getValue());
            expect("the value of key " + entry.getKey(), Formats.number(entry.getKey()), number);
            rows++;
            total += number;
        }
        expect("entries", entries, rows);
        expect("the sum of all entries", sum, total);
    }

    private static void expect(String what, long expected, Long found) {
        if (!Objects.equals(expected, found)) {
            throw new Wrong(what + " is " + found + ", expected " + expected);
        }
    }

    private static void expect(String what, long expected, long found) {
        if (expected != found) {
            throw new Wrong(what + " is " + found + ", expected " + expected);
        }
    }

    private static void expect(String what, int expected, Integer found) {
        expect(what, (long) expected, found == null ? null : Long.valueOf(found));
    }
}
