package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.ObjectDataInput;
import com.hazelcast.nio.ObjectDataOutput;
import com.hazelcast.nio.serialization.IdentifiedDataSerializable;
import com.hazelcast.nio.serialization.Portable;
import com.hazelcast.nio.serialization.PortableReader;
import com.hazelcast.nio.serialization.PortableWriter;
import com.hazelcast.nio.serialization.StreamSerializer;
import com.hazelcast.config.SerializerConfig;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.nio.serialization.genericrecord.GenericRecordBuilder;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Values of the user's own: Compact, Portable, identified, Java's and custom ones, JSON; opaque to the member. */
class SerializationTest extends Suite {
    /** Records and plain classes are Compact without configuration. */
    record Address(String street, int number) {
    }

    record Person(String name, Integer age, Address address, long[] scores) {
    }

    @Test
    void aCompactValueIsReadByAClientThatNeverSawItsSchema() throws Exception {
        map.put("ada", new Person("Ada", null, new Address("St James's Square", 12), new long[] {1, 1L << 40}));
        Person read = (Person) connect().getMap(name).get("ada");
        assertEquals(new Address("St James's Square", 12), read.address());
        assertEquals(1L << 40, read.scores()[1]);
        map.put(new Address("Road", 1), "home");
        assertEquals("home", connect().getMap(name).get(new Address("Road", 1)));
        assertTrue(map.containsValue("home"));
    }

    @Test
    void aGenericCompactRecordNeedsNoClass() throws Exception {
        GenericRecord made = GenericRecordBuilder.compact("only here").setString("a", "text").setInt32("b", 7).build();
        map.put("r", made);
        GenericRecord read = (GenericRecord) connect().getMap(name).get("r");
        assertEquals("text", read.getString("a"));
        assertEquals(7, read.getInt32("b"));
        assertTrue(map.replace("r", made, GenericRecordBuilder.compact("only here").setString("a", "b").setInt32("b", 8).build()));
    }

    @Test
    void manySchemasAreKept() throws Exception {
        for (int i = 0; i < 100; i++) {
            map.put(i, GenericRecordBuilder.compact("type " + i).setInt32("field " + i, i).build());
        }
        IMap<Object, Object> fresh = connect().getMap(name);
        for (int i = 0; i < 100; i++) {
            assertEquals(i, ((GenericRecord) fresh.get(i)).getInt32("field " + i));
        }
    }

    /** A value with named fields and a version. */
    public static final class Customer implements Portable {
        String name;
        long balance;

        @Override
        public int getFactoryId() {
            return 1;
        }

        @Override
        public int getClassId() {
            return 1;
        }

        @Override
        public void writePortable(PortableWriter writer) throws IOException {
            writer.writeString("name", name);
            writer.writeLong("balance", balance);
        }

        @Override
        public void readPortable(PortableReader reader) throws IOException {
            name = reader.readString("name");
            balance = reader.readLong("balance");
        }
    }

    @Test
    void aPortableValueComesBack() throws Exception {
        HazelcastInstance writer = connect(config ->
                config.getSerializationConfig().addPortableFactory(1, id -> new Customer()));
        HazelcastInstance reader = connect(config ->
                config.getSerializationConfig().addPortableFactory(1, id -> new Customer()));
        Customer customer = new Customer();
        customer.name = "Grace";
        customer.balance = 1L << 40;
        writer.getMap(name).put("c", customer);
        Customer read = (Customer) reader.getMap(name).get("c");
        assertEquals("Grace", read.name);
        assertEquals(1L << 40, read.balance);
    }

    /** A value whose layout only the client knows. */
    public static final class Point implements IdentifiedDataSerializable {
        int x;
        int y;

        static Point of(int x, int y) {
            Point point = new Point();
            point.x = x;
            point.y = y;
            return point;
        }

        @Override
        public int getFactoryId() {
            return 5;
        }

        @Override
        public int getClassId() {
            return 6;
        }

        @Override
        public void writeData(ObjectDataOutput out) throws IOException {
            out.writeInt(x);
            out.writeInt(y);
        }

        @Override
        public void readData(ObjectDataInput in) throws IOException {
            x = in.readInt();
            y = in.readInt();
        }
    }

    @Test
    void anIdentifiedValueComesBackThoughTheMemberDoesNotKnowIt() throws Exception {
        IMap<Object, Object> points = connect(config ->
                config.getSerializationConfig().addDataSerializableFactory(5, id -> new Point())).getMap(name);
        points.put("p", Point.of(3, 4));
        assertEquals(4, ((Point) points.get("p")).y);
        assertTrue(points.replace("p", Point.of(3, 4), Point.of(5, 6)));
        assertTrue(points.remove("p", Point.of(5, 6)));
    }

    record Colour(int rgb) {
    }

    /** A serializer of the user's own. */
    public static final class ColourSerializer implements StreamSerializer<Colour> {
        @Override
        public int getTypeId() {
            return 1234;
        }

        @Override
        public void write(ObjectDataOutput out, Colour colour) throws IOException {
            out.writeInt(colour.rgb());
        }

        @Override
        public Colour read(ObjectDataInput in) throws IOException {
            return new Colour(in.readInt());
        }
    }

    @Test
    void aCustomTypeComesBack() throws Exception {
        IMap<Object, Object> colours = connect(config -> config.getSerializationConfig().addSerializerConfig(
                new SerializerConfig().setTypeClass(Colour.class).setImplementation(new ColourSerializer()))).getMap(name);
        colours.put(new Colour(1), new Colour(0xFF8000));
        assertEquals(new Colour(0xFF8000), colours.get(new Colour(1)));
    }

    /** Java's own serialization. */
    public static final class Plain implements Serializable {
        private static final long serialVersionUID = 1;
        final List<String> words = new ArrayList<>(List.of("a", "b"));
    }

    @Test
    void javasOwnSerializationAndCollectionsComeBack() throws Exception {
        map.put("plain", new Plain());
        assertEquals(List.of("a", "b"), ((Plain) connect().getMap(name).get("plain")).words);
        map.put("map", new java.util.HashMap<>(Map.of("a", 1)));
        assertEquals(Map.of("a", 1), map.get("map"));
        map.put("list", List.of(1, "two"));
        assertEquals(List.of(1, "two"), map.get("list"));
    }

    @Test
    void jsonComesBackAsItWasSent() {
        map.put("j", new HazelcastJsonValue("{\"b\": 1,  \"a\": [true, null, \"ü\"]}"));
        assertEquals("{\"b\": 1,  \"a\": [true, null, \"ü\"]}", map.get("j").toString());
    }
}
