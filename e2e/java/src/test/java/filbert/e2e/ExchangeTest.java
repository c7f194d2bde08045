package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.internal.json.Json;
import com.hazelcast.internal.json.JsonObject;
import com.hazelcast.internal.json.JsonValue;
import com.hazelcast.map.IMap;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Files;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Values of every type, written by one language's client and read by another's: as values, and as keys, whose bytes must
 * be equal for the entry to be found.
 */
class ExchangeTest {
    private static final String PHASE = System.getenv().getOrDefault("FILBERT_E2E_PHASE", "");
    private static final Map<String, Function<String, Object>> SCALARS = Map.ofEntries(
            Map.entry("boolean", Boolean::valueOf),
            Map.entry("byte", Byte::valueOf),
            Map.entry("char", text -> text.charAt(0)),
            Map.entry("short", Short::valueOf),
            Map.entry("int", Integer::valueOf),
            Map.entry("long", Long::valueOf),
            Map.entry("float", Float::valueOf),
            Map.entry("double", Double::valueOf),
            Map.entry("string", text -> text),
            Map.entry("uuid", UUID::fromString),
            Map.entry("json", HazelcastJsonValue::new),
            Map.entry("big_integer", BigInteger::new),
            Map.entry("decimal", BigDecimal::new),
            Map.entry("date", LocalDate::parse),
            Map.entry("time", LocalTime::parse),
            Map.entry("date_time", LocalDateTime::parse),
            Map.entry("offset_date_time", OffsetDateTime::parse));
    private static final Map<String, Class<?>> COMPONENTS = Map.of("byte", byte.class, "boolean", boolean.class,
            "short", short.class, "int", int.class, "long", long.class, "float", float.class, "double", double.class,
            "string", String.class);

    private HazelcastInstance client;
    private List<JsonObject> rows;

    @BeforeEach
    void connect() throws Exception {
        String shared = System.getenv("FILBERT_E2E_EXCHANGE");
        client = HazelcastClient.newHazelcastClient(Suite.config(shared == null ? Member.shared().address() : shared));
        rows = Json.parse(Files.readString(Member.SHARED_FILES.resolve("types.json"))).asObject().get("values").asArray()
                .values().stream().map(JsonValue::asObject).toList();
        if (!PHASE.equals("read")) {
            write();
        }
    }

    @AfterEach
    void disconnect() {
        client.shutdown();
    }

    private void write() {
        for (JsonObject row : rows) {
            if (writes(row, "java")) {
                client.getMap("exchange-values-java").put(row.getString("name", ""), value(row));
                client.getMap("exchange-keys-java").put(value(row), row.getString("name", ""));
            }
        }
    }

    @Test
    void whatWasWrittenIsRead() {
        List<String> wrong = new ArrayList<>();
        if (PHASE.equals("write")) {
            return;
        }
        for (String writer : System.getenv().getOrDefault("FILBERT_E2E_WRITERS", "java").split(",")) {
            IMap<Object, Object> values = client.getMap("exchange-values-" + writer);
            IMap<Object, Object> keys = client.getMap("exchange-keys-" + writer);
            for (JsonObject row : rows) {
                String what = row.getString("name", "");
                if (!writes(row, writer)) {
                    continue;
                }
                Object found = values.get(what);
                if (!Objects.deepEquals(value(row), found)) {
                    wrong.add(writer + ", " + what + ": " + found);
                }
                if (!what.equals(keys.get(value(row)))) {
                    wrong.add(writer + ", " + what + ": not found by key");
                }
            }
        }
        assertEquals(List.of(), wrong);
    }

    private static boolean writes(JsonObject row, String language) {
        return row.get("writers").asArray().values().stream().anyMatch(writer -> writer.asString().equals(language));
    }

    private static Object value(JsonObject row) {
        String type = row.getString("type", "");
        if (!row.get("value").isArray()) {
            return scalar(type, row.get("value"));
        }
        List<JsonValue> items = StreamSupport.stream(row.get("value").asArray().spliterator(), false).toList();
        if (type.equals("list")) {
            return new ArrayList<>(items.stream().map(JsonValue::asString).toList());
        }
        String component = type.substring(0, type.length() - 2);
        Object array = Array.newInstance(COMPONENTS.get(component), items.size());
        for (int i = 0; i < items.size(); i++) {
            Array.set(array, i, scalar(component, items.get(i)));
        }
        return array;
    }

    private static Object scalar(String type, JsonValue value) {
        return SCALARS.get(type).apply(value.isString() ? value.asString() : value.toString());
    }
}
