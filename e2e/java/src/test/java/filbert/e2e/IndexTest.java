package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.hazelcast.config.BitmapIndexOptions;
import com.hazelcast.config.IndexConfig;
import com.hazelcast.config.IndexType;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.map.IMap;
import com.hazelcast.query.PagingPredicate;
import com.hazelcast.query.Predicate;
import com.hazelcast.query.Predicates;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Indexes: answers are the same with and without them, whenever they were made, and follow every change. */
class IndexTest extends Suite {
    static Stream<Arguments> indexes() {
        IndexConfig bitmap = new IndexConfig(IndexType.BITMAP, "active");
        bitmap.getBitmapIndexOptions().setUniqueKey("__key");
        bitmap.getBitmapIndexOptions().setUniqueKeyTransformation(BitmapIndexOptions.UniqueKeyTransformation.LONG);
        return Stream.of(
                Arguments.of("hash", List.of(new IndexConfig(IndexType.HASH, "name"), new IndexConfig(IndexType.HASH, "age"))),
                Arguments.of("sorted", List.of(new IndexConfig(IndexType.SORTED, "name"), new IndexConfig(IndexType.SORTED, "age"))),
                Arguments.of("bitmap", List.of(bitmap, new IndexConfig(IndexType.BITMAP, "name"))),
                Arguments.of("composite", List.of(new IndexConfig(IndexType.SORTED, "active", "age"), new IndexConfig(IndexType.HASH, "name", "age"))),
                Arguments.of("nested and items", List.of(new IndexConfig(IndexType.HASH, "address.city"), new IndexConfig(IndexType.SORTED, "tags[any]"))),
                Arguments.of("key", List.of(new IndexConfig(IndexType.SORTED, "__key"))));
    }

    private static final Map<Predicate<Object, Object>, Set<Integer>> SELECTED = Map.of(
            Predicates.equal("name", "Ada"), Set.of(1),
            Predicates.in("age", 20, 85, 99), Set.of(2, 5),
            Predicates.between("age", 36, 47), Set.of(1, 3, 4),
            Predicates.and(Predicates.equal("active", true), Predicates.greaterThan("age", 30)), Set.of(1, 2),
            Predicates.and(Predicates.equal("name", "Alan"), Predicates.equal("age", 41)), Set.of(3),
            Predicates.or(Predicates.lessThan("age", 30), Predicates.equal("active", false)), Set.of(3, 4, 5),
            Predicates.equal("address.city", "London"), Set.of(1, 3),
            Predicates.equal("tags[any]", "blue"), Set.of(1, 2),
            Predicates.greaterEqual("__key", 4), Set.of(4, 5),
            Predicates.notEqual("name", "Ada"), Set.of(2, 3, 4, 5));

    @ParameterizedTest(name = "{0}")
    @MethodSource("indexes")
    void anIndexChangesNoAnswer(String what, List<IndexConfig> indexes) {
        for (String format : People.FORMATS.keySet()) {
            IMap<Object, Object> people = client.getMap(name + format);
            people.put(1, People.FORMATS.get(format).apply(People.ALL.get(3)));
            people.put(9, People.FORMATS.get(format).apply(People.ALL.get(3)));
            indexes.forEach(people::addIndex);
            People.fill(client, people.getName(), format);
            people.remove(9);
            SELECTED.forEach((predicate, keys) ->
                    assertEquals(new TreeSet<>(keys), new TreeSet<>(people.keySet(predicate)), format + predicate));
        }
    }

    @ParameterizedTest
    @EnumSource(IndexType.class)
    void anIndexFollowsRandomChanges(IndexType type) {
        map.addIndex(new IndexConfig(type, "a"));
        Random random = new Random(4711);
        Map<Integer, Integer> model = new HashMap<>();
        for (int round = 0; round < 1000; round++) {
            int key = random.nextInt(50);
            int value = random.nextInt(10);
            if (random.nextInt(4) == 0) {
                map.delete(key);
                model.remove(key);
            } else {
                map.set(key, new HazelcastJsonValue("{\"a\": " + value + "}"));
                model.put(key, value);
            }
            if (round % 50 == 0) {
                assertEquals(keys(model, value, value), map.keySet(Predicates.equal("a", value)));
                assertEquals(keys(model, 3, 6), map.keySet(Predicates.between("a", 3, 6)));
            }
        }
    }

    private static Set<Integer> keys(Map<Integer, Integer> model, int from, int to) {
        return model.entrySet().stream()
                .filter(entry -> entry.getValue() >= from && entry.getValue() <= to)
                .map(Map.Entry::getKey)
                .collect(Collectors.toSet());
    }

    @Test
    void pagesWithAnIndexComeInOrder() {
        map.putAll(IntStream.range(0, 1000).boxed().collect(Collectors.toMap(i -> i, i -> i / 2)));
        map.addIndex(IndexType.SORTED, "this");
        PagingPredicate<Object, Object> page = Predicates.pagingPredicate(Predicates.between("this", 100, 110), 8);
        Set<Object> seen = new HashSet<>();
        for (int i = 0; i < 3; i++) {
            seen.addAll(map.keySet(page));
            page.nextPage();
        }
        assertEquals(IntStream.range(200, 222).boxed().collect(Collectors.toSet()), seen);
    }

    @Test
    void anIndexIsMadeWhileTheMapIsWritten() throws Exception {
        var writer = elsewhere(() -> {
            for (int i = 0; i < 20_000; i++) {
                map.set(i, i % 100);
            }
            return null;
        });
        map.addIndex(IndexType.HASH, "this");
        writer.get();
        assertEquals(200, map.keySet(Predicates.equal("this", 7)).size());
        assertEquals(20_000, map.keySet(Predicates.greaterEqual("this", 0)).size());
    }

    @Test
    void aNameIsOfOneIndex() {
        map.addIndex(new IndexConfig(IndexType.HASH, "a").setName("same"));
        map.addIndex(new IndexConfig(IndexType.HASH, "a").setName("same"));
        assertThrows(RuntimeException.class, () -> map.addIndex(new IndexConfig(IndexType.HASH, "a", "a")));
        assertThrows(RuntimeException.class, () -> map.addIndex(new IndexConfig(IndexType.BITMAP, "a", "b")));
    }
}
