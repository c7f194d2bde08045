package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.map.IMap;
import com.hazelcast.query.PagingPredicate;
import com.hazelcast.query.PartitionPredicate;
import com.hazelcast.query.Predicate;
import com.hazelcast.query.PredicateBuilder.EntryObject;
import com.hazelcast.query.Predicates;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Predicates: which entries each one selects, over every format whose fields a member can read. */
class PredicateTest extends Suite {
    private static final Set<String> FILLED = new HashSet<>();

    private static Arguments selects(String what, Predicate<?, ?> predicate, Integer... keys) {
        return Arguments.of(what, predicate, List.of(keys));
    }

    static Stream<Arguments> selected() {
        EntryObject entry = Predicates.newPredicateBuilder().getEntryObject();
        EntryObject key = Predicates.newPredicateBuilder().getEntryObject();
        return Stream.of(
                selects("equal", Predicates.equal("name", "Ada"), 1),
                selects("equal number", Predicates.equal("age", 41), 3),
                selects("equal, a wider number", Predicates.equal("age", 41L), 3),
                selects("equal long", Predicates.equal("balance", 1L << 40), 1),
                selects("equal long, a narrower number", Predicates.equal("balance", 12), 4),
                selects("equal double", Predicates.equal("height", 1.5), 2),
                selects("equal boolean", Predicates.equal("active", false), 3, 4),
                selects("equal null", Predicates.equal("nickname", null), 1, 4),
                selects("equal nested", Predicates.equal("address.city", "London"), 1, 3),
                selects("equal key", Predicates.equal("__key", 4), 4),
                selects("equal item", Predicates.equal("tags[0]", "blue"), 2),
                selects("equal any item", Predicates.equal("tags[any]", "blue"), 1, 2),
                selects("not equal", Predicates.notEqual("age", 36), 2, 3, 4, 5),
                selects("not equal null", Predicates.notEqual("nickname", null), 2, 3, 5),
                selects("greater", Predicates.greaterThan("age", 41), 2, 4),
                selects("greater or equal", Predicates.greaterEqual("age", 41), 2, 3, 4),
                selects("less", Predicates.lessThan("age", 41), 1, 5),
                selects("less or equal", Predicates.lessEqual("age", 41), 1, 3, 5),
                selects("greater any item", Predicates.greaterThan("scores[any]", 4), 3, 5),
                selects("between", Predicates.between("age", 36, 47), 1, 3, 4),
                selects("between text", Predicates.between("name", "Ada", "Grace"), 1, 2, 3),
                selects("in", Predicates.in("name", "Ada", "Alan", "Nobody"), 1, 3),
                selects("in numbers", Predicates.in("age", 20, 85), 2, 5),
                selects("like", Predicates.like("name", "A%"), 1, 3),
                selects("like one letter", Predicates.like("name", "A_a"), 1),
                selects("ilike", Predicates.ilike("name", "ada%"), 1, 5),
                selects("regex", Predicates.regex("name", "A.*a.*"), 1, 3),
                selects("and", Predicates.and(Predicates.equal("active", true), Predicates.greaterThan("age", 30)), 1, 2),
                selects("or", Predicates.or(Predicates.equal("name", "Ada"), Predicates.equal("age", 41)), 1, 3),
                selects("not", Predicates.not(Predicates.equal("active", true)), 3, 4),
                selects("true", Predicates.alwaysTrue(), 1, 2, 3, 4, 5),
                selects("false", Predicates.alwaysFalse()),
                selects("words", Predicates.sql("age > 40 AND name LIKE 'A%'"), 3),
                selects("words with brackets", Predicates.sql("(active OR age = 41) AND NOT name = 'Ada'"), 2, 3, 5),
                selects("words with in", Predicates.sql("address.city IN ('Oslo', 'Paris')"), 2, 4, 5),
                selects("built", entry.get("name").equal("Ada").or(entry.get("age").greaterEqual(47)), 1, 2, 4),
                selects("built, of the key", key.key().between(2, 4), 2, 3, 4));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("selected")
    void aPredicateSelects(String what, Predicate<Object, Object> predicate, List<Integer> keys) {
        for (String format : People.FORMATS.keySet()) {
            IMap<Object, Object> people = people(format);
            Set<String> names = keys.stream().map(key -> People.ALL.get(key).name()).collect(Collectors.toSet());
            assertEquals(new TreeSet<>(keys), new TreeSet<>(people.keySet(predicate)), format);
            assertEquals(names, people.values(predicate).stream().map(People::nameOf).collect(Collectors.toSet()), format);
            assertEquals(
                    names,
                    people.entrySet(predicate).stream().map(it -> People.nameOf(it.getValue())).collect(Collectors.toSet()),
                    format);
        }
    }

    private IMap<Object, Object> people(String format) {
        String shared = "PredicateTest.people." + format;
        return FILLED.add(shared) ? People.fill(client, shared, format) : client.getMap(shared);
    }

    static Stream<Arguments> compared() {
        UUID id = new UUID(1, 2);
        OffsetDateTime instant = OffsetDateTime.of(2024, 2, 29, 12, 0, 0, 0, ZoneOffset.ofHours(2));
        return Stream.of(
                compares("bytes", Predicates.greaterThan("this", (byte) 1), 1, (byte) 2, (byte) 1),
                compares("shorts", Predicates.lessThan("this", (short) 0), 1, (short) -300, (short) 1),
                compares("longs", Predicates.equal("this", 1L << 50), 1, 1L << 50, 1L << 51),
                compares("floats", Predicates.between("this", 1f, 2f), 2, 1.5f, 2f, 2.5f),
                compares("doubles", Predicates.greaterEqual("this", 0.5), 2, 0.5, 1e300, Double.NEGATIVE_INFINITY),
                compares("chars", Predicates.equal("this", 'b'), 1, 'a', 'b'),
                compares("big integers", Predicates.greaterThan("this", BigInteger.TEN.pow(20)), 1,
                        BigInteger.TEN.pow(21), BigInteger.ONE.negate()),
                compares("decimals", Predicates.lessEqual("this", new BigDecimal("1.5")), 2,
                        new BigDecimal("1.50"), new BigDecimal("-2"), new BigDecimal("1.51")),
                compares("dates", Predicates.lessThan("this", LocalDate.of(2000, 1, 1)), 1,
                        LocalDate.of(1999, 12, 31), LocalDate.of(2024, 2, 29)),
                compares("times", Predicates.greaterThan("this", LocalTime.NOON), 1,
                        LocalTime.of(12, 0, 0, 1), LocalTime.MIDNIGHT),
                compares("timestamps", Predicates.lessThan("this", LocalDateTime.of(2024, 1, 1, 0, 0)),
                        1, LocalDateTime.of(2023, 1, 1, 1, 1), LocalDateTime.of(2025, 1, 1, 1, 1)),
                compares("instants", Predicates.equal("this", instant), 1, instant, instant.plusNanos(1000)),
                compares("ids", Predicates.equal("this", id), 1, id, new UUID(2, 1)),
                compares("texts", Predicates.in("this", "ä", "b"), 2, "a", "ä", "b"),
                compares("of a class", Predicates.instanceOf(Integer.class), 2, 1, 2, 3L, "4"));
    }

    private static Arguments compares(String what, Predicate<?, ?> predicate, int count, Object... values) {
        return Arguments.of(what, predicate, count, List.of(values));
    }

    /** The first ones of the values are to be selected. */
    @ParameterizedTest(name = "{0}")
    @MethodSource("compared")
    void plainValuesAreCompared(String what, Predicate<Object, Object> predicate, int count, List<Object> values) {
        if (what.equals("chars")) {
            values = List.of(values.get(1), values.get(0));
        }
        for (int i = 0; i < values.size(); i++) {
            map.put(i, values.get(i));
        }
        List<Object> all = values;
        Set<Object> expected = IntStream.range(0, all.size()).boxed()
                .filter(i -> what.equals("texts") ? i > 0 : i < count)
                .collect(Collectors.toSet());
        assertEquals(expected, map.keySet(predicate));
        assertEquals(count, map.values(predicate).size());
    }

    @Test
    void removeAllRemovesWhatIsSelected() {
        fillNumbers(100);
        map.removeAll(Predicates.greaterEqual("this", 10));
        assertEquals(10, map.size());
        map.removeAll(Predicates.alwaysFalse());
        assertEquals(10, map.size());
        map.removeAll(Predicates.alwaysTrue());
        assertTrue(map.isEmpty());
    }

    private void fillNumbers(int count) {
        map.putAll(IntStream.range(0, count).boxed().collect(Collectors.toMap(i -> i, i -> i)));
    }

    @Test
    void aPartitionsPredicateLooksThereAlone() {
        fillNumbers(500);
        int partition = client.getPartitionService().getPartition(7).getPartitionId();
        Set<Object> there = IntStream.range(0, 500).boxed()
                .filter(key -> client.getPartitionService().getPartition(key).getPartitionId() == partition)
                .collect(Collectors.toSet());
        PartitionPredicate<Object, Object> all = Predicates.partitionPredicate(7, Predicates.alwaysTrue());
        assertEquals(there, map.keySet(all));
        assertEquals(there, new HashSet<>(map.values(all)));
        assertEquals(Set.of(7), map.keySet(Predicates.partitionPredicate(7, Predicates.equal("this", 7))));
        assertEquals((long) there.size(), map.aggregate(com.hazelcast.aggregation.Aggregators.count(), all));
        map.removeAll(all);
        assertEquals(500 - there.size(), map.size());
    }

    @Test
    void severalPartitionsPredicateLooksThereAlone() {
        fillNumbers(500);
        Set<Integer> partitions = Stream.of(7, 8, 9)
                .map(key -> client.getPartitionService().getPartition(key).getPartitionId())
                .collect(Collectors.toSet());
        Set<Object> there = IntStream.range(0, 500).boxed()
                .filter(key -> partitions.contains(client.getPartitionService().getPartition(key).getPartitionId()))
                .collect(Collectors.toSet());
        assertEquals(there, map.keySet(Predicates.multiPartitionPredicate(new HashSet<>(Set.of(7, 8, 9)), Predicates.alwaysTrue())));
    }

    @Test
    void pagesComeInOrder() {
        fillNumbers(100);
        PagingPredicate<Object, Object> page = Predicates.pagingPredicate(Predicates.greaterEqual("this", 40), 25);
        assertEquals(range(40, 65), List.copyOf(map.values(page)));
        page.nextPage();
        assertEquals(range(65, 90), List.copyOf(map.values(page)));
        page.nextPage();
        assertEquals(range(90, 100), List.copyOf(map.values(page)));
        page.previousPage();
        assertEquals(range(65, 90), List.copyOf(map.values(page)));
        page.setPage(0);
        assertEquals(range(40, 65), List.copyOf(map.values(page)));
        page.setPage(9);
        assertEquals(List.of(), List.copyOf(map.values(page)));
    }

    @Test
    void pagesOfKeysAndEntries() {
        fillNumbers(100);
        PagingPredicate<Object, Object> page = Predicates.pagingPredicate(10);
        page.setPage(3);
        assertEquals(range(30, 40), List.copyOf(map.keySet(page)));
        assertEquals(range(30, 40), map.entrySet(page).stream().map(Map.Entry::getValue).toList());
    }

    private static List<Object> range(int from, int to) {
        return List.copyOf(IntStream.range(from, to).boxed().toList());
    }

    @Test
    void keysOfObjectsAreLookedInto() {
        for (int i = 0; i < 10; i++) {
            map.put(new People.Address("city " + i % 2, i), i);
        }
        assertEquals(Set.of(0, 2, 4, 6, 8), new HashSet<>(map.values(Predicates.equal("__key.city", "city 0"))));
        assertEquals(Set.of(8, 9), new HashSet<>(map.values(Predicates.greaterThan("__key.number", 7))));
    }

    @Test
    void jsonWithoutTheFieldIsNull() {
        map.put(1, new HazelcastJsonValue("{\"a\": 1}"));
        map.put(2, new HazelcastJsonValue("{\"b\": {\"c\": [1, {\"d\": 5}]}}"));
        assertEquals(Set.of(2), map.keySet(Predicates.equal("a", null)));
        assertEquals(Set.of(2), map.keySet(Predicates.equal("b.c[1].d", 5)));
        assertEquals(Set.of(2), map.keySet(Predicates.equal("b.c[any].d", 5)));
        assertEquals(Set.of(1), map.keySet(Predicates.equal("b.c", null)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"age >", "(age = 1", "age in"})
    void brokenWordsAreAnError(String words) {
        map.put(1, new HazelcastJsonValue("{\"age\": 1}"));
        assertThrows(RuntimeException.class, () -> map.values(Predicates.sql(words)));
        assertEquals(1, map.size());
    }

    @Test
    void localSetsAreOfTheEntriesOfTheirTime() {
        fillNumbers(10);
        Set<Object> before = map.keySet(Predicates.lessThan("this", 5));
        map.clear();
        assertEquals(new HashSet<>(Arrays.asList(0, 1, 2, 3, 4)), before);
    }
}
