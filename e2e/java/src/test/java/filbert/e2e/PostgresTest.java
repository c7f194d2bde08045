package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** PostgreSQL's JDBC driver: statements, parameters as text and as binary, fetch sizes, batches, metadata, COPY, cancelling. */
class PostgresTest {
    private Connection connection;

    @BeforeEach
    void connect() throws Exception {
        connection = open("");
    }

    @AfterEach
    void close() throws Exception {
        connection.close();
    }

    private static Connection open(String options) throws Exception {
        String address = "127.0.0.1:" + Member.shared().postgresPort;
        return DriverManager.getConnection("jdbc:postgresql://" + address + "/filbert?user=ann" + options);
    }

    private void execute(String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    private void makeTable(String name, String columns) throws SQLException {
        execute("DROP TABLE IF EXISTS " + name);
        execute("CREATE TABLE " + name + " (" + columns + ")");
    }

    @Test
    void theServerIsKnown() throws Exception {
        assertEquals(14, connection.getMetaData().getDatabaseMajorVersion());
        assertEquals("PostgreSQL", connection.getMetaData().getDatabaseProductName());
        assertTrue(connection.isValid(10));
    }

    @Test
    void parametersComeInTheirTypes() throws Exception {
        // The driver goes over to named statements and binary values with the fifth use.
        String text = "SELECT CAST(? AS int) + 1, CAST(? AS varchar), CAST(? AS double precision), CAST(? AS boolean)";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int use = 0; use < 10; use++) {
                statement.setInt(1, use);
                statement.setString(2, "ü " + use);
                statement.setDouble(3, use / 10.0);
                statement.setNull(4, Types.BOOLEAN);
                try (ResultSet rows = statement.executeQuery()) {
                    assertTrue(rows.next());
                    assertEquals(use + 1, rows.getInt(1));
                    assertEquals("ü " + use, rows.getString(2));
                    assertEquals(use / 10.0, rows.getDouble(3));
                    assertFalse(rows.getBoolean(4));
                    assertTrue(rows.wasNull());
                }
            }
        }
    }

    @Test
    void valuesComeBackAsTheyWent() throws Exception {
        makeTable("java_values", "id int PRIMARY KEY, big bigint, amount numeric(20, 4), born date, seen timestamp, at timestamptz,"
                + " key uuid, bytes bytea, tags text[]");
        UUID key = UUID.fromString("67e55044-10b1-426f-9247-bb680e5fe0c8");
        LocalDateTime seen = LocalDateTime.of(2024, 2, 29, 13, 14, 15, 678_901_000);
        for (int id = 0; id < 7; id++) {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO java_values VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                insert.setInt(1, id);
                insert.setLong(2, Long.MAX_VALUE);
                insert.setBigDecimal(3, new BigDecimal("12345.6789"));
                insert.setObject(4, LocalDate.of(2024, 2, 29));
                insert.setObject(5, seen);
                insert.setObject(6, seen.atOffset(ZoneOffset.ofHours(5)));
                insert.setObject(7, key);
                insert.setBytes(8, new byte[] {0, -1});
                insert.setArray(9, connection.createArrayOf("text", new String[] {"a", null, "b,c"}));
                assertEquals(1, insert.executeUpdate());
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT * FROM java_values WHERE id = ?")) {
                select.setInt(1, id);
                ResultSet row = select.executeQuery();
                assertTrue(row.next());
                assertEquals(Long.MAX_VALUE, row.getLong("big"));
                assertEquals(new BigDecimal("12345.6789"), row.getBigDecimal("amount"));
                assertEquals(LocalDate.of(2024, 2, 29), row.getObject("born", LocalDate.class));
                assertEquals(seen, row.getObject("seen", LocalDateTime.class));
                assertEquals(seen.atOffset(ZoneOffset.ofHours(5)).toInstant(), row.getObject("at", OffsetDateTime.class).toInstant());
                assertEquals(key, row.getObject("key", UUID.class));
                assertArrayEquals(new byte[] {0, -1}, row.getBytes("bytes"));
                assertArrayEquals(new String[] {"a", null, "b,c"}, (String[]) row.getArray("tags").getArray());
            }
        }
        execute("DROP TABLE java_values");
    }

    @Test
    void resultsAreFetchedInParts() throws Exception {
        makeTable("java_numbers", "id int PRIMARY KEY");
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO java_numbers VALUES (?)")) {
            for (int id = 0; id < 2000; id++) {
                insert.setInt(1, id);
                insert.addBatch();
            }
            assertEquals(2000, insert.executeBatch().length);
        }
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(77);
            ResultSet rows = statement.executeQuery("SELECT id FROM java_numbers ORDER BY id");
            for (int id = 0; id < 2000; id++) {
                assertTrue(rows.next());
                assertEquals(id, rows.getInt(1));
            }
            assertFalse(rows.next());
        }
        connection.commit();
        execute("DROP TABLE java_numbers");
        connection.commit();
    }

    @Test
    void metadataTellsOfTablesAndColumns() throws Exception {
        makeTable("java_people", "id int PRIMARY KEY, name varchar(50) NOT NULL");
        try (ResultSet tables = connection.getMetaData().getTables(null, null, "java_people", null)) {
            assertTrue(tables.next());
            assertEquals("TABLE", tables.getString("TABLE_TYPE"));
        }
        try (ResultSet columns = connection.getMetaData().getColumns(null, null, "java_people", null)) {
            assertTrue(columns.next());
            assertEquals("id", columns.getString("COLUMN_NAME"));
            assertEquals(Types.INTEGER, columns.getInt("DATA_TYPE"));
            assertTrue(columns.next());
            assertEquals("NO", columns.getString("IS_NULLABLE"));
        }
        execute("DROP TABLE java_people");
    }

    @Test
    void metadataTellsOfPrimaryKeys() throws Exception {
        makeTable("java_people", "id int PRIMARY KEY, name varchar(50) NOT NULL");
        try (ResultSet keys = connection.getMetaData().getPrimaryKeys(null, null, "java_people")) {
            assertTrue(keys.next());
            assertEquals("id", keys.getString("COLUMN_NAME"));
            assertEquals(1, keys.getInt("KEY_SEQ"));
            assertEquals("java_people_pkey", keys.getString("PK_NAME"));
            assertFalse(keys.next());
        }
        execute("DROP TABLE java_people");
    }

    @Test
    void metadataTellsOfKeysOfSeveralColumnsAndOfIndexes() throws Exception {
        makeTable("java_orders", "item text, day int, place int, PRIMARY KEY (day, item)");
        execute("CREATE INDEX java_orders_place ON java_orders (place)");
        DatabaseMetaData metadata = connection.getMetaData();
        try (ResultSet keys = metadata.getPrimaryKeys(null, null, "java_orders")) {
            assertTrue(keys.next());
            assertEquals("day", keys.getString("COLUMN_NAME"));
            assertTrue(keys.next());
            assertEquals("item", keys.getString("COLUMN_NAME"));
            assertEquals(2, keys.getInt("KEY_SEQ"));
        }
        try (ResultSet indexes = metadata.getIndexInfo(null, null, "java_orders", false, true)) {
            List<String> found = new ArrayList<>();
            while (indexes.next()) {
                found.add(indexes.getString("INDEX_NAME") + " " + indexes.getString("COLUMN_NAME") + " " + indexes.getBoolean("NON_UNIQUE")
                        + " " + indexes.getString("ASC_OR_DESC"));
            }
            assertEquals(List.of("java_orders_pkey day false A", "java_orders_pkey item false A", "java_orders_place place true A"), found);
        }
        execute("DROP TABLE java_orders");
    }

    /** What tools ask of a connection is answered, whatever there is. */
    @Test
    void metadataIsAnswered() throws Exception {
        makeTable("java_people", "id int PRIMARY KEY, name varchar(50) NOT NULL");
        DatabaseMetaData metadata = connection.getMetaData();
        assertFalse(metadata.getSQLKeywords().isEmpty());
        ResultSet[] all = {
            metadata.getSchemas(), metadata.getCatalogs(), metadata.getTableTypes(), metadata.getTypeInfo(), metadata.getFunctions(null, null, "upper"),
            metadata.getFunctionColumns(null, null, "upper", null), metadata.getProcedures(null, null, "x"),
            metadata.getImportedKeys(null, null, "java_people"), metadata.getExportedKeys(null, null, "java_people"),
            metadata.getColumnPrivileges(null, null, "java_people", "id"), metadata.getTablePrivileges(null, null, "java_people"),
            metadata.getBestRowIdentifier(null, null, "java_people", DatabaseMetaData.bestRowSession, false),
            metadata.getUDTs(null, null, "%", null), metadata.getClientInfoProperties(),
        };
        for (ResultSet rows : all) {
            while (rows.next()) {
                rows.getString(1);
            }
            rows.close();
        }
        try (ResultSet types = metadata.getTypeInfo()) {
            boolean known = false;
            while (types.next()) {
                known |= types.getString("TYPE_NAME").equals("int4") && types.getInt("DATA_TYPE") == Types.INTEGER;
            }
            assertTrue(known);
        }
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT oid, relname, relkind FROM pg_class WHERE relname = 'java_people'")) {
            assertEquals("oid", rows.getMetaData().getColumnTypeName(1));
            assertEquals("name", rows.getMetaData().getColumnTypeName(2));
            assertTrue(rows.next());
            assertTrue(rows.getLong(1) > 0);
            assertEquals("r", rows.getString(3));
        }
        execute("DROP TABLE java_people");
    }

    @Test
    void rowsAreCopied() throws Exception {
        makeTable("java_copied", "id int PRIMARY KEY, text text");
        CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
        assertEquals(2, copy.copyIn("COPY java_copied FROM STDIN (FORMAT csv)", new StringReader("1,\"a,b\"\n2,\n")));
        StringWriter out = new StringWriter();
        assertEquals(2, copy.copyOut("COPY (SELECT * FROM java_copied ORDER BY id) TO STDOUT", out));
        assertEquals("1\ta,b\n2\t\\N\n", out.toString());
        SQLException error = assertThrows(SQLException.class,
                () -> copy.copyIn("COPY java_copied FROM STDIN (FORMAT csv)", new StringReader("3,c\nx,d\n")));
        assertEquals("22P02", error.getSQLState());
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT count(*) FROM java_copied");
            assertTrue(rows.next());
            assertEquals(2, rows.getInt(1));
        }
        execute("DROP TABLE java_copied");
    }

    @Test
    void errorsAndTransactions() throws Exception {
        connection.setAutoCommit(false);
        assertEquals("42P01", assertThrows(SQLException.class, () -> execute("SELECT * FROM nothing_of_this_name")).getSQLState());
        assertEquals("25P02", assertThrows(SQLException.class, () -> execute("SELECT 1")).getSQLState());
        connection.rollback();
        execute("SELECT 1");
        connection.commit();
        assertNull(connection.getWarnings());
    }

    @Test
    void aStatementThatRunsIsCancelled() throws Exception {
        makeTable("java_many", "id int PRIMARY KEY");
        CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder rows = new StringBuilder();
        for (int id = 0; id < 3000; id++) {
            rows.append(id).append('\n');
        }
        copy.copyIn("COPY java_many FROM STDIN", new StringReader(rows.toString()));
        try (Statement statement = connection.createStatement()) {
            CompletableFuture<Void> cancelling = CompletableFuture.runAsync(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (InterruptedException | SQLException error) {
                    throw new IllegalStateException(error);
                }
            });
            SQLException error = assertThrows(SQLException.class, () -> statement.executeQuery(
                    "SELECT count(*) FROM java_many a, java_many b, java_many c WHERE a.id + b.id + c.id < 0"));
            assertEquals("57014", error.getSQLState());
            cancelling.join();
        }
        execute("DROP TABLE java_many");
    }
}
