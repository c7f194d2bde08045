package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.internal.json.Json;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.ObjectDataInput;
import com.hazelcast.nio.ObjectDataOutput;
import com.hazelcast.nio.serialization.IdentifiedDataSerializable;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.sql.SqlColumnType;
import com.hazelcast.sql.SqlResult;
import com.hazelcast.sql.SqlRow;
import java.io.IOException;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** SQL types as the Java client has them, in every format of values, written by either side and read by the other. */
class SqlTypesTest extends Suite {
    private static int made;

    private String table;

    @BeforeEach
    void nameTheTable() {
        table = "SqlTypesTest" + made++;
        map = client.getMap(table);
    }

    private void mapping(String columns, String options) {
        client.getSql().executeUpdate("CREATE OR REPLACE MAPPING " + table + columns
                + " TYPE IMap OPTIONS ('keyFormat'='int', " + options + ")");
    }

    private static List<List<Object>> rows(HazelcastInstance client, String text, Object... parameters) {
        List<List<Object>> rows = new ArrayList<>();
        try (SqlResult result = client.getSql().execute(text, parameters)) {
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

    private List<List<Object>> rows(String text, Object... parameters) {
        return rows(client, text.replace("{map}", table), parameters);
    }

    private void update(String text, Object... parameters) {
        client.getSql().executeUpdate(text.replace("{map}", table), parameters);
    }

    static final OffsetDateTime INSTANT = OffsetDateTime.of(2024, 2, 29, 12, 34, 56, 123456000, ZoneOffset.ofHours(2));

    static Stream<Arguments> types() {
        return Stream.of(
                Arguments.of("VARCHAR", "täxt 😀"),
                Arguments.of("BOOLEAN", true),
                Arguments.of("TINYINT", (byte) -8),
                Arguments.of("SMALLINT", (short) -300),
                Arguments.of("INTEGER", -70_000),
                Arguments.of("BIGINT", -(1L << 40)),
                Arguments.of("DECIMAL", new BigDecimal("12345678901234567890.125")),
                Arguments.of("REAL", 1.5f),
                Arguments.of("DOUBLE", 0.1),
                Arguments.of("DATE", LocalDate.of(2024, 2, 29)),
                Arguments.of("TIME", LocalTime.of(12, 34, 56)),
                Arguments.of("TIMESTAMP", LocalDateTime.of(2024, 2, 29, 12, 34, 56, 123456000)),
                Arguments.of("TIMESTAMP WITH TIME ZONE", INSTANT));
    }

    private static Object comparable(Object value) {
        if (value instanceof OffsetDateTime time) {
            return time.toInstant();
        }
        return value instanceof BigDecimal number ? number.stripTrailingZeros() : value;
    }

    private static final Map<String, String> FORMATS = Map.of(
            "json-flat", "'valueFormat'='json-flat'",
            "portable", "'valueFormat'='portable', 'valuePortableFactoryId'='41', 'valuePortableClassId'='%d'",
            "compact", "'valueFormat'='compact', 'valueCompactTypeName'='java-types-%d'");

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void aValueOfEachTypeInEachFormat(String type, Object value) {
        for (String format : FORMATS.keySet()) {
            mapping("(__key INT, v " + type + ", w VARCHAR)", FORMATS.get(format).formatted(1000 + made));
            update("DELETE FROM {map}");
            update("INSERT INTO {map} VALUES (1, ?, 'w')", value);
            Object read = rows("SELECT v FROM {map}").get(0).get(0);
            assertEquals(comparable(value), comparable(read), format);
            assertEquals(value.getClass(), read.getClass(), format);
            assertEquals(List.of(List.of(1)), rows("SELECT __key FROM {map} WHERE v = ?", value), format);
            made++;
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void aParameterOfEachType(String type, Object value) {
        try (SqlResult result = client.getSql().execute("SELECT CAST(? AS " + type + ")", value)) {
            assertEquals(
                    type.replace(' ', '_'), result.getRowMetadata().getColumn(0).getType().name());
            Object read = result.iterator().next().getObject(0);
            assertEquals(comparable(value), comparable(read));
            assertEquals(value.getClass(), read.getClass());
        }
        assertNull(rows("SELECT CAST(? AS " + type + ")", new Object[] {null}).get(0).get(0));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("types")
    void aPlainValueOfEachType(String type, Object value) {
        mapping("", "'valueFormat'='java', 'valueJavaClass'='" + value.getClass().getName() + "'");
        map.put(1, value);
        List<Object> row = rows("SELECT __key, this FROM {map}").get(0);
        assertEquals(comparable(value), comparable(row.get(1)));
        update("INSERT INTO {map} VALUES (2, ?)", value);
        assertEquals(comparable(value), comparable(map.get(2)));
    }

    @Test
    void objectsComeBackAsGenericRecords() {
        mapping("(__key INT, name VARCHAR, age INT)", "'valueFormat'='compact', 'valueCompactTypeName'='java-person'");
        map.put(1, People.compact(People.ALL.get(1)));
        GenericRecord read = (GenericRecord) rows("SELECT this FROM {map}").get(0).get(0);
        assertEquals("Ada", read.getString("name"));
        assertEquals("London", read.getGenericRecord("address").getString("city"));
        assertArrayEquals(new int[] {1, 2, 3}, read.getArrayOfInt32("scores"));
    }

    @Test
    void whatSqlWroteAsCompactIsAGenericRecord() {
        mapping("(__key INT, name VARCHAR, age INT, moment TIMESTAMP)",
                "'valueFormat'='compact', 'valueCompactTypeName'='java-written'");
        update("INSERT INTO {map} VALUES (1, 'Ada', 36, ?)", LocalDateTime.of(2024, 2, 29, 1, 2));
        GenericRecord read = (GenericRecord) map.get(1);
        assertEquals("Ada", read.getString("name"));
        assertEquals(36, read.getNullableInt32("age"));
        assertEquals(LocalDateTime.of(2024, 2, 29, 1, 2), read.getTimestamp("moment"));
        update("INSERT INTO {map} (__key, name) VALUES (2, NULL)");
        assertNull(((GenericRecord) map.get(2)).getString("name"));
        assertNull(((GenericRecord) map.get(2)).getNullableInt32("age"));
    }

    @Test
    void whatSqlWroteAsPortableIsAGenericRecord() {
        mapping("(__key INT, name VARCHAR, age INT)",
                "'valueFormat'='portable', 'valuePortableFactoryId'='42', 'valuePortableClassId'='7'");
        update("INSERT INTO {map} VALUES (1, 'Ada', 36)");
        GenericRecord read = (GenericRecord) map.get(1);
        assertEquals("Ada", read.getString("name"));
        assertEquals(36, read.getInt32("age"));
    }

    @Test
    void whatSqlWroteAsJsonIsJson() {
        mapping("(__key INT, name VARCHAR, age INT)", "'valueFormat'='json-flat'");
        update("INSERT INTO {map} VALUES (1, 'Ada \"x\"', NULL)");
        assertEquals(
                Json.parse("{\"name\":\"Ada \\\"x\\\"\",\"age\":null}"),
                Json.parse(((HazelcastJsonValue) map.get(1)).getValue()));
        mapping("(__key INT, this JSON)", "'valueFormat'='json'");
        assertEquals(List.of(Arrays.asList("Ada \"x\"")), rows("SELECT JSON_VALUE(this, '$.name') FROM {map}"));
        assertEquals(
                SqlColumnType.JSON,
                client.getSql().execute("SELECT this FROM " + table).getRowMetadata().getColumn(0).getType());
    }

    @ParameterizedTest
    @ValueSource(strings = {"json", "portable", "compact", "record"})
    void peopleOfEveryFormat(String format) {
        String options = switch (format) {
            case "json" -> "'valueFormat'='json-flat'";
            case "portable" -> "'valueFormat'='portable', 'valuePortableFactoryId'='40', 'valuePortableClassId'='1'";
            case "compact" -> "'valueFormat'='compact', 'valueCompactTypeName'='java-person'";
            default -> "'valueFormat'='compact', 'valueCompactTypeName'='" + People.Person.class.getName() + "'";
        };
        mapping("(__key INT, name VARCHAR, nickname VARCHAR, age INT, balance BIGINT, height DOUBLE, active BOOLEAN)", options);
        People.fill(client, table, format);
        assertEquals(
                List.of(Arrays.asList(1, "Ada", null, 36, 1L << 40, 1.65, true)),
                rows("SELECT * FROM {map} WHERE name = 'Ada'"));
        assertEquals(
                List.of(List.of("Alan"), List.of("Édith"), List.of("Grace")),
                rows("SELECT name FROM {map} WHERE age > 40 ORDER BY age"));
        assertEquals(
                List.of(Arrays.asList(false, 2L, 88L), Arrays.asList(true, 3L, 141L)),
                rows("SELECT active, COUNT(*), SUM(age) FROM {map} GROUP BY active ORDER BY active"));
    }

    /** A value whose layout a mapping declares. */
    public static final class Trade implements IdentifiedDataSerializable {
        String symbol;
        double price;
        int amount;
        long at;

        static Trade of(String symbol, double price, int amount, long at) {
            Trade trade = new Trade();
            trade.symbol = symbol;
            trade.price = price;
            trade.amount = amount;
            trade.at = at;
            return trade;
        }

        @Override
        public int getFactoryId() {
            return 50;
        }

        @Override
        public int getClassId() {
            return 1;
        }

        @Override
        public void writeData(ObjectDataOutput out) throws IOException {
            out.writeString(symbol);
            out.writeDouble(price);
            out.writeInt(amount);
            out.writeLong(at);
        }

        @Override
        public void readData(ObjectDataInput in) throws IOException {
            symbol = in.readString();
            price = in.readDouble();
            amount = in.readInt();
            at = in.readLong();
        }
    }

    @Test
    @DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast", disabledReason = "Hazelcast needs the class")
    void aClassIsReadAndWrittenByItsDeclaredLayout() throws Exception {
        HazelcastInstance trader = connect(config ->
                config.getSerializationConfig().addDataSerializableFactory(50, id -> new Trade()));
        IMap<Integer, Trade> trades = trader.getMap(table);
        trades.put(1, Trade.of("ABC", 1.5, 10, 1L << 40));
        trades.put(2, Trade.of(null, -2.25, -3, 0));
        mapping("(__key INT, symbol VARCHAR, price DOUBLE, amount INT, moment BIGINT)",
                "'valueFormat'='ids', 'valueFactoryId'='50', 'valueClassId'='1'");
        assertEquals(
                List.of(Arrays.asList(1, "ABC", 1.5, 10, 1L << 40), Arrays.asList(2, null, -2.25, -3, 0L)),
                rows("SELECT * FROM {map} ORDER BY __key"));
        update("INSERT INTO {map} VALUES (3, 'NEW', 3.5, 3, 33)");
        assertEquals("NEW", trades.get(3).symbol);
        assertEquals(33, trades.get(3).at);
        assertEquals(List.of(List.of(2.75)), rows("SELECT SUM(price) FROM {map}"));
    }
}
