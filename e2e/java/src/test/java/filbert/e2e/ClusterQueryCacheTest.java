package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastException;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.map.QueryCache;
import com.hazelcast.map.listener.EventLostListener;
import com.hazelcast.query.Predicates;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Query caches of clients of three members, while members die and leave. */
@DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast",
        disabledReason = "the members of a cluster are started by our program's flags")
class ClusterQueryCacheTest {
    /** So many that each member keeps some: a client asks its members in turn. */
    private static final int CACHES = 6;
    private static final int KEYS = 500;

    /** Connects to the first of these members; a client with one connection knows no other addresses than those that it is told. */
    private static HazelcastInstance connect(List<Member> members, boolean toAll) {
        ClientConfig config = Suite.config(members.get(0));
        members.stream().skip(1).forEach(member -> config.getNetworkConfig().addAddress(member.address()));
        // In this order, and not in a random one.
        config.setProperty("hazelcast.client.shuffle.member.list", "false");
        config.getNetworkConfig().setSmartRouting(toAll);
        return HazelcastClient.newHazelcastClient(config);
    }

    private static QueryCache<Object, Object> cache(IMap<Object, Object> map, int number) {
        return map.getQueryCache("cache " + number, Predicates.greaterEqual("this", 0), number % 2 == 0);
    }

    /** What a cache should have, by what the map has. */
    private static Map<Object, Object> matching(IMap<Object, Object> map) {
        Map<Object, Object> all = new HashMap<>();
        map.entrySet().stream().filter(entry -> (int) entry.getValue() >= 0).forEach(entry -> all.put(entry.getKey(), entry.getValue()));
        return all;
    }

    /** Whether a key was deleted; what fails is done again. */
    private static boolean deletes(IMap<Object, Object> map, Object key) {
        try {
            map.delete(key);
            return true;
        } catch (HazelcastException outcomeUnknown) {
            return false;
        }
    }

    private static boolean holds(QueryCache<Object, Object> cache, boolean includesValues, Map<Object, Object> expected) {
        if (!includesValues) {
            return cache.keySet().equals(expected.keySet());
        }
        Map<Object, Object> held = new HashMap<>();
        cache.entrySet().forEach(entry -> held.put(entry.getKey(), entry.getValue()));
        return held.equals(expected);
    }

    private static void eventuallyHold(List<QueryCache<Object, Object>> caches, IMap<Object, Object> map) throws Exception {
        Map<Object, Object> expected = matching(map);
        for (int number = 0; number < caches.size(); number++) {
            int n = number;
            try {
                Suite.eventually(() -> holds(caches.get(n), n % 2 == 0, expected));
            } catch (AssertionError failed) {
                Set<Object> missing = new HashSet<>(expected.keySet());
                missing.removeAll(caches.get(n).keySet());
                Set<Object> beyond = new HashSet<>(caches.get(n).keySet());
                beyond.removeAll(expected.keySet());
                throw new AssertionError("cache " + n + " lacks " + missing + " and has " + beyond + " beyond", failed);
            }
        }
    }

    /** Changes a map until it is told to end; what fails is done again, as the same value does no harm. */
    private static final class Writer extends Thread {
        private final IMap<Object, Object> map;
        private final AtomicBoolean ends = new AtomicBoolean();
        private final AtomicInteger made = new AtomicInteger();

        Writer(IMap<Object, Object> map) {
            this.map = map;
            start();
        }

        @Override
        public void run() {
            for (int i = 0; !ends.get(); i++) {
                try {
                    int key = i * 7 % KEYS;
                    if (i % 5 == 0) {
                        map.delete(key);
                    } else {
                        map.set(key, i % 3 == 0 ? -i : i);
                    }
                    made.incrementAndGet();
                    // The caches are to follow, and not to be flooded.
                    Thread.sleep(1);
                } catch (Exception outcomeUnknown) {
                    // What the map has in the end is what counts.
                }
            }
        }

        /** Waits until so many more changes are acknowledged. */
        void makes(int more) throws Exception {
            int wanted = made.get() + more;
            Suite.eventually(() -> made.get() >= wanted);
        }

        void end() throws InterruptedException {
            ends.set(true);
            join();
        }
    }

    private interface Blow {
        void to(Member member) throws Exception;
    }

    private static void cachesAreRightAfter(Blow blow, boolean toAll) throws Exception {
        List<Member> members = Member.cluster(3, Map.of("FILBERT_CLUSTER_HEARTBEAT", "5"));
        HazelcastInstance client = connect(members, toAll);
        HazelcastInstance other = connect(members.subList(1, 3), true);
        try {
            IMap<Object, Object> map = client.getMap("m");
            for (int key = 0; key < KEYS; key++) {
                map.set(key, key);
            }
            List<QueryCache<Object, Object>> caches = new ArrayList<>();
            for (int number = 0; number < CACHES; number++) {
                caches.add(cache(map, number));
            }
            eventuallyHold(caches, map);
            Writer writer = new Writer(other.getMap("m"));
            writer.makes(200);
            blow.to(members.get(0));
            // The other members lead by then.
            writer.makes(1_000);
            writer.end();
            eventuallyHold(caches, map);
            // And from here on as ever.
            for (int key = KEYS; key < 2 * KEYS; key++) {
                map.set(key, key);
            }
            eventuallyHold(caches, map);
            caches.forEach(QueryCache::destroy);
        } finally {
            client.shutdown();
            other.shutdown();
            for (Member member : members) {
                member.kill();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void cachesAreRightAfterAMemberHasDied(boolean toAll) throws Exception {
        cachesAreRightAfter(Member::kill, toAll);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void cachesAreRightAfterAMemberHasLeft(boolean toAll) throws Exception {
        cachesAreRightAfter(Member::close, toAll);
    }

    @Test
    void aClientHearsOfALossAndMayAskAgain() throws Exception {
        // A member that is dead is a member for a minute.
        List<Member> members = Member.cluster(3, Map.of());
        HazelcastInstance client = connect(members, true);
        try {
            IMap<Object, Object> map = client.getMap("m");
            Suite.eventually(() -> client.getCluster().getMembers().size() == 3);
            for (int key = 0; key < KEYS; key++) {
                map.set(key, key);
            }
            Set<Integer> lost = ConcurrentHashMap.newKeySet();
            List<QueryCache<Object, Object>> caches = new ArrayList<>();
            for (int number = 0; number < CACHES; number++) {
                int n = number;
                caches.add(cache(map, number));
                caches.get(n).addEntryListener((EventLostListener) event -> lost.add(n), true);
            }
            members.get(0).kill();
            // The client may see only by this that the connection is lost.
            Suite.eventually(() -> deletes(map, 1));
            Suite.eventually(() -> !lost.isEmpty());
            // A cache that has lost its member does not follow any more, and hears so in the end.
            Suite.eventually(() -> deletes(map, 3));
            Map<Object, Object> expected = matching(map);
            for (int number = 0; number < CACHES; number++) {
                int n = number;
                Suite.eventually(() -> lost.contains(n) || holds(caches.get(n), n % 2 == 0, expected));
            }
            assertTrue(lost.size() < CACHES, "those that other members keep have lost nothing: " + lost);
            for (int number : lost) {
                caches.get(number).destroy();
                caches.set(number, cache(map, number));
            }
            eventuallyHold(caches, map);
            map.delete(2);
            eventuallyHold(caches, map);
        } finally {
            client.shutdown();
            for (Member member : members) {
                member.kill();
            }
        }
    }
}
