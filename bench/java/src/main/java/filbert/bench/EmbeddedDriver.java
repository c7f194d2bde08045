package filbert.bench;

import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;

/**
 * An embedded member as a map, configured by the file that -Dhazelcast.config names. Arguments: number of entries,
 * characters of a value.
 *
 * <p>Commands: {@code put}, {@code set} write all entries; {@code put-timed}, {@code set-timed} the same with the latency
 * of each call; {@code check} reads every entry and compares it. Keys and values are made before the first command.
 */
public final class EmbeddedDriver {
    private EmbeddedDriver() {
    }

    public static void main(String[] arguments) throws Exception {
        int entries = Integer.parseInt(arguments[0]);
        int characters = Integer.parseInt(arguments[1]);
        Integer[] keys = new Integer[entries];
        String[] values = Values.all(entries, characters);
        for (int key = 0; key < entries; key++) {
            keys[key] = key;
        }
        HazelcastInstance member = Hazelcast.newHazelcastInstance();
        IMap<Integer, String> map = member.getMap("bench-s");
        Commands.serve(words -> {
            switch (words[0]) {
                case "put":
                    return put(map, keys, values, false);
                case "put-timed":
                    return put(map, keys, values, true);
                case "set":
                    return set(map, keys, values, false);
                case "set-timed":
                    return set(map, keys, values, true);
                case "check":
                    return check(map, keys, values);
                default:
                    throw new IllegalArgumentException("unknown command " + words[0]);
            }
        });
        member.shutdown();
    }

    private static Commands.Result put(IMap<Integer, String> map, Integer[] keys, String[] values, boolean timed) {
        long[] latencies = timed ? new long[keys.length] : null;
        long begun = System.nanoTime();
        long before = begun;
        for (int call = 0; call < keys.length; call++) {
            map.put(keys[call], values[call]);
            if (timed) {
                long after = System.nanoTime();
                latencies[call] = after - before;
                before = after;
            }
        }
        return new Commands.Result(keys.length, System.nanoTime() - begun, latencies);
    }

    private static Commands.Result set(IMap<Integer, String> map, Integer[] keys, String[] values, boolean timed) {
        long[] latencies = timed ? new long[keys.length] : null;
        long begun = System.nanoTime();
        long before = begun;
        for (int call = 0; call < keys.length; call++) {
            map.set(keys[call], values[call]);
            if (timed) {
                long after = System.nanoTime();
                latencies[call] = after - before;
                before = after;
            }
        }
        return new Commands.Result(keys.length, System.nanoTime() - begun, latencies);
    }

    private static Commands.Result check(IMap<Integer, String> map, Integer[] keys, String[] values) {
        long begun = System.nanoTime();
        if (map.size() != keys.length) {
            throw new IllegalStateException(map.size() + " entries, expected " + keys.length);
        }
        for (int call = 0; call < keys.length; call++) {
            if (!values[call].equals(map.get(keys[call]))) {
                throw new IllegalStateException("key " + call + " has another value");
            }
        }
        return new Commands.Result(keys.length, System.nanoTime() - begun, null);
    }
}
