package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.config.IndexType;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.sql.HazelcastSqlException;
import com.hazelcast.sql.SqlColumnType;
import com.hazelcast.sql.SqlExpectedResultType;
import com.hazelcast.sql.SqlResult;
import com.hazelcast.sql.SqlRow;
import com.hazelcast.sql.SqlStatement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** SQL: statements, parameters, cursors and errors, over plain values. */
class SqlTest extends Suite {
    private static int made;

    /** The map's name, of letters and numbers. */
    private String numbers;

    @BeforeEach
    void prepareNumbers() {
        numbers = "SqlTest" + made++;
        map = client.getMap(numbers);
        map.putAll(IntStream.range(0, 10).boxed().collect(Collectors.toMap(i -> i, i -> i)));
        client.getSql().executeUpdate("CREATE OR REPLACE MAPPING " + numbers
                + " TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')");
    }

    private SqlResult run(String text, Object... parameters) {
        return client.getSql().execute(text.replace("{map}", numbers), parameters);
    }

    private long update(String text, Object... parameters) {
        return client.getSql().executeUpdate(text.replace("{map}", numbers), parameters);
    }

    /** The update count of a statement that has changed so many entries: Hazelcast does not count them. */
    private static long changed(long entries) {
        return Member.REAL_HAZELCAST ? 0 : entries;
    }

    private List<List<Object>> rows(String text, Object... parameters) {
        List<List<Object>> rows = new ArrayList<>();
        try (SqlResult result = run(text, parameters)) {
            for (SqlRow row : result) {
                List<Object> values = new ArrayList<>();
                for (int i = 0; i < row.getMetadata().getColumnCount(); i++) {
                    values.add(row.getObject(i));
                }
                rows.add(values);
            }
        }
        return rows;
    }

    private Set<Object> firstColumn(String text, Object... parameters) {
        return new TreeSet<>(rows(text, parameters).stream().map(row -> row.get(0)).toList());
    }

    private HazelcastSqlException fails(String text, Object... parameters) {
        return assertThrows(HazelcastSqlException.class, () -> rows(text, parameters));
    }

    @Test
    void rowsAreReadByNameAndPosition() {
        try (SqlResult result = run("SELECT __key AS k, this * 2 AS twice FROM {map} WHERE this = 4")) {
            assertTrue(result.isRowSet());
            assertEquals(-1, result.updateCount());
            assertEquals(2, result.getRowMetadata().getColumnCount());
            assertEquals("twice", result.getRowMetadata().getColumn(1).getName());
            assertEquals(SqlColumnType.BIGINT, result.getRowMetadata().getColumn(1).getType());
            assertEquals(0, result.getRowMetadata().findColumn("k"));
            SqlRow row = result.iterator().next();
            assertEquals(4, row.<Integer>getObject("k"));
            assertEquals(8L, row.<Long>getObject("twice"));
            assertThrows(IllegalArgumentException.class, () -> row.getObject("missing"));
        }
    }

    @Test
    void conditionsSelect() {
        assertEquals(Set.of(8, 9), firstColumn("SELECT __key FROM {map} WHERE this > 7"));
        assertEquals(Set.of(3), firstColumn("SELECT __key FROM {map} WHERE __key = 3"));
        assertEquals(Set.of(1, 5), firstColumn("SELECT __key FROM {map} WHERE this IN (1, 5, 77)"));
        assertEquals(Set.of(2, 3), firstColumn("SELECT __key FROM {map} WHERE this BETWEEN ? AND ?", 2, 3));
        assertEquals(Set.of(), firstColumn("SELECT __key FROM {map} WHERE this IS NULL"));
    }

    @Test
    void groupsOrdersAndLimits() {
        assertEquals(
                List.of(Arrays.asList(0, 4L, 18L), Arrays.asList(1, 3L, 12L), Arrays.asList(2, 3L, 15L)),
                rows("SELECT CAST(this % 3 AS INTEGER) AS m, COUNT(*), SUM(this) FROM {map} GROUP BY this % 3 ORDER BY m"));
        assertEquals(List.of(List.of(9), List.of(8)), rows("SELECT this FROM {map} ORDER BY this DESC LIMIT 2"));
        assertEquals(List.of(List.of(3)), rows("SELECT this FROM {map} ORDER BY this LIMIT 1 OFFSET 3"));
        assertEquals(
                List.of(List.of(10L)),
                rows("SELECT COUNT(*) FROM {map} a JOIN {map} b ON a.__key = b.this"));
        assertEquals(20, rows("SELECT this FROM {map} UNION ALL SELECT this FROM {map}").size());
        assertEquals(10, rows("SELECT this FROM {map} UNION SELECT __key FROM {map}").size());
    }

