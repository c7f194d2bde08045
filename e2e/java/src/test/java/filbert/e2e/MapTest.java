package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.hazelcast.core.EntryView;
import com.hazelcast.core.Pipelining;
import com.hazelcast.map.IMap;
import com.hazelcast.query.Predicates;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every map operation of the client that needs neither locks, nor listeners, nor the clock. */
class MapTest extends Suite {
    @Test
    void putReturnsTheOldValueAndGetTheNewest() {
        assertNull(map.put("a", 1));
        assertEquals(1, map.put("a", 2));
        assertEquals(2, map.get("a"));
        assertNull(map.get("b"));
    }

    @Test
    void setReplacesWithoutReturning() {
        map.set("a", 1);
        map.set("a", 2);
        assertEquals(2, map.get("a"));
    }

    @Test
    void putIfAbsentKeepsTheFirstValue() {
        assertNull(map.putIfAbsent("a", 1));
        assertEquals(1, map.putIfAbsent("a", 2));
        assertEquals(1, map.get("a"));
    }

    @Test
    void replaceNeedsAnEntry() {
        assertNull(map.replace("a", 1));
        assertFalse(map.containsKey("a"));
        map.set("a", 1);
        assertEquals(1, map.replace("a", 2));
        assertFalse(map.replace("a", 7, 3));
        assertTrue(map.replace("a", 2, 3));
        assertEquals(3, map.get("a"));
    }

    @Test
    void removeDeleteAndRemoveIfSame() {
        map.set("a", 1);
        assertFalse(map.remove("a", 2));
        assertTrue(map.remove("a", 1));
        map.set("a", 1);
        assertEquals(1, map.remove("a"));
        assertNull(map.remove("a"));
        map.set("a", 1);
        map.delete("a");
        map.delete("a");
        assertTrue(map.isEmpty());
    }

    @Test
    void tryPutAndTryRemoveWorkOnAFreeKey() {
        assertTrue(map.tryPut("a", 1, 1, TimeUnit.SECONDS));
        assertTrue(map.tryPut("a", 2, 0, TimeUnit.SECONDS));
        assertEquals(2, map.get("a"));
        assertTrue(map.tryRemove("a", 1, TimeUnit.SECONDS));
        assertFalse(map.tryRemove("a", 0, TimeUnit.SECONDS));
    }

    @Test
    void putTransientStores() {
        map.putTransient("a", 1, 0, TimeUnit.SECONDS);
        assertEquals(1, map.get("a"));
    }

    @Test
    void containsKeyAndContainsValueTellWhatIsThere() {
        map.set("a", 1);
        assertTrue(map.containsKey("a"));
        assertFalse(map.containsKey("b"));
        assertTrue(map.containsValue(1));
        assertFalse(map.containsValue(2));
    }

    @Test
    void putAllSetAllAndGetAllMoveManyEntries() {
        Map<Object, Object> entries = new HashMap<>();
        IntStream.range(0, 3_000).forEach(i -> entries.put(i, i * 2));
        map.putAll(entries);
        assertEquals(entries, map.getAll(entries.keySet()));
        entries.replaceAll((key, value) -> (Integer) value + 1);
        map.setAll(entries);
        assertEquals(entries, map.getAll(entries.keySet()));
        assertEquals(Map.of(1, 3), map.getAll(Set.of(1, -1)));
        assertEquals(Map.of(), map.getAll(Set.of()));
    }

    @Test
    void putAllWithMetadataKeepsTheMetadata() throws Exception {
        map.put("a", 1, 1, TimeUnit.HOURS);
        IMap<Object, Object> copy = client.getMap(name + "-copy");
        copy.set("a", 0);
        List<EntryView<Object, Object>> views = List.of(map.getEntryView("a"));
        ((com.hazelcast.client.impl.proxy.ClientMapProxy<Object, Object>) copy)
                .putAllWithMetadataAsync(views).get();
        assertEquals(1, copy.get("a"));
        assertEquals(3_600_000, copy.getEntryView("a").getTtl());
        assertEquals(views.get(0).getCreationTime(), copy.getEntryView("a").getCreationTime());
    }

    @Test
    void keySetValuesAndEntrySetReturnEverything() {
        fill(500);
        assertEquals(IntStream.range(0, 500).boxed().collect(Collectors.toSet()), map.keySet());
        assertEquals(500, Set.copyOf(map.values()).size());
        assertEquals(500, map.entrySet().size());
        map.entrySet().forEach(entry -> assertEquals("value " + entry.getKey(), entry.getValue()));
        assertEquals(Map.copyOf(map), Map.copyOf(map.getAll(map.keySet())));
    }

    @Test
    void sizeIsEmptyClearEvictAndEvictAllAgree() {
        assertTrue(map.isEmpty());
        fill(100);
        assertEquals(100, map.size());
        assertTrue(map.evict(5));
        assertFalse(map.evict(5));
        assertEquals(99, map.size());
        map.evictAll();
        assertTrue(map.isEmpty());
        fill(100);
        map.clear();
        assertEquals(0, map.size());
    }

    @Test
    void removeAllWithTheAlwaysTruePredicateClears() {
        fill(100);
        map.removeAll(Predicates.alwaysTrue());
        assertTrue(map.isEmpty());
    }

    @Test
    void flushDoesNothingWithoutAMapStore() {
        map.set("a", 1);
        map.flush();
        assertEquals(1, map.get("a"));
    }

