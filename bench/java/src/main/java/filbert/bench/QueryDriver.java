package filbert.bench;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.config.IndexConfig;
import com.hazelcast.config.IndexType;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * The stock client as a driver of queries. Arguments: address, cluster name, and {@code filbert} or {@code hazelcast},
 * which say differently how an IdentifiedDataSerializable is laid out.
 *
 * <p>{@code mapping FORMAT MAP rows|columns} maps the map; {@code columns} asks for the columnar form.
 * {@code load FORMAT MAP ENTRIES} fills it. {@code index MAP} indexes its numbers. {@code drop MAP} removes it.
 * {@code closed QUERY MAP ENTRIES CALLS_MIN CALLS_MAX SECONDS} makes call after call;
 * {@code fixed QUERY MAP ENTRIES RATE SECONDS THREADS} makes them when they are due. See {@link Queries} for the queries.
 */
public final class QueryDriver {
    private static final int BATCH = 1_000;
    private static final int BATCHES_IN_FLIGHT = 8;

    private final HazelcastInstance client;
    private final boolean filbert;
    private final Map<String, Queries> queries = new HashMap<>();

    private QueryDriver(HazelcastInstance client, boolean filbert) {
        this.client = client;
        this.filbert = filbert;
    }

    public static void main(String[] arguments) throws Exception {
        ClientConfig config = new ClientConfig();
        config.setClusterName(arguments[1]);
        config.getNetworkConfig().addAddress(arguments[0]);
        // A member that collects garbage on a busy machine is slow, not gone.
        config.setProperty("hazelcast.client.heartbeat.timeout", "300000");
        Formats.configure(config);
        HazelcastInstance client = HazelcastClient.newHazelcastClient(config);
        QueryDriver driver = new QueryDriver(client, arguments[2].equals("filbert"));
        Commands.serve(driver::run);
        client.shutdown();
    }

    private Commands.Result run(String[] words) throws Exception {
        switch (words[0]) {
            case "mapping":
                return mapping(Formats.Format.of(words[1]), words[2], words[3].equals("columns"));
            case "load":
                return load(Formats.Format.of(words[1]), words[2], Integer.parseInt(words[3]));
            case "index":
                long begun = System.nanoTime();
                client.getMap(words[1]).addIndex(new IndexConfig(IndexType.HASH, "value").setName(words[1] + "_value"));
                return new Commands.Result(1, System.nanoTime() - begun, null);
            case "drop":
                execute("DROP MAPPING IF EXISTS " + words[1]);
                execute("DROP MAPPING IF EXISTS " + words[1] + "_json");
                client.getMap(words[1]).destroy();
                queries.keySet().removeIf(key -> key.startsWith(words[1] + " "));
                return new Commands.Result(1, 0, null);
            case "closed":
                return Pace.closed(call(words), (long) (Double.parseDouble(words[6]) * 1e9), Integer.parseInt(words[4]),
                        Integer.parseInt(words[5]));
            case "fixed":
                return Pace.fixed(call(words), Double.parseDouble(words[4]), Double.parseDouble(words[5]),
                        Integer.parseInt(words[6]));
            default:
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    private Pace.Call call(String[] words) {
        int entries = Integer.parseInt(words[3]);
        String key = words[2] + " " + entries;
        return queries.computeIfAbsent(key, absent -> new Queries(client, words[2], entries)).call(words[1]);
    }

    private Commands.Result mapping(Formats.Format format, String map, boolean columns) {
        long begun = System.nanoTime();
        String text = "CREATE OR REPLACE MAPPING " + map
                + " (__key INT, \"value\" BIGINT, name VARCHAR) TYPE IMap OPTIONS ('keyFormat'='int', "
                + valueOptions(format) + (columns ? ", 'columnar'='true'" : "") + ")";
        execute(text);
        // Not asked where there are columns.
        if (format == Formats.Format.JSON && !columns) {
            execute("CREATE OR REPLACE MAPPING " + map + "_json EXTERNAL NAME " + map
                    + " (__key INT, this JSON) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json')");
        }
        return new Commands.Result(1, System.nanoTime() - begun, null);
    }

    private String valueOptions(Formats.Format format) {
        switch (format) {
            case IDS:
                if (filbert) {
                    return "'valueFormat'='ids', 'valueFactoryId'='" + Formats.FACTORY_ID + "', 'valueClassId'='"
                            + Formats.CLASS_ID + "'";
                }
                return "'valueFormat'='java', 'valueJavaClass'='" + Formats.IdsValue.class.getName() + "'";
            case PORTABLE:
                return "'valueFormat'='portable', 'valuePortableFactoryId'='" + Formats.PORTABLE_FACTORY_ID
                        + "', 'valuePortableClassId'='" + Formats.CLASS_ID + "'";
            case COMPACT:
                return "'valueFormat'='compact', 'valueCompactTypeName'='" + Formats.TYPE_NAME + "'";
            default:
                return "'valueFormat'='json-flat'";
        }
    }

    private void execute(String statement) {
        client.getSql().execute(statement).close();
    }

    private Commands.Result load(Formats.Format format, String name, int entries) throws Exception {
        IMap<Integer, Object> map = client.getMap(name);
        Deque<CompletionStage<Void>> running = new ArrayDeque<>();
        long begun = System.nanoTime();
        for (int from = 0; from < entries; from += BATCH) {
            Map<Integer, Object> batch = new HashMap<>();
            for (int key = from; key < Math.min(from + BATCH, entries); key++) {
                batch.put(key, format.value(key));
            }
            if (running.size() == BATCHES_IN_FLIGHT) {
                running.remove().toCompletableFuture().get();
            }
            running.add(map.putAllAsync(batch));
        }
        for (CompletionStage<Void> one : running) {
            one.toCompletableFuture().get();
        }
        long nanos = System.nanoTime() - begun;
        if (map.size() != entries) {
            throw new Wrong(map.size() + " entries, expected " + entries);
        }
        return new Commands.Result(entries, nanos, null);
    }
}
