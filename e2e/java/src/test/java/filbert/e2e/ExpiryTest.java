package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.map.IMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Time to live and max idle, by call and by configuration. */
class ExpiryTest extends Suite {
    private static final TimeUnit S = TimeUnit.SECONDS;

    @Test
    void entriesWithTimeToLiveOrMaxIdleGo() throws Exception {
        Map<String, Consumer<String>> writes = Map.ofEntries(
                Map.entry("put", key -> map.put(key, 1, 1, S)),
                Map.entry("put idle", key -> map.put(key, 1, 0, S, 1, S)),
                Map.entry("set", key -> map.set(key, 1, 1, S)),
                Map.entry("set idle", key -> map.set(key, 1, 0, S, 1, S)),
                Map.entry("put if absent", key -> map.putIfAbsent(key, 1, 1, S)),
                Map.entry("put if absent idle", key -> map.putIfAbsent(key, 1, 0, S, 1, S)),
                Map.entry("put transient", key -> map.putTransient(key, 1, 1, S)),
                Map.entry("put transient idle", key -> map.putTransient(key, 1, 0, S, 1, S)),
                Map.entry("put async", key -> map.putAsync(key, 1, 1, S).toCompletableFuture().join()),
                Map.entry("set async idle", key -> map.setAsync(key, 1, 0, S, 1, S).toCompletableFuture().join()));
        writes.forEach((key, write) -> {
            write.accept(key);
            assertEquals(key.endsWith("idle") ? 1_000 : Long.MAX_VALUE, map.getEntryView(key).getMaxIdle(), key);
        });
        map.set("stays", 1);
        eventually(() -> map.size() == 1);
        assertTrue(map.containsKey("stays"));
        writes.keySet().forEach(key -> assertFalse(map.containsKey(key), key));
    }

    @Test
    void setTtlGivesAnEntryANewEnd() throws Exception {
        map.set("a", 1);
        assertTrue(map.setTtl("a", 1, S));
        assertFalse(map.setTtl("nothing here", 1, S));
        eventually(() -> !map.containsKey("a"));
    }

    @Test
    void setTtlZeroLetsAnEntryLiveForEver() {
        map.set("a", 1, 1, TimeUnit.HOURS);
        assertTrue(map.setTtl("a", 0, S));
        assertEquals(Long.MAX_VALUE, map.getEntryView("a").getExpirationTime());
        assertEquals(Long.MAX_VALUE, map.getEntryView("a").getTtl());
    }

    @Test
    void theMapsOwnTimesAreTheDefault() throws Exception {
        IMap<Object, Object> timed = client.getMap("short-ttl-java");
        IMap<Object, Object> idle = client.getMap("short-idle-java");
        timed.set("a", 1);
        timed.set("stays", 1, 0, S);
        idle.set("a", 1);
        eventually(() -> timed.size() == 1 && idle.size() == 0);
        assertTrue(timed.containsKey("stays"));
    }
}
