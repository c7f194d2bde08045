package filbert.bench;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.Pipelining;
import com.hazelcast.map.IMap;

import java.util.List;
import java.util.SplittableRandom;

/**
 * The stock client as a driver. Arguments: address, cluster name, map name.
 *
 * <p>Command {@code get DEPTH ITERATIONS CALLS KEYS SEED}: ITERATIONS times CALLS gets of random integer keys, one by one
 * when DEPTH is 1, else through a new {@link Pipelining} of that depth per iteration. Every value must be its key as text.
 */
public final class ClientDriver {
    private ClientDriver() {
    }

    public static void main(String[] arguments) throws Exception {
        ClientConfig config = new ClientConfig();
        config.setClusterName(arguments[1]);
        config.getNetworkConfig().addAddress(arguments[0]);
        HazelcastInstance client = HazelcastClient.newHazelcastClient(config);
        IMap<Integer, String> map = client.getMap(arguments[2]);
        Commands.serve(words -> {
            if (!words[0].equals("get")) {
                throw new IllegalArgumentException("unknown command " + words[0]);
            }
            return get(map, Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                    Integer.parseInt(words[4]), Long.parseLong(words[5]));
        });
        client.shutdown();
    }

    private static Commands.Result get(IMap<Integer, String> map, int depth, int iterations, int calls, int keyCount,
                                       long seed) throws Exception {
        SplittableRandom random = new SplittableRandom(seed);
        int[] keys = new int[calls];
        long[] latencies = depth == 1 ? new long[iterations * calls] : null;
        long nanos = 0;
        for (int iteration = 0; iteration < iterations; iteration++) {
            for (int call = 0; call < calls; call++) {
                keys[call] = random.nextInt(keyCount);
            }
            // Choosing keys and comparing values is the driver's own work and is not measured.
            if (depth == 1) {
                nanos += single(map, keys, latencies, iteration * calls);
            } else {
                nanos += pipelined(map, keys, depth);
            }
        }
        return new Commands.Result((long) iterations * calls, nanos, latencies);
    }

    private static long single(IMap<Integer, String> map, int[] keys, long[] latencies, int from) {
        String[] values = new String[keys.length];
        long begun = System.nanoTime();
        long before = begun;
        for (int call = 0; call < keys.length; call++) {
            values[call] = map.get(keys[call]);
            long after = System.nanoTime();
            latencies[from + call] = after - before;
            before = after;
        }
        long nanos = before - begun;
        for (int call = 0; call < keys.length; call++) {
            check(keys[call], values[call]);
        }
        return nanos;
    }

    private static long pipelined(IMap<Integer, String> map, int[] keys, int depth) throws Exception {
        long begun = System.nanoTime();
        Pipelining<String> pipelining = new Pipelining<>(depth);
        for (int key : keys) {
            pipelining.add(map.getAsync(key));
        }
        List<String> values = pipelining.results();
        long nanos = System.nanoTime() - begun;
        for (int call = 0; call < keys.length; call++) {
            check(keys[call], values.get(call));
        }
        return nanos;
    }

    private static void check(int key, String value) {
        if (!Integer.toString(key).equals(value)) {
            throw new IllegalStateException("key " + key + " has the value " + value);
        }
    }
}