    @Test
    void aHundredThousandRowsComeInPages() {
        map.putAll(IntStream.range(0, 100_000).boxed().collect(Collectors.toMap(i -> i, i -> i)));
        SqlStatement statement = new SqlStatement("SELECT this FROM " + numbers).setCursorBufferSize(500);
        long count = 0;
        long sum = 0;
        try (SqlResult result = client.getSql().execute(statement)) {
            for (SqlRow row : result) {
                count++;
                sum += row.<Integer>getObject(0);
            }
        }
        assertEquals(100_000, count);
        assertEquals(99_999L * 50_000, sum);
    }

    @Test
    void aClosedResultGivesNoMore() {
        SqlResult result = client.getSql().execute(new SqlStatement("SELECT v FROM TABLE(generate_stream(1000))").setCursorBufferSize(1));
        Iterator<SqlRow> rows = result.iterator();
        assertEquals(0L, rows.next().<Long>getObject(0));
        result.close();
        assertThrows(HazelcastSqlException.class, () -> {
            while (true) {
                rows.next();
            }
        });
        assertEquals(10, rows("SELECT * FROM {map}").size());
    }

    @Test
    void closingEndsAWaitingFetch() throws Exception {
        SqlResult result = run("SELECT v FROM TABLE(generate_stream(1))");
        Future<Boolean> reader = elsewhere(() -> {
            assertThrows(HazelcastSqlException.class, () -> result.forEach(row -> { }));
            return true;
        });
        Thread.sleep(100);
        result.close();
        assertTrue(reader.get());
    }

    @Test
    void aStatementThatTakesTooLongIsEnded() {
        SqlStatement statement = new SqlStatement("SELECT v FROM TABLE(generate_stream(1))").setTimeoutMillis(500);
        HazelcastSqlException error = assertThrows(HazelcastSqlException.class, () -> {
            try (SqlResult result = client.getSql().execute(statement)) {
                result.forEach(row -> { });
            }
        });
        assertNotNull(error.getMessage());
    }

    @Test
    void theExpectedKindOfResultIsChecked() {
        SqlStatement select = new SqlStatement("SELECT * FROM " + numbers);
        SqlStatement insert = new SqlStatement("INSERT INTO " + numbers + " VALUES (77, 77)");
        assertThrows(HazelcastSqlException.class, () -> {
            try (SqlResult result = client.getSql().execute(select.setExpectedResultType(SqlExpectedResultType.UPDATE_COUNT))) {
                result.forEach(row -> { });
            }
        });
        assertThrows(HazelcastSqlException.class,
                () -> client.getSql().execute(insert.setExpectedResultType(SqlExpectedResultType.ROWS)));
        assertFalse(map.containsKey(77));
        try (SqlResult result = client.getSql().execute(insert.setExpectedResultType(SqlExpectedResultType.UPDATE_COUNT))) {
            assertFalse(result.isRowSet());
            assertEquals(changed(1), result.updateCount());
        }
        assertTrue(map.containsKey(77));
    }

    @Test
    void changesByStatement() {
        assertEquals(changed(2), update("INSERT INTO {map} VALUES (?, ?), (?, ?)", 20, 1, 21, 2));
        assertEquals(1, map.get(20));
        fails("INSERT INTO {map} VALUES (20, 5)");
        update("SINK INTO {map} VALUES (20, 5)");
        assertEquals(5, map.get(20));
        update("UPDATE {map} SET this = this + 100 WHERE __key = 20");
        assertEquals(105, map.get(20));
        update("UPDATE {map} SET this = -1 WHERE this > ?", 100);
        assertEquals(-1, map.get(20));
        update("DELETE FROM {map} WHERE this < 0 OR __key = 21");
        assertEquals(10, map.size());
        update("DELETE FROM {map}");
        assertTrue(map.isEmpty());
    }

