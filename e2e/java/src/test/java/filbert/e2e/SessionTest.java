package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.cluster.Member;
import com.hazelcast.core.DistributedObjectEvent;
import com.hazelcast.core.DistributedObjectListener;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.LifecycleEvent.LifecycleState;
import com.hazelcast.map.IMap;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Sessions: who is let in, what a client learns of the cluster, and that it comes back after a restart. */
class SessionTest extends Suite {
    @Test
    void aClientSeesAllMembersAndPartitions() throws Exception {
        List<Member> members = List.copyOf(client.getCluster().getMembers());
        assertEquals(filbert.e2e.Member.MEMBERS, members.size());
        int port = filbert.e2e.Member.shared().port;
        assertTrue(members.stream().anyMatch(member -> member.getAddress().getPort() == port));
        map.set(1, 1);
        eventually(() -> client.getPartitionService().getPartitions().stream()
                .allMatch(partition -> members.contains(partition.getOwner())));
        assertEquals(271, client.getPartitionService().getPartitions().size());
    }

    @Test
    void aWrongClusterNameIsRefused() {
        assertThrows(IllegalStateException.class, () -> start(filbert.e2e.Member.shared(),
                config -> config.setClusterName("somewhere else")));
    }

    static Stream<Arguments> credentials() {
        return Stream.of(
                Arguments.of("wrong password", (Consumer<ClientConfig>) config ->
                        config.getSecurityConfig().setUsernamePasswordIdentityConfig("ada", "wrong")),
                Arguments.of("unknown user", (Consumer<ClientConfig>) config ->
                        config.getSecurityConfig().setUsernamePasswordIdentityConfig("eve", "correct horse")),
                Arguments.of("wrong token", (Consumer<ClientConfig>) config ->
                        config.getSecurityConfig().setTokenIdentityConfig(new com.hazelcast.config.security.TokenIdentityConfig(
                                com.hazelcast.config.security.TokenEncoding.NONE, "no such token"))),
                Arguments.of("nothing", (Consumer<ClientConfig>) config -> { }));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("credentials")
    @DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast",
            disabledReason = "passwords need a licence in Hazelcast")
    void wrongCredentialsAreRefused(String what, Consumer<ClientConfig> credentials) throws Exception {
        try (filbert.e2e.Member guarded = new filbert.e2e.Member(0, "member-with-password.yaml")) {
            assertThrows(IllegalStateException.class, () -> start(guarded, credentials), what);
        }
    }

    @Test
    @DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast",
            disabledReason = "passwords need a licence in Hazelcast")
    void theRightPasswordIsAccepted() throws Exception {
        try (filbert.e2e.Member guarded = new filbert.e2e.Member(0, "member-with-password.yaml")) {
            HazelcastInstance welcome = start(guarded, config ->
                    config.getSecurityConfig().setUsernamePasswordIdentityConfig("ada", "correct horse"));
            welcome.getMap("m").set("k", "v");
            assertEquals("v", welcome.getMap("m").get("k"));
            welcome.shutdown();
        }
    }

    private static HazelcastInstance start(filbert.e2e.Member member, Consumer<ClientConfig> change) {
        ClientConfig config = config(member);
        config.getConnectionStrategyConfig().getConnectionRetryConfig().setClusterConnectTimeoutMillis(200);
        change.accept(config);
        return HazelcastClient.newHazelcastClient(config);
    }

    @Test
    void aClientThatReportsStatisticsIsServed() throws Exception {
        HazelcastInstance reporting = connect(config ->
                config.getMetricsConfig().setEnabled(true).setCollectionFrequencySeconds(1));
        IMap<Object, Object> its = reporting.getMap(name);
        for (int i = 0; i < 200; i++) {
            its.set(i, i);
        }
        assertEquals(200, map.size());
    }

    @Test
    void distributedObjectsAreListedAnnouncedAndDestroyed() throws Exception {
        List<String> events = new CopyOnWriteArrayList<>();
        UUID listener = client.addDistributedObjectListener(new DistributedObjectListener() {
            @Override
            public void distributedObjectCreated(DistributedObjectEvent event) {
                events.add("created " + event.getObjectName());
            }

            @Override
            public void distributedObjectDestroyed(DistributedObjectEvent event) {
                events.add("destroyed " + event.getObjectName());
            }
        });
        String fresh = name + " of another";
        HazelcastInstance other = connect();
        IMap<Object, Object> theirs = other.getMap(fresh);
        theirs.set("a", 1);
        eventually(() -> events.contains("created " + fresh));
        assertTrue(client.getDistributedObjects().stream().anyMatch(object -> object.getName().equals(fresh)));
        theirs.destroy();
        eventually(() -> events.contains("destroyed " + fresh));
        assertNull(client.getMap(fresh).get("a"));
        assertTrue(client.removeDistributedObjectListener(listener));
    }

    @Test
    void aClientWithoutSmartRoutingReachesEveryKey() throws Exception {
        fill(300);
        IMap<Object, Object> same = connect(config -> config.getNetworkConfig().setSmartRouting(false)).getMap(name);
        for (int i = 0; i < 300; i++) {
            assertEquals("value " + i, same.get(i));
        }
    }

    @Test
    void aClientReconnectsAfterTheMemberRestartsOnItsPort() throws Exception {
        List<LifecycleState> states = new CopyOnWriteArrayList<>();
        filbert.e2e.Member first = new filbert.e2e.Member(0, "member.yaml");
        ClientConfig config = config(first);
        config.getConnectionStrategyConfig().getConnectionRetryConfig().setInitialBackoffMillis(50).setMaxBackoffMillis(200);
        HazelcastInstance staying = HazelcastClient.newHazelcastClient(config);
        try {
            staying.getLifecycleService().addLifecycleListener(event -> states.add(event.getState()));
            List<Object> added = new CopyOnWriteArrayList<>();
            IMap<Object, Object> numbers = staying.getMap("numbers");
            numbers.addEntryListener(
                    (com.hazelcast.map.listener.EntryAddedListener<Object, Object>) event -> added.add(event.getKey()), false);
            numbers.set("before", 1);
            eventually(() -> added.contains("before"));
            first.close();
            eventually(() -> states.contains(LifecycleState.CLIENT_DISCONNECTED));
            try (filbert.e2e.Member second = new filbert.e2e.Member(first.port, "member.yaml")) {
                eventually(() -> states.contains(LifecycleState.CLIENT_CONNECTED));
                assertNull(numbers.get("before"));
                // The listener is registered again in the background.
                eventually(() -> {
                    numbers.delete("after");
                    numbers.set("after", 2);
                    return added.contains("after");
                });
            }
        } finally {
            staying.shutdown();
            first.close();
        }
    }
}
