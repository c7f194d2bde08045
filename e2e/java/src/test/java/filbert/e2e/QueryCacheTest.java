package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.config.QueryCacheConfig;
import com.hazelcast.map.IMap;
import com.hazelcast.map.QueryCache;
import com.hazelcast.map.listener.EntryAddedListener;
import com.hazelcast.map.listener.EntryRemovedListener;
import com.hazelcast.map.listener.EntryUpdatedListener;
import com.hazelcast.query.Predicates;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Query caches: a client's own copy of a predicate's result, kept up to date by the member. */
class QueryCacheTest extends Suite {
    private void fillNumbers(int count) {
        map.putAll(IntStream.range(0, count).boxed().collect(Collectors.toMap(i -> i, i -> i)));
    }

    @Test
    void itBeginsWithWhatIsThere() {
        fillNumbers(100);
        QueryCache<Object, Object> cache = map.getQueryCache(name, Predicates.greaterEqual("this", 90), true);
        assertEquals(10, cache.size());
        assertEquals(95, cache.get(95));
        assertNull(cache.get(5));
        assertEquals(Set.of(98, 99), cache.keySet(Predicates.greaterThan("this", 97)));
        cache.destroy();
    }

    @Test
    void itFollowsEveryChange() throws Exception {
        QueryCache<Object, Object> cache = map.getQueryCache(name, Predicates.greaterThan("this", 10), true);
        map.put("a", 1);
        map.put("b", 11);
        eventually(() -> cache.size() == 1 && Integer.valueOf(11).equals(cache.get("b")));
        map.put("b", 12);
        eventually(() -> Integer.valueOf(12).equals(cache.get("b")));
        map.put("a", 20);
        eventually(() -> cache.size() == 2);
        map.put("b", 3);
        eventually(() -> cache.size() == 1);
        map.remove("a");
        eventually(cache::isEmpty);
        fillNumbers(2000);
        eventually(() -> cache.size() == 1989);
        map.clear();
        eventually(cache::isEmpty);
        cache.destroy();
    }

    @Test
    void keysAloneCanBeCached() throws Exception {
        fillNumbers(10);
        QueryCache<Object, Object> cache = map.getQueryCache(name, Predicates.lessThan("this", 5), false);
        assertEquals(Set.of(0, 1, 2, 3, 4), cache.keySet());
        map.remove(0);
        eventually(() -> cache.keySet().equals(Set.of(1, 2, 3, 4)));
        cache.destroy();
    }

    @Test
    void itsListenersHear() throws Exception {
        QueryCache<Object, Object> cache = map.getQueryCache(name, Predicates.greaterThan("this", 10), true);
        List<String> events = new CopyOnWriteArrayList<>();
        cache.addEntryListener((EntryAddedListener<Object, Object>) event -> events.add("added " + event.getKey()), true);
        cache.addEntryListener((EntryRemovedListener<Object, Object>) event -> events.add("removed " + event.getKey()), true);
        map.put("a", 11);
        eventually(() -> events.equals(List.of("added a")));
        map.put("a", 1);
        eventually(() -> events.equals(List.of("added a", "removed a")));
        cache.destroy();
    }

    @Test
    void aConfiguredCacheSendsInBatches() throws Exception {
        QueryCacheConfig settings = new QueryCacheConfig("batched");
        settings.setBatchSize(100).setDelaySeconds(1).setPredicateConfig(
                new com.hazelcast.config.PredicateConfig(Predicates.greaterEqual("this", 0)));
        IMap<Object, Object> numbers = connect(config -> config.addQueryCacheConfig(name, settings)).getMap(name);
        QueryCache<Object, Object> cache = numbers.getQueryCache("batched");
        fillNumbers(1000);
        eventually(() -> cache.size() == 1000);
        map.put(5, -1);
        eventually(() -> cache.size() == 999);
        cache.destroy();
    }

    @Test
    void ofTheChangesOfAKeyTheLastMayDo() throws Exception {
        QueryCacheConfig settings = new QueryCacheConfig("coalesced");
        settings.setBatchSize(1000).setDelaySeconds(1).setCoalesce(true).setPredicateConfig(
                new com.hazelcast.config.PredicateConfig(Predicates.greaterEqual("this", 0)));
        IMap<Object, Object> numbers = connect(config -> config.addQueryCacheConfig(name, settings)).getMap(name);
        QueryCache<Object, Object> cache = numbers.getQueryCache("coalesced");
        List<Object> heard = new CopyOnWriteArrayList<>();
        cache.addEntryListener((EntryUpdatedListener<Object, Object>) event -> heard.add(event.getValue()), true);
        for (int i = 0; i < 20; i++) {
            map.put("a", i);
        }
        eventually(() -> Integer.valueOf(19).equals(cache.get("a")));
        // As many as there are seconds, if the machine is slow.
        eventually(() -> !heard.isEmpty() && heard.get(heard.size() - 1).equals(19));
        assertTrue(heard.size() < 20, heard.toString());
        cache.destroy();
    }

    @Test
    void itCanBeginEmptyAndHearOfWhatChanges() throws Exception {
        fillNumbers(10);
        QueryCacheConfig settings = new QueryCacheConfig("empty");
        settings.setPopulate(false).setPredicateConfig(
                new com.hazelcast.config.PredicateConfig(Predicates.greaterEqual("this", 0)));
        IMap<Object, Object> numbers = connect(config -> config.addQueryCacheConfig(name, settings)).getMap(name);
        QueryCache<Object, Object> cache = numbers.getQueryCache("empty");
        assertEquals(0, cache.size());
        map.put(3, 33);
        map.put("new", 1);
        eventually(() -> cache.size() == 2);
        assertEquals(33, cache.get(3));
        cache.destroy();
    }

    @Test
    void aClientWithOneConnectionFollowsEveryChange() throws Exception {
        IMap<Object, Object> numbers = connect(config -> config.getNetworkConfig().setSmartRouting(false)).getMap(name);
        fillNumbers(100);
        QueryCache<Object, Object> cache = numbers.getQueryCache(name, Predicates.greaterEqual("this", 50), true);
        assertEquals(50, cache.size());
        fillNumbers(1000);
        eventually(() -> cache.size() == 950);
        map.remove(999);
        eventually(() -> cache.size() == 949);
        map.clear();
        eventually(cache::isEmpty);
        cache.destroy();
    }

    @Test
    void peopleOfEveryFormatAreSelected() {
        for (String format : People.FORMATS.keySet()) {
            IMap<Object, Object> people = People.fill(client, name + format, format);
            QueryCache<Object, Object> cache = people.getQueryCache(name, Predicates.equal("address.city", "London"), true);
            assertEquals(
                    Set.of("Ada", "Alan"),
                    cache.values().stream().map(People::nameOf).collect(Collectors.toSet()),
                    format);
            cache.destroy();
        }
    }
}