    @Test
    @DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast", disabledReason = "Hazelcast has no subqueries there")
    void subqueriesAndWindows() {
        update("DELETE FROM {map} WHERE this IN (SELECT __key + 5 FROM {map})");
        assertEquals(Set.of(0, 1, 2, 3, 4), map.keySet());
        assertEquals(
                List.of(List.of(4, 1L), List.of(3, 2L)),
                rows("SELECT this, ROW_NUMBER() OVER (ORDER BY this DESC) n FROM {map} ORDER BY n LIMIT 2")
                        .stream().map(row -> List.of(row.get(0), ((Number) row.get(1)).longValue())).toList());
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELEC 1", "SELECT missing FROM {map}", "SELECT * FROM {map} WHERE", "SELECT nothing(1)"})
    void whatIsNotUnderstoodIsAnError(String text) {
        HazelcastSqlException error = fails(text);
        assertNotNull(error.getOriginatingMemberId());
        assertEquals(10, rows("SELECT * FROM {map}").size());
    }

    @Test
    void errorsOfTheData() {
        fails("SELECT this / 0 FROM {map}");
        fails("SELECT CAST(this + 300 AS TINYINT) FROM {map}");
        fails("SELECT * FROM {map} WHERE this = ?");
        fails("SELECT * FROM {map} WHERE this = ?", 1, 2);
        fails("SELECT * FROM {map} WHERE this = ?", "text");
        fails("SELECT * FROM {map} WHERE this = ?", new HazelcastJsonValue("{}"));
    }

    @Test
    void aMapThatIsNotThereIsNotFound() {
        HazelcastSqlException error = fails("SELECT * FROM {map}nothing");
        assertTrue(error.getMessage().contains(numbers + "nothing"), error.getMessage());
    }

    @Test
    void indexesAndStatements() {
        map.addIndex(IndexType.SORTED, "this");
        update("CREATE INDEX IF NOT EXISTS {map}_hash ON {map} (this) TYPE HASH");
        assertEquals(Set.of(4), firstColumn("SELECT __key FROM {map} WHERE this = ?", 4));
        assertEquals(Set.of(8, 9), firstColumn("SELECT __key FROM {map} WHERE this > ?", 7));
        map.put(4, 44);
        assertEquals(Set.of(4), firstColumn("SELECT __key FROM {map} WHERE this = ?", 44));
        assertEquals(Set.of(), firstColumn("SELECT __key FROM {map} WHERE this = ?", 4));
    }

    @Test
    void viewsAndShow() {
        update("CREATE OR REPLACE VIEW {map}_view AS SELECT this AS v FROM {map} WHERE this > 7");
        assertEquals(Set.of(8, 9), firstColumn("SELECT v FROM {map}_view"));
        assertTrue(firstColumn("SHOW VIEWS").contains(numbers + "_view"));
        assertTrue(firstColumn("SHOW MAPPINGS").contains(numbers));
        assertEquals(
                Set.of("__key", "this"),
                firstColumn("SELECT column_name FROM information_schema.columns WHERE table_name = ?", numbers));
        update("DROP VIEW {map}_view");
        update("DROP MAPPING {map}");
        assertFalse(firstColumn("SHOW MAPPINGS").contains(numbers));
    }

    @Test
    void iteratorsEndAndAreGivenOnce() {
        try (SqlResult result = run("SELECT * FROM {map} WHERE 1 = 0")) {
            Iterator<SqlRow> rows = result.iterator();
            assertFalse(rows.hasNext());
            assertThrows(NoSuchElementException.class, rows::next);
            assertThrows(IllegalStateException.class, result::iterator);
        }
    }

    @Test
    void manyCursorsAtOnce() {
        List<SqlResult> results = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            results.add(client.getSql().execute(new SqlStatement("SELECT this FROM " + numbers).setCursorBufferSize(1)));
        }
        for (SqlResult result : results) {
            int count = 0;
            for (SqlRow row : result) {
                assertInstanceOf(Integer.class, row.getObject(0));
                count++;
            }
            assertEquals(10, count);
        }
    }
}
