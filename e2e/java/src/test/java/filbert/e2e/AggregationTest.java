package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.hazelcast.aggregation.Aggregator;
import com.hazelcast.aggregation.Aggregators;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.nio.serialization.genericrecord.GenericRecordBuilder;
import com.hazelcast.projection.Projections;
import com.hazelcast.query.Predicate;
import com.hazelcast.query.Predicates;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Aggregators and projections: every one of the client, over every format whose fields a member can read. */
class AggregationTest extends Suite {
    private static final Predicate<Object, Object> LONDON = Predicates.equal("address.city", "London");
    private static final Predicate<Object, Object> NOBODY = Predicates.alwaysFalse();
    private static final Predicate<Object, Object> ALL = Predicates.alwaysTrue();
    private static final Set<String> FILLED = new HashSet<>();

    private static Arguments tells(String what, Aggregator<?, ?> aggregator, Predicate<?, ?> predicate, Object expected) {
        return Arguments.of(what, aggregator, predicate, expected);
    }

    static Stream<Arguments> aggregated() {
        return Stream.of(
                tells("count", Aggregators.count(), ALL, 5L),
                tells("count of an attribute", Aggregators.count("nickname"), ALL, 5L),
                tells("count where", Aggregators.count(), LONDON, 2L),
                tells("count of nobody", Aggregators.count(), NOBODY, 0L),
                tells("distinct", Aggregators.distinct("address.city"), ALL, Set.of("London", "Paris", "Oslo")),
                tells("distinct with null", Aggregators.distinct("nickname"), LONDON, new HashSet<>(Arrays.asList(null, "Prof"))),
                tells("distinct items", Aggregators.distinct("tags[any]"), LONDON, Set.of("red", "blue", "green")),
                tells("double average", Aggregators.doubleAvg("height"), LONDON, (1.65 + 1.78) / 2),
                tells("double sum", Aggregators.doubleSum("height"), LONDON, 1.65 + 1.78),
                tells("double maximum", Aggregators.doubleMax("height"), ALL, 1.9),
                tells("double minimum", Aggregators.doubleMin("height"), ALL, 1.42),
                tells("long sum", Aggregators.longSum("balance"), ALL, (1L << 40) + 107),
                tells("long average", Aggregators.longAvg("balance"), LONDON, (double) (1L << 39)),
                tells("long maximum", Aggregators.longMax("balance"), ALL, 1L << 40),
                tells("long minimum", Aggregators.longMin("balance"), ALL, -5L),
                tells("fixed point sum", Aggregators.fixedPointSum("age"), ALL, 229L),
                tells("floating point sum", Aggregators.floatingPointSum("height"), LONDON, 1.65 + 1.78),
                tells("number average", Aggregators.numberAvg("age"), ALL, 45.8),
                tells("text maximum", Aggregators.comparableMax("name"), ALL, "Édith"),
                tells("text minimum", Aggregators.comparableMin("name"), ALL, "Ada"),
                tells("maximum of nobody", Aggregators.comparableMax("name"), NOBODY, null),
                tells("average of nobody", Aggregators.doubleAvg("height"), NOBODY, null),
                tells("sum of nobody", Aggregators.longSum("balance"), NOBODY, 0L));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("aggregated")
    void anAggregatorTells(String what, Aggregator<Object, Object> aggregator, Predicate<Object, Object> predicate,
            Object expected) {
        for (String format : People.FORMATS.keySet()) {
            Object actual = aggregate(people(format), aggregator, predicate);
            if (expected instanceof Double number) {
                assertEquals(number, (Double) actual, 1e-9, format);
            } else {
                assertEquals(expected, actual, format);
            }
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object aggregate(IMap<Object, Object> entries, Aggregator aggregator, Predicate predicate) {
        return predicate == ALL ? entries.aggregate(aggregator) : entries.aggregate(aggregator, predicate);
    }

    private IMap<Object, Object> people(String format) {
        String shared = "AggregationTest.people." + format;
        return FILLED.add(shared) ? People.fill(client, shared, format) : client.getMap(shared);
    }

    @Test
    void intAggregatorsTell() {
        for (String format : List.of("portable", "compact", "record")) {
            IMap<Object, Object> people = people(format);
            assertEquals(229L, people.aggregate(Aggregators.integerSum("age")));
            assertEquals(45.8, people.aggregate(Aggregators.integerAvg("age")), 1e-9);
            assertEquals(85, people.aggregate(Aggregators.integerMax("age")));
            assertEquals(36, people.aggregate(Aggregators.integerMin("age"), LONDON));
        }
    }

    @Test
    void theEntryWithTheMostAndLeast() {
        for (String format : People.FORMATS.keySet()) {
            Map.Entry<Object, Object> oldest = people(format).aggregate(Aggregators.maxBy("age"));
            assertEquals(2, oldest.getKey());
            assertEquals("Grace", People.nameOf(oldest.getValue()));
            assertEquals(5, people(format).aggregate(Aggregators.<Map.Entry<Object, Object>>minBy("age")).getKey());
            assertNull(people(format).aggregate(Aggregators.maxBy("age"), NOBODY));
        }
    }

    @Test
    void bigNumbers() {
        map.putAll(Map.of(1, new BigDecimal("1.5"), 2, new BigDecimal("2.25"), 3, new BigDecimal("-1")));
        assertEquals(0, new BigDecimal("2.75").compareTo(map.aggregate(Aggregators.bigDecimalSum("this"))));
        assertEquals(0, new BigDecimal("2.25").compareTo(map.aggregate(Aggregators.bigDecimalMax("this"))));
        assertEquals(0, new BigDecimal("-1").compareTo(map.aggregate(Aggregators.bigDecimalMin("this"))));
        assertEquals(
                0,
                new BigDecimal("0.25").compareTo(
                        map.aggregate(Aggregators.bigDecimalAvg("this"), Predicates.lessThan("this", new BigDecimal(2)))));
        IMap<Object, Object> integers = client.getMap(name + " integers");
        BigInteger big = BigInteger.TEN.pow(30);
        integers.putAll(Map.of(1, big, 2, big.negate(), 3, BigInteger.TEN));
        assertEquals(BigInteger.TEN, integers.aggregate(Aggregators.bigIntegerSum("this")));
        assertEquals(big, integers.aggregate(Aggregators.bigIntegerMax("this")));
        assertEquals(big.negate(), integers.aggregate(Aggregators.bigIntegerMin("this")));
        BigDecimal average = integers.aggregate(Aggregators.bigIntegerAvg("this"), Predicates.equal("__key", 3));
        assertEquals(0, BigDecimal.TEN.compareTo(average));
    }

    @Test
    void oneAttribute() {
        for (String format : People.FORMATS.keySet()) {
            IMap<Object, Object> people = people(format);
            assertEquals(
                    People.ALL.values().stream().map(People.Person::name).collect(Collectors.toSet()),
                    new HashSet<>(people.project(Projections.singleAttribute("name"))));
            assertEquals(
                    Set.of(36, 41),
                    people.project(Projections.singleAttribute("age"), LONDON).stream()
                            .map(age -> ((Number) age).intValue())
                            .collect(Collectors.toSet()));
            assertEquals(Set.of(1, 3), new HashSet<>(people.project(Projections.singleAttribute("__key"), LONDON)));
            assertEquals(List.of(), List.copyOf(people.project(Projections.singleAttribute("name"), NOBODY)));
        }
    }

    @Test
    void severalAttributes() {
        for (String format : People.FORMATS.keySet()) {
            List<List<Object>> rows = people(format)
                    .project(Projections.<Map.Entry<Object, Object>>multiAttribute("name", "nickname", "address.city"), LONDON)
                    .stream()
                    .map(Arrays::asList)
                    .toList();
            assertEquals(
                    Set.of(Arrays.asList("Ada", null, "London"), Arrays.asList("Alan", "Prof", "London")),
                    new HashSet<>(rows),
                    format);
        }
    }

    @Test
    void wholeEntries() {
        for (String format : People.FORMATS.keySet()) {
            Map<Object, String> found = people(format)
                    .project(Projections.<Map.Entry<Object, Object>>identity(), LONDON)
                    .stream()
                    .collect(Collectors.toMap(Map.Entry::getKey, entry -> People.nameOf(entry.getValue())));
            assertEquals(Map.of(1, "Ada", 3, "Alan"), found);
        }
    }

    @Test
    void aPartitionIsGoneThroughWithAPredicateAndAProjection() {
        for (String format : People.FORMATS.keySet()) {
            var people = (com.hazelcast.client.impl.proxy.ClientMapProxy<Object, Object>) people(format);
            Set<Object> names = new HashSet<>();
            for (int partition = 0; partition < client.getPartitionService().getPartitions().size(); partition++) {
                people.<Object>iterator(
                                2,
                                partition,
                                Projections.<Map.Entry<Object, Object>, Object>singleAttribute("name"),
                                Predicates.equal("active", true))
                        .forEachRemaining(names::add);
            }
            assertEquals(Set.of("Ada", "Grace", "ada_x"), names, format);
        }
    }

    @Test
    void nestedRecordsAndArraysOfCompact() {
        GenericRecord[] items = new GenericRecord[3];
        for (int i = 0; i < 3; i++) {
            items[i] = GenericRecordBuilder.compact("item").setInt32("n", i).setNullableInt32("odd", i % 2 == 1 ? i : null).build();
        }
        map.put(1, GenericRecordBuilder.compact("order").setArrayOfGenericRecord("items", items).setDecimal("sum", BigDecimal.TEN).build());
        assertEquals(Set.of(1), map.keySet(Predicates.equal("items[any].n", 2)));
        assertEquals(Set.of(1), map.keySet(Predicates.equal("items[1].odd", 1)));
        assertEquals(Set.of(), map.keySet(Predicates.equal("items[any].n", 3)));
        assertEquals(Set.of(1), map.keySet(Predicates.greaterThan("sum", BigDecimal.ONE)));
        assertEquals(Set.of(0, 1, 2), map.aggregate(Aggregators.distinct("items[any].n")));
    }
}
