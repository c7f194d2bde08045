package filbert.e2e;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

/** What every test has: a client, a map of its own, further clients that end with it, and waiting for a condition. */
abstract class Suite {
    private static HazelcastInstance sharedClient;

    /** The test's own name, for structures that no other test touches. */
    String name;
    HazelcastInstance client;
    IMap<Object, Object> map;

    private final List<HazelcastInstance> clients = new ArrayList<>();
    private final ExecutorService others = Executors.newCachedThreadPool();

    @BeforeEach
    void prepare(TestInfo test) throws Exception {
        name = getClass().getSimpleName() + "." + test.getTestMethod().orElseThrow().getName() + test.getDisplayName();
        client = sharedClient();
        map = client.getMap(name);
    }

    @AfterEach
    void closeClients() {
        clients.forEach(HazelcastInstance::shutdown);
        others.shutdownNow();
    }

    private static synchronized HazelcastInstance sharedClient() throws Exception {
        if (sharedClient == null) {
            sharedClient = HazelcastClient.newHazelcastClient(config(Member.shared()));
        }
        return sharedClient;
    }

    /** A configuration in which the address alone is set. */
    static ClientConfig config(Member member) {
        return config(member.address());
    }

    static ClientConfig config(String address) {
        ClientConfig config = new ClientConfig();
        config.getNetworkConfig().addAddress(address);
        config.getConnectionStrategyConfig().getConnectionRetryConfig().setClusterConnectTimeoutMillis(30_000);
        return config;
    }

    HazelcastInstance connect() throws Exception {
        return connect(config -> { });
    }

    HazelcastInstance connect(Consumer<ClientConfig> change) throws Exception {
        ClientConfig config = config(Member.shared());
        change.accept(config);
        HazelcastInstance made = HazelcastClient.newHazelcastClient(config);
        clients.add(made);
        return made;
    }

    /** Runs in another thread, which is another owner of locks. */
    <T> java.util.concurrent.Future<T> elsewhere(Callable<T> action) {
        return others.submit(action);
    }

    static void eventually(Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("the condition did not come true");
            }
            Thread.sleep(10);
        }
    }

    void fill(int count) {
        java.util.Map<Object, Object> entries = new java.util.HashMap<>();
        for (int i = 0; i < count; i++) {
            entries.put(i, "value " + i);
        }
        map.putAll(entries);
    }
}
