package filbert.bench;

import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.config.SerializationConfig;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.nio.ObjectDataInput;
import com.hazelcast.nio.ObjectDataOutput;
import com.hazelcast.nio.serialization.DataSerializableFactory;
import com.hazelcast.nio.serialization.IdentifiedDataSerializable;
import com.hazelcast.nio.serialization.Portable;
import com.hazelcast.nio.serialization.PortableReader;
import com.hazelcast.nio.serialization.PortableWriter;
import com.hazelcast.nio.serialization.compact.CompactReader;
import com.hazelcast.nio.serialization.compact.CompactSerializer;
import com.hazelcast.nio.serialization.compact.CompactWriter;

import java.io.IOException;

/** The values of experiment Q: a number, a name and twenty integers, in four formats. */
final class Formats {
    static final int FACTORY_ID = 1;
    static final int PORTABLE_FACTORY_ID = 2;
    static final int CLASS_ID = 1;
    static final String TYPE_NAME = "bench";

    private static final int NUMBERS = 20;
    private static final int NAMES = 32;

    private Formats() {
    }

    /** How values are serialized. */
    enum Format {
        IDS, PORTABLE, COMPACT, JSON;

        static Format of(String word) {
            return valueOf(word.toUpperCase(java.util.Locale.ROOT));
        }

        /** The value of a key. */
        Object value(int key) {
            switch (this) {
                case IDS:
                    return fill(new IdsValue(), key);
                case PORTABLE:
                    return fill(new PortableValue(), key);
                case COMPACT:
                    return fill(new CompactValue(), key);
                default:
                    return json(key);
            }
        }
    }

    /**
     * The number of a key: different for every key, between 0 and 2^31 - 1, and in no order. An odd factor makes
     * another number of every number of 31 bits.
     */
    static long number(int key) {
        return (key * 2_654_435_761L) & 0x7FFF_FFFFL;
    }

    /** The name of a key, one of 32. */
    static String name(int key) {
        return "name-" + key % NAMES;
    }

    /** How many different names there are. */
    static int names() {
        return NAMES;
    }

    private static int[] numbers(int key) {
        int[] numbers = new int[NUMBERS];
        for (int index = 0; index < NUMBERS; index++) {
            numbers[index] = key + index;
        }
        return numbers;
    }

    private static Fields fill(Fields fields, int key) {
        fields.value = number(key);
        fields.name = name(key);
        fields.numbers = numbers(key);
        return fields;
    }

    private static HazelcastJsonValue json(int key) {
        StringBuilder text = new StringBuilder(160);
        text.append("{\"value\":").append(number(key)).append(",\"name\":\"").append(name(key)).append("\",\"numbers\":[");
        for (int index = 0; index < NUMBERS; index++) {
            text.append(index == 0 ? "" : ",").append(key + index);
        }
        return new HazelcastJsonValue(text.append("]}").toString());
    }

    /** The number in a value that a server returned, whatever its format. */
    static long numberOf(Object value) {
        if (value instanceof Fields) {
            return ((Fields) value).value;
        }
        if (value instanceof HazelcastJsonValue) {
            String text = value.toString();
            int begin = text.indexOf("\"value\":") + 8;
            int end = begin;
            while (end < text.length() && Character.isDigit(text.charAt(end))) {
                end++;
            }
            return Long.parseLong(text, begin, end, 10);
        }
        throw new Wrong("a value of " + (value == null ? "null" : value.getClass().getName()));
    }

    static void configure(ClientConfig config) {
        SerializationConfig serialization = config.getSerializationConfig();
        serialization.addDataSerializableFactory(FACTORY_ID, new IdsFactory());
        serialization.addPortableFactory(PORTABLE_FACTORY_ID, id -> new PortableValue());
        serialization.getCompactSerializationConfig().addSerializer(new ValueSerializer());
    }

    /** What all formats but JSON have. */
    abstract static class Fields {
        long value;
        String name;
        int[] numbers;

        public long getValue() {
            return value;
        }

        public String getName() {
            return name;
        }
    }

    /** Makes values of IdentifiedDataSerializable; a member has it too. */
    public static final class IdsFactory implements DataSerializableFactory {
        @Override
        public IdentifiedDataSerializable create(int typeId) {
            return new IdsValue();
        }
    }

    /** The value as IdentifiedDataSerializable. */
    public static final class IdsValue extends Fields implements IdentifiedDataSerializable {
        @Override
        public int getFactoryId() {
            return FACTORY_ID;
        }

        @Override
        public int getClassId() {
            return CLASS_ID;
        }

        @Override
        public void writeData(ObjectDataOutput out) throws IOException {
            out.writeLong(value);
            out.writeString(name);
            out.writeIntArray(numbers);
        }

        @Override
        public void readData(ObjectDataInput in) throws IOException {
            value = in.readLong();
            name = in.readString();
            numbers = in.readIntArray();
        }
    }

    /** The value as Portable. */
    public static final class PortableValue extends Fields implements Portable {
        @Override
        public int getFactoryId() {
            return PORTABLE_FACTORY_ID;
        }

        @Override
        public int getClassId() {
            return CLASS_ID;
        }

        @Override
        public void writePortable(PortableWriter writer) throws IOException {
            writer.writeLong("value", value);
            writer.writeString("name", name);
            writer.writeIntArray("numbers", numbers);
        }

        @Override
        public void readPortable(PortableReader reader) throws IOException {
            value = reader.readLong("value");
            name = reader.readString("name");
            numbers = reader.readIntArray("numbers");
        }
    }

    /** The value as Compact. */
    public static final class CompactValue extends Fields {
    }

    private static final class ValueSerializer implements CompactSerializer<CompactValue> {
        @Override
        public CompactValue read(CompactReader reader) {
            CompactValue read = new CompactValue();
            read.value = reader.readInt64("value");
            read.name = reader.readString("name");
            read.numbers = reader.readArrayOfInt32("numbers");
            return read;
        }

        @Override
        public void write(CompactWriter writer, CompactValue written) {
            writer.writeInt64("value", written.value);
            writer.writeString("name", written.name);
            writer.writeArrayOfInt32("numbers", written.numbers);
        }

        @Override
        public String getTypeName() {
            return TYPE_NAME;
        }

        @Override
        public Class<CompactValue> getCompactClass() {
            return CompactValue.class;
        }
    }
}