    @Test
    @DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast",
            disabledReason = "Hazelcast refuses it where no map store is configured")
    void loadAllDoesNothingWithoutAMapStore() {
        map.set("a", 1);
        map.loadAll(true);
        map.loadAll(Set.of("a", "b"), true);
        assertEquals(1, map.get("a"));
    }

    @Test
    void entryViewTellsTheTruth() {
        assertNull(map.getEntryView("a"));
        map.put("a", "first", 1, TimeUnit.HOURS, 30, TimeUnit.MINUTES);
        map.get("a");
        map.put("a", "second", 1, TimeUnit.HOURS, 30, TimeUnit.MINUTES);
        map.get("a");
        EntryView<Object, Object> view = map.getEntryView("a");
        assertEquals("a", view.getKey());
        assertEquals("second", view.getValue());
        assertTrue(view.getHits() >= 2);
        assertEquals(1, view.getVersion());
        assertTrue(view.getCost() > 0);
        assertEquals(3_600_000, view.getTtl());
        assertEquals(1_800_000, view.getMaxIdle());
        assertTrue(view.getCreationTime() <= view.getLastUpdateTime());
        assertTrue(view.getExpirationTime() > view.getCreationTime());
    }

    @Test
    void functionsOfTheCallerRunInTheClient() {
        int[] nobodyCanShipThis = {10};
        map.set("a", 1);
        assertEquals(11, map.compute("a", (key, value) -> (Integer) value + nobodyCanShipThis[0]));
        assertEquals(10, map.computeIfAbsent("b", key -> nobodyCanShipThis[0]));
        assertEquals(20, map.computeIfPresent("b", (key, value) -> (Integer) value + nobodyCanShipThis[0]));
        assertEquals(30, map.merge("b", 10, (old, value) -> (Integer) old + (Integer) value + nobodyCanShipThis[0] - 10));
        map.replaceAll((key, value) -> (Integer) value + nobodyCanShipThis[0]);
        assertEquals(Map.of("a", 21, "b", 40), map.getAll(Set.of("a", "b")));
        List<Object> seen = new ArrayList<>();
        map.forEach((key, value) -> seen.add(key));
        assertEquals(2, seen.size());
        assertEquals(99, map.getOrDefault("c", 99));
    }

    @Test
    void asynchronousCallsComplete() throws Exception {
        assertNull(map.putAsync("a", 1).toCompletableFuture().get());
        map.setAsync("a", 2).toCompletableFuture().get();
        assertEquals(2, map.getAsync("a").toCompletableFuture().get());
        map.putAllAsync(Map.of("b", 1, "c", 2)).toCompletableFuture().get();
        assertEquals(2, map.removeAsync("a").toCompletableFuture().get());
        assertTrue(map.deleteAsync("b").toCompletableFuture().get());
        assertEquals(1, map.size());
    }

    @Test
    void aPipelineReturnsItsResultsInOrder() throws Exception {
        Map<Object, Object> entries = new TreeMap<>();
        IntStream.range(0, 10_000).forEach(i -> entries.put(i, Integer.toString(i)));
        map.putAll(entries);
        Random random = new Random(42);
        for (int depth : new int[] {5, 10, 100}) {
            Pipelining<Object> pipeline = new Pipelining<>(depth);
            List<Object> expected = new ArrayList<>();
            for (int i = 0; i < 1_000; i++) {
                int key = random.nextInt(10_000);
                expected.add(Integer.toString(key));
                CompletionStage<Object> answer = map.getAsync(key);
                pipeline.add(answer);
            }
            assertEquals(expected, pipeline.results());
        }
    }

    @Test
    void iterationMissesNothingThatWasThereThroughout() throws Exception {
        fill(5_000);
        Map<Object, Integer> seen = new HashMap<>();
        int added = 5_000;
        for (Map.Entry<Object, Object> entry : map) {
            seen.merge(entry.getKey(), 1, Integer::sum);
            // Every second entry is a change: new keys, and removal of those that were new before.
            if (added < 15_000) {
                map.set(added++, "new");
                map.set(added++, "new");
                if (added % 3 == 0) {
                    map.delete(added - 1);
                }
            }
        }
        for (int key = 0; key < 5_000; key++) {
            assertEquals(1, seen.get(key), "key " + key);
        }
        seen.forEach((key, count) -> assertEquals(1, count, "key " + key));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 10, 1_000})
    void iterationWorksWithAnyPageSize(int pageSize) {
        fill(1_000);
        int count = 0;
        for (var entries = map.iterator(pageSize); entries.hasNext(); count++) {
            Map.Entry<Object, Object> entry = entries.next();
            assertEquals("value " + entry.getKey(), entry.getValue());
        }
        assertEquals(1_000, count);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 100_000, 50_000_000})
    void valuesOfAnySizeComeBackUnchanged(int size) {
        assumeTrue(Member.MEMBERS == 1 || size < 8 << 20, "in a cluster, a change has at most 8 MiB");
        byte[] value = new byte[size];
        new Random(size).nextBytes(value);
        map.set("k", value);
        assertArrayEquals(value, (byte[]) map.get("k"));
        map.delete("k");
    }

    @Test
    void nullIsRefused() {
        assertThrows(NullPointerException.class, () -> map.put(null, 1));
        assertThrows(NullPointerException.class, () -> map.put("a", null));
    }

    @Test
    void aBoundedMapStaysWithinItsSize() throws Exception {
        IMap<Object, Object> bounded = client.getMap("bounded-java");
        Map<Object, Object> entries = new HashMap<>();
        IntStream.range(0, 20_000).forEach(i -> entries.put(i, i));
        bounded.putAll(entries);
        eventually(() -> bounded.size() <= 1_500);
        assertTrue(bounded.size() > 500);
    }

    @Test
    void localStatisticsCountTheClientsCalls() {
        fill(10);
        map.get(1);
        assertTrue(map.getLocalMapStats().getOwnedEntryCount() >= 0);
        assertEquals(name, map.getName());
        assertEquals("hz:impl:mapService", map.getServiceName());
    }
}
