// The clients of the chaos driver in Java: Hazelcast's stock client, told what to do line by line (JSON). See worker.go.

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.client.config.RoutingMode;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastInstanceNotActiveException;
import com.hazelcast.internal.json.Json;
import com.hazelcast.internal.json.JsonObject;
import com.hazelcast.internal.util.ThreadUtil;
import com.hazelcast.map.IMap;
import com.hazelcast.sql.HazelcastSqlException;
import com.hazelcast.spi.exception.PartitionMigratingException;
import com.hazelcast.spi.exception.RetryableHazelcastException;
import com.hazelcast.spi.exception.TargetNotMemberException;
import com.hazelcast.spi.exception.WrongTargetException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.logging.Level;
import java.util.logging.Logger;

public final class Worker {
    /** What an operation told: the value that was read or replaced, and what it answers to a question. */
    private record Answer(String value, boolean truth) {}

    /** How long the members may take to let a client in, or out. */
    private static final long CONNECT_MILLIS_MAX = 120_000;

    /** Errors that say that nothing was made: the request was not taken, however often the client sent it. */
    private static final Set<Class<?>> REFUSED = Set.of(WrongTargetException.class, TargetNotMemberException.class,
            HazelcastInstanceNotActiveException.class, RetryableHazelcastException.class, PartitionMigratingException.class);

    /** What the client may have sent twice: the first of them may have been taken. */
    private static final Set<String> REPEATED = Set.of("tryLock", "unlock", "sqlUpdate");

    private final long limitMillis;
    private final Map<String, HazelcastInstance> clients = new ConcurrentHashMap<>();
    /** Those that wait for an operation, so that it ends for the driver in time, and those that make it. */
    private final ExecutorService waiting = Executors.newCachedThreadPool(Worker::daemon);
    private final ExecutorService making = Executors.newCachedThreadPool(Worker::daemon);

    private Worker(long limitMillis) {
        this.limitMillis = limitMillis;
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("hazelcast.logging.type", "jdk");
        Logger.getLogger("com.hazelcast").setLevel(Level.WARNING);
        Worker worker = new Worker((long) (Double.parseDouble(arguments[0]) * 1000));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonObject operation = Json.parse(line).asObject();
            worker.waiting.execute(() -> worker.answer(operation));
        }
        System.exit(0);
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    /** Writes what an operation's result is. */
    private void answer(JsonObject operation) {
        JsonObject result = new JsonObject().add("id", operation.getLong("id", 0));
        try {
            Answer told = limited(operation);
            result.add("outcome", "acknowledged").add("value", told.value == null ? "" : told.value).add("truth", told.truth);
        } catch (TimeoutException error) {
            result.add("outcome", "unknown").add("error", "TookTooLong");
        } catch (Throwable error) {
            boolean isRefused = REFUSED.contains(error.getClass()) && !REPEATED.contains(operation.getString("kind", ""));
            System.err.println(operation + ": " + error);
            result.add("outcome", isRefused ? "refused" : "unknown").add("error", nameOf(error));
        }
        synchronized (System.out) {
            System.out.println(result);
        }
    }

    private static String nameOf(Throwable error) {
        if (error instanceof HazelcastSqlException sql) {
            return "SQL " + sql.getCode();
        }
        return error.getClass().getSimpleName().replaceFirst("Exception$", "");
    }

    /** Makes an operation within the limit. One that takes longer goes on, and nobody is told how it ended. */
    private Answer limited(JsonObject operation) throws Throwable {
        String kind = operation.getString("kind", "");
        Callable<Answer> work = switch (kind) {
            case "connect" -> () -> connect(operation);
            case "close" -> () -> {
                clients.remove(operation.getString("client", "")).shutdown();
                return new Answer(null, true);
            };
            default -> () -> {
                // A lock belongs to the driver's thread, whichever thread of this pool asks for it.
                ThreadUtil.setThreadId(1_000_000 + operation.getLong("thread", 0));
                try {
                    return make(kind, operation);
                } finally {
                    ThreadUtil.removeThreadId();
                }
            };
        };
        boolean isOperation = !kind.equals("connect") && !kind.equals("close");
        long limit = isOperation ? limitMillis + operation.getLong("wait_ms", 0) : CONNECT_MILLIS_MAX;
        Future<Answer> made = making.submit(work);
        try {
            return made.get(limit, TimeUnit.MILLISECONDS);
        } catch (ExecutionException error) {
            throw error.getCause();
        }
    }

    private Answer connect(JsonObject operation) {
        String name = operation.getString("client", "");
        ClientConfig config = new ClientConfig();
        config.setInstanceName(name);
        config.setProperty("hazelcast.client.invocation.timeout.seconds", Long.toString(limitMillis / 1000));
        for (String address : operation.getString("value", "").split(",")) {
            config.getNetworkConfig().addAddress(address);
        }
        if (operation.getString("routing", "").equals("unisocket")) {
            config.getNetworkConfig().getClusterRoutingConfig().setRoutingMode(RoutingMode.SINGLE_MEMBER);
        }
        config.getConnectionStrategyConfig().getConnectionRetryConfig().setClusterConnectTimeoutMillis(CONNECT_MILLIS_MAX);
        clients.put(name, HazelcastClient.newHazelcastClient(config));
        return new Answer(null, true);
    }

    private Answer make(String kind, JsonObject operation) throws Exception {
        HazelcastInstance client = clients.get(operation.getString("client", ""));
        String key = operation.getString("key", null);
        String value = operation.getString("value", null);
        String name = operation.getString("map", null);
        IMap<String, String> map = client.getMap(name);
        return switch (kind) {
            case "get" -> new Answer(map.get(key), true);
            case "put" -> new Answer(map.put(key, value), true);
            case "set" -> {
                map.set(key, value);
                yield new Answer(null, true);
            }
            case "putIfAbsent" -> new Answer(map.putIfAbsent(key, value), true);
            case "replaceIfSame" -> new Answer(null, map.replace(key, operation.getString("expected", null), value));
            case "remove" -> new Answer(map.remove(key), true);
            case "tryLock" -> new Answer(null, map.tryLock(key, operation.getLong("wait_ms", 0), TimeUnit.MILLISECONDS));
            case "unlock" -> {
                try {
                    map.unlock(key);
                    yield new Answer(null, true);
                } catch (IllegalMonitorStateException error) {
                    yield new Answer(null, false);
                }
            }
            case "sqlUpdate" -> {
                String text = "UPDATE " + name + " SET this = ? WHERE __key = ?";
                yield new Answer(null, client.getSql().executeUpdate(text, value, key) > 0);
            }
            default -> throw new IllegalArgumentException("no such operation: " + kind);
        };
    }
}
