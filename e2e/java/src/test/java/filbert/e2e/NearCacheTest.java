package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.hazelcast.config.InMemoryFormat;
import com.hazelcast.config.NearCacheConfig;
import com.hazelcast.map.IMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The client's near cache: filled by reads, and right again after another client's changes. */
class NearCacheTest extends Suite {
    private IMap<Object, Object> near;

    @BeforeEach
    void connectWithNearCache() throws Exception {
        near = connect(config -> config.addNearCacheConfig(new NearCacheConfig(name)
                .setInMemoryFormat(InMemoryFormat.OBJECT).setInvalidateOnChange(true))).getMap(name);
    }

    private long hits() {
        return near.getLocalMapStats().getNearCacheStats().getHits();
    }

    private void warm(Object key, Object value) throws Exception {
        eventually(() -> {
            assertEquals(value, near.get(key));
            long before = hits();
            return value.equals(near.get(key)) && hits() > before;
        });
    }

    @Test
    void aSecondReadDoesNotLeaveTheClient() throws Exception {
        map.set("a", 1);
        // The change itself is told behind its answer, and may empty the near cache once after the first reads.
        eventually(() -> {
            warm("a", 1);
            return near.getLocalMapStats().getNearCacheStats().getOwnedEntryCount() > 0;
        });
    }

    static Stream<Arguments> changes() {
        return Stream.of(
                change("put", 2, map -> map.put("a", 2)),
                change("set", 2, map -> map.set("a", 2)),
                change("set with time to live", 2, map -> map.set("a", 2, 1, TimeUnit.HOURS)),
                change("replace", 2, map -> map.replace("a", 2)),
                change("replace if same", 2, map -> map.replace("a", 1, 2)),
                change("put all", 2, map -> map.putAll(Map.of("a", 2, "b", 3))),
                change("try put", 2, map -> map.tryPut("a", 2, 1, TimeUnit.SECONDS)),
                change("put transient", 2, map -> map.putTransient("a", 2, 0, TimeUnit.SECONDS)),
                change("remove", null, map -> map.remove("a")),
                change("try remove", null, map -> map.tryRemove("a", 1, TimeUnit.SECONDS)),
                change("delete", null, map -> map.delete("a")),
                change("evict", null, map -> map.evict("a")),
                change("clear", null, IMap::clear),
                change("evict all", null, IMap::evictAll),
                change("expiry", null, map -> map.setTtl("a", 1, TimeUnit.SECONDS)));
    }

    private static Arguments change(String what, Object after, Consumer<IMap<Object, Object>> change) {
        return Arguments.of(what, after, change);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("changes")
    void anotherClientsChangeEmptiesTheNearCache(String what, Object after, Consumer<IMap<Object, Object>> change)
            throws Exception {
        map.set("a", 1);
        warm("a", 1);
        change.accept(map);
        eventually(() -> java.util.Objects.equals(near.get("a"), after));
    }

    @Test
    void ownChangesAreSeenAtOnce() throws Exception {
        map.set("a", 1);
        warm("a", 1);
        near.set("a", 2);
        assertEquals(2, near.get("a"));
        near.delete("a");
        assertEquals(null, near.get("a"));
    }

    @Test
    void getAllAndManyChangesStayRight() throws Exception {
        fill(500);
        assertEquals(500, near.getAll(map.keySet()).size());
        for (int round = 0; round < 5; round++) {
            String value = "round " + round;
            for (int i = 0; i < 500; i++) {
                map.set(i, value);
            }
            eventually(() -> near.getAll(map.keySet()).values().stream().allMatch(value::equals));
        }
        map.destroy();
        eventually(() -> near.getAll(Set.of(1, 2, 3)).isEmpty());
    }
}
