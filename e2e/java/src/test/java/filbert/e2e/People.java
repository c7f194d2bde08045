package filbert.e2e;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.internal.json.Json;
import com.hazelcast.internal.json.JsonArray;
import com.hazelcast.internal.json.JsonObject;
import com.hazelcast.internal.json.JsonValue;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.serialization.ClassDefinition;
import com.hazelcast.nio.serialization.ClassDefinitionBuilder;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.nio.serialization.genericrecord.GenericRecordBuilder;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The same people in every format that a member can read fields of. */
final class People {
    record Address(String city, int number) {
    }

    record Person(String name, String nickname, int age, long balance, double height, boolean active, Address address,
            String[] tags, int[] scores) {
    }

    static final Address LONDON = new Address("London", 1);
    static final Address PARIS = new Address("Paris", 2);
    static final Address OSLO = new Address("Oslo", 3);

    static final Map<Integer, Person> ALL = Map.of(
            1, person("Ada", null, 36, 1L << 40, 1.65, true, LONDON, List.of("red", "blue"), 1, 2, 3),
            2, person("Grace", "Amazing", 85, -5, 1.5, true, PARIS, List.of("blue"), 4),
            3, person("Alan", "Prof", 41, 0, 1.78, false, LONDON, List.of("green", "red"), 5, 1),
            4, person("Édith", null, 47, 12, 1.42, false, PARIS, List.of()),
            5, person("ada_x", "50%", 20, 100, 1.9, true, OSLO, List.of("yellow"), 9, 9));

    /** Portable, Compact made by hand, Compact made from the record above by the client itself, and JSON. */
    static final Map<String, Function<Person, Object>> FORMATS = new LinkedHashMap<>();

    static {
        FORMATS.put("json", People::json);
        FORMATS.put("portable", People::portable);
        FORMATS.put("compact", People::compact);
        FORMATS.put("record", person -> person);
    }

    static final ClassDefinition PORTABLE_ADDRESS = new ClassDefinitionBuilder(40, 2)
            .addStringField("city")
            .addIntField("number")
            .build();
    static final ClassDefinition PORTABLE_PERSON = new ClassDefinitionBuilder(40, 1)
            .addStringField("name")
            .addStringField("nickname")
            .addIntField("age")
            .addLongField("balance")
            .addDoubleField("height")
            .addBooleanField("active")
            .addPortableField("address", PORTABLE_ADDRESS)
            .addStringArrayField("tags")
            .addIntArrayField("scores")
            .build();

    private People() {
    }

    private static Person person(String name, String nickname, int age, long balance, double height, boolean active,
            Address address, List<String> tags, int... scores) {
        return new Person(name, nickname, age, balance, height, active, address, tags.toArray(new String[0]), scores);
    }

    private static Object json(Person person) {
        JsonArray tags = new JsonArray();
        for (String tag : person.tags()) {
            tags.add(tag);
        }
        JsonObject object = new JsonObject()
                .add("name", person.name())
                .add("nickname", person.nickname() == null ? Json.NULL : Json.value(person.nickname()))
                .add("age", person.age())
                .add("balance", person.balance())
                .add("height", person.height())
                .add("active", person.active())
                .add("address", new JsonObject().add("city", person.address().city()).add("number", person.address().number()))
                .add("tags", tags);
        JsonArray scores = new JsonArray();
        for (int score : person.scores()) {
            scores.add(score);
        }
        return new HazelcastJsonValue(object.add("scores", (JsonValue) scores).toString());
    }

    static GenericRecord portable(Person person) {
        GenericRecord address = GenericRecordBuilder.portable(PORTABLE_ADDRESS)
                .setString("city", person.address().city())
                .setInt32("number", person.address().number())
                .build();
        return fill(GenericRecordBuilder.portable(PORTABLE_PERSON), person, address);
    }

    static GenericRecord compact(Person person) {
        GenericRecord address = GenericRecordBuilder.compact("java-address")
                .setString("city", person.address().city())
                .setInt32("number", person.address().number())
                .build();
        return fill(GenericRecordBuilder.compact("java-person"), person, address);
    }

    private static GenericRecord fill(GenericRecordBuilder builder, Person person, GenericRecord address) {
        return builder
                .setString("name", person.name())
                .setString("nickname", person.nickname())
                .setInt32("age", person.age())
                .setInt64("balance", person.balance())
                .setFloat64("height", person.height())
                .setBoolean("active", person.active())
                .setGenericRecord("address", address)
                .setArrayOfString("tags", person.tags())
                .setArrayOfInt32("scores", person.scores())
                .build();
    }

    static IMap<Object, Object> fill(HazelcastInstance client, String map, String format) {
        Map<Object, Object> entries = new HashMap<>();
        ALL.forEach((key, person) -> entries.put(key, FORMATS.get(format).apply(person)));
        IMap<Object, Object> people = client.getMap(map);
        people.putAll(entries);
        return people;
    }

    /** The name of any person, whatever it is stored as. */
    static String nameOf(Object value) {
        if (value instanceof GenericRecord generic) {
            return generic.getString("name");
        }
        if (value instanceof HazelcastJsonValue json) {
            return Json.parse(json.getValue()).asObject().getString("name", null);
        }
        return ((Person) value).name();
    }
}
