package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Locks on keys: reentrant by thread, contended between clients, leased, and released when their client goes. */
class LockTest extends Suite {
    private IMap<Object, Object> other;

    @BeforeEach
    void connectAnother() throws Exception {
        other = connect().getMap(name);
    }

    @Test
    void aLockIsReentrantForItsThread() throws Exception {
        map.lock("k");
        map.lock("k");
        assertTrue(map.tryLock("k"));
        assertFalse(elsewhere(() -> map.tryLock("k")).get());
        for (int i = 0; i < 3; i++) {
            assertTrue(map.isLocked("k"));
            map.unlock("k");
        }
        assertFalse(map.isLocked("k"));
    }

    @Test
    void onlyTheOwnerUnlocks() {
        map.lock("k");
        assertThrows(IllegalMonitorStateException.class, () -> other.unlock("k"));
        map.unlock("k");
        assertThrows(IllegalMonitorStateException.class, () -> map.unlock("k"));
    }

    @Test
    void aLockKeepsWritersOutAndLetsReadersIn() throws Exception {
        map.set("k", 1);
        map.lock("k");
        assertEquals(1, other.get("k"));
        assertFalse(other.tryPut("k", 2, 0, TimeUnit.MILLISECONDS));
        assertFalse(other.tryPut("k", 2, 50, TimeUnit.MILLISECONDS));
        assertFalse(other.tryRemove("k", 50, TimeUnit.MILLISECONDS));
        assertFalse(other.tryLock("k"));
        assertFalse(other.tryLock("k", 50, TimeUnit.MILLISECONDS));
        map.put("k", 3);
        map.unlock("k");
        assertEquals(3, other.put("k", 4));
    }

    @Test
    void writesOfEveryKindWaitUntilTheKeyIsFree() throws Exception {
        for (String key : List.of("put", "set", "remove", "replace", "put if absent", "delete", "set ttl", "put all")) {
            map.set(key, 1);
            map.lock(key);
        }
        List<Future<?>> waiting = new ArrayList<>();
        waiting.add(elsewhere(() -> other.put("put", 2)));
        waiting.add(elsewhere(() -> { other.set("set", 2); return null; }));
        waiting.add(elsewhere(() -> other.remove("remove")));
        waiting.add(elsewhere(() -> other.replace("replace", 2)));
        waiting.add(elsewhere(() -> other.putIfAbsent("put if absent", 2)));
        waiting.add(elsewhere(() -> { other.delete("delete"); return null; }));
        waiting.add(elsewhere(() -> other.setTtl("set ttl", 1, TimeUnit.HOURS)));
        waiting.add(elsewhere(() -> { other.putAll(java.util.Map.of("put all", 2)); return null; }));
        // One more call than those that wait, answered at once: nobody blocks the member's threads.
        other.set("free", 1);
        waiting.forEach(future -> assertFalse(future.isDone()));
        for (Object key : Set.of("put", "set", "remove", "replace", "put if absent", "delete", "set ttl", "put all")) {
            map.unlock(key);
        }
        for (Future<?> future : waiting) {
            future.get();
        }
        assertEquals(2, map.get("put"));
        assertEquals(2, map.get("set"));
        assertFalse(map.containsKey("remove"));
        assertEquals(2, map.get("replace"));
        assertEquals(1, map.get("put if absent"));
        assertFalse(map.containsKey("delete"));
        assertEquals(2, map.get("put all"));
    }

    @Test
    void aLockIsHandedToTheOneThatWaits() throws Exception {
        map.lock("k");
        Future<Boolean> waiting = elsewhere(() -> {
            other.lock("k");
            boolean held = other.isLocked("k");
            other.unlock("k");
            return held;
        });
        map.unlock("k");
        assertTrue(waiting.get());
    }

    @Test
    void tryLockWaitsForItsTime() throws Exception {
        map.lock("k");
        Future<Boolean> waiting = elsewhere(() -> other.tryLock("k", 60, TimeUnit.SECONDS));
        map.unlock("k");
        assertTrue(waiting.get());
        assertTrue(map.isLocked("k"));
        map.forceUnlock("k");
        assertFalse(map.isLocked("k"));
    }

    @Test
    void aLeasedLockEndsByItself() throws Exception {
        map.lock("k", 1, TimeUnit.SECONDS);
        assertTrue(map.isLocked("k"));
        other.put("k", 1);
        assertEquals(1, map.get("k"));
        assertTrue(map.tryLock("k", 1, TimeUnit.SECONDS, 1, TimeUnit.SECONDS));
        eventually(() -> !other.isLocked("k"));
    }

    @Test
    void aClientsLocksGoWithTheClient() throws Exception {
        HazelcastInstance leaving = connect();
        leaving.getMap(name).lock("k");
        Future<?> waiting = elsewhere(() -> map.put("k", "taken over"));
        assertTrue(map.isLocked("k"));
        leaving.shutdown();
        waiting.get();
        assertFalse(map.isLocked("k"));
    }

    @Test
    void clearAndEvictAllSpareLockedKeys() {
        fill(50);
        map.lock(7);
        other.evictAll();
        assertEquals(Set.of(7), map.keySet());
        fill(50);
        other.clear();
        assertEquals(Set.of(7), map.keySet());
        map.unlock(7);
    }

    @Test
    void incrementsUnderALockAreNeverLost() throws Exception {
        map.set("counter", 0);
        List<Future<?>> counting = new ArrayList<>();
        for (IMap<Object, Object> counter : List.of(map, other, map, other)) {
            counting.add(elsewhere(() -> {
                for (int i = 0; i < 50; i++) {
                    counter.lock("counter");
                    try {
                        counter.set("counter", (Integer) counter.get("counter") + 1);
                    } finally {
                        counter.unlock("counter");
                    }
                }
                return null;
            }));
        }
        for (Future<?> future : counting) {
            future.get();
        }
        assertEquals(200, map.get("counter"));
    }
}
