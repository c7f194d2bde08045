package filbert.bench;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.Pipelining;
import com.hazelcast.map.IMap;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;

/**
 * The stock client as a driver. Arguments: address, cluster name, map name.
 *
 * <p>Command {@code get DEPTH ITERATIONS CALLS KEYS SEED}: ITERATIONS times CALLS gets of random integer keys, one by one
 * when DEPTH is 1, else through a new {@link Pipelining} of that depth per iteration. Every value must be its key as text.
 *
 * <p>Commands {@code put THREADS CALLS ENTRIES CHARACTERS} and {@code set ...}: each of the threads makes CALLS single
 * calls over all keys, one after the other. Values are made at the first such command. A put must return the value of its
 * key or nothing.
 *
 * <p>Command {@code members N}: waits until the cluster has N members and fails when it has not after a minute.
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
        String[][] values = new String[1][];
        Commands.serve(words -> {
            switch (words[0]) {
                case "get":
                    return get(map, Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                            Integer.parseInt(words[4]), Long.parseLong(words[5]));
                case "put":
                case "set":
                    if (values[0] == null) {
                        values[0] = Values.all(Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                    }
                    return write(map, words[0].equals("put"), Integer.parseInt(words[1]), Integer.parseInt(words[2]),
                            values[0]);
                case "members":
                    awaitMembers(client, Integer.parseInt(words[1]));
                    return new Commands.Result(0, 0, null);
                default:
                    throw new IllegalArgumentException("unknown command " + words[0]);
            }
        });
        client.shutdown();
    }

    private static void awaitMembers(HazelcastInstance client, int count) throws InterruptedException {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (client.getCluster().getMembers().size() != count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(client.getCluster().getMembers().size() + " members, expected " + count);
            }
            Thread.sleep(50);
        }
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

    private static Commands.Result write(IMap<Integer, String> map, boolean put, int threads, int calls,
                                         String[] values) throws Exception {
        long[] latencies = new long[threads * calls];
        List<CompletableFuture<Void>> running = new ArrayList<>();
        long begun = System.nanoTime();
        for (int thread = 0; thread < threads; thread++) {
            int from = thread * calls;
            CompletableFuture<Void> done = new CompletableFuture<>();
            running.add(done);
            new Thread(() -> {
                try {
                    writeOne(map, put, values, latencies, from, calls);
                    done.complete(null);
                } catch (Throwable failure) {
                    done.completeExceptionally(failure);
                }
            }).start();
        }
        for (CompletableFuture<Void> done : running) {
            done.get();
        }
        return new Commands.Result(latencies.length, System.nanoTime() - begun, latencies);
    }

    private static void writeOne(IMap<Integer, String> map, boolean put, String[] values, long[] latencies, int from,
                                 int calls) {
        long before = System.nanoTime();
        for (int call = from; call < from + calls; call++) {
            int key = call % values.length;
            if (put) {
                String old = map.put(key, values[key]);
                if (old != null && !old.equals(values[key])) {
                    throw new IllegalStateException("key " + key + " had another value");
                }
            } else {
                map.set(key, values[key]);
            }
            long after = System.nanoTime();
            latencies[call] = after - before;
            before = after;
        }
    }

    private static void check(int key, String value) {
        if (!Integer.toString(key).equals(value)) {
            throw new IllegalStateException("key " + key + " has the value " + value);
        }
    }
}
