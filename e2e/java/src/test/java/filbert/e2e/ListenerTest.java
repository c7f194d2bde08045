package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.core.EntryEvent;
import com.hazelcast.core.EntryListener;
import com.hazelcast.map.MapEvent;
import com.hazelcast.map.listener.EntryExpiredListener;
import com.hazelcast.map.listener.EntryRemovedListener;
import com.hazelcast.map.listener.MapPartitionLostListener;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Entry listeners: which events come, in which order, with what in them. */
class ListenerTest extends Suite {
    /** Keeps what arrives, in order, as text: the kind, the key, the old value and the new. */
    private static final class Recorder implements EntryListener<Object, Object>, EntryExpiredListener<Object, Object> {
        final List<String> events = new CopyOnWriteArrayList<>();

        private void keep(EntryEvent<Object, Object> event) {
            events.add(event.getEventType() + " " + event.getKey() + " " + event.getOldValue() + " " + event.getValue());
        }

        private void keep(MapEvent event) {
            events.add(event.getEventType() + " " + event.getNumberOfEntriesAffected());
        }

        void expect(String... expected) throws Exception {
            eventually(() -> events.size() >= expected.length);
            assertEquals(List.of(expected), events);
        }

        @Override
        public void entryAdded(EntryEvent<Object, Object> event) {
            keep(event);
        }

        @Override
        public void entryUpdated(EntryEvent<Object, Object> event) {
            keep(event);
        }

        @Override
        public void entryRemoved(EntryEvent<Object, Object> event) {
            keep(event);
        }

        @Override
        public void entryEvicted(EntryEvent<Object, Object> event) {
            keep(event);
        }

        @Override
        public void entryExpired(EntryEvent<Object, Object> event) {
            keep(event);
        }

        @Override
        public void mapCleared(MapEvent event) {
            keep(event);
        }

        @Override
        public void mapEvicted(MapEvent event) {
            keep(event);
        }
    }

    @Test
    void changesArriveInOrderWithValues() throws Exception {
        Recorder recorder = new Recorder();
        map.addEntryListener(recorder, true);
        map.put("a", 1);
        map.put("a", 2);
        map.set("a", 3);
        map.replace("a", 4);
        map.replace("a", 4, 5);
        map.putIfAbsent("a", 6);
        map.remove("a");
        map.remove("a");
        map.tryPut("a", 7, 1, TimeUnit.SECONDS);
        map.evict("a");
        recorder.expect("ADDED a null 1", "UPDATED a 1 2", "UPDATED a 2 3", "UPDATED a 3 4", "UPDATED a 4 5",
                "REMOVED a 5 null", "ADDED a null 7", "EVICTED a 7 null");
    }

    @Test
    void valuesStayAwayWhenNotAskedFor() throws Exception {
        Recorder recorder = new Recorder();
        map.addEntryListener(recorder, false);
        map.put("a", 1);
        map.put("a", 2);
        map.remove("a");
        recorder.expect("ADDED a null null", "UPDATED a null null", "REMOVED a null null");
    }

    @Test
    void aListenerOfOneKeyHearsOfThatKeyAlone() throws Exception {
        Recorder recorder = new Recorder();
        map.addEntryListener(recorder, "mine", true);
        map.put("other", 1);
        map.put("mine", 2);
        map.remove("other");
        map.remove("mine");
        recorder.expect("ADDED mine null 2", "REMOVED mine 2 null");
    }

    @Test
    void clearAndEvictAllAreOneEventWithACount() throws Exception {
        fill(10);
        Recorder recorder = new Recorder();
        map.addEntryListener(recorder, true);
        map.clear();
        recorder.expect("CLEAR_ALL 10");
        map.set("a", 1);
        // The client tells events of keys and of the whole map on threads of their own, in any order.
        recorder.expect("CLEAR_ALL 10", "ADDED a null 1");
        map.evictAll();
        recorder.expect("CLEAR_ALL 10", "ADDED a null 1", "EVICT_ALL 1");
    }

    @Test
    void expiryIsToldWithoutAnyoneReading() throws Exception {
        List<Object> expired = new CopyOnWriteArrayList<>();
        map.addEntryListener((EntryExpiredListener<Object, Object>) event -> expired.add(event.getOldValue()), true);
        map.put("a", "old", 1, TimeUnit.SECONDS);
        eventually(() -> expired.equals(List.of("old")));
    }

    @Test
    void onlyTheKindsAskedForArrive() throws Exception {
        List<Object> removed = new CopyOnWriteArrayList<>();
        map.addEntryListener((EntryRemovedListener<Object, Object>) event -> removed.add(event.getKey()), false);
        map.put("a", 1);
        map.put("a", 2);
        map.remove("a");
        map.put("b", 1);
        map.delete("b");
        // Events of different keys come in any order.
        eventually(() -> removed.stream().sorted().toList().equals(List.of("a", "b")));
    }

    @Test
    void aRemovedListenerHearsNothing() throws Exception {
        Recorder silent = new Recorder();
        Recorder loud = new Recorder();
        UUID registration = map.addEntryListener(silent, true);
        map.addEntryListener(loud, true);
        assertTrue(map.removeEntryListener(registration));
        map.set("a", 1);
        loud.expect("ADDED a null 1");
        assertEquals(List.of(), silent.events);
    }

    @Test
    void theEventNamesMapAndMember() throws Exception {
        List<EntryEvent<Object, Object>> events = new CopyOnWriteArrayList<>();
        map.addEntryListener((com.hazelcast.map.listener.EntryAddedListener<Object, Object>) events::add, true);
        connect().getMap(name).set("a", 1);
        eventually(() -> events.size() == 1);
        assertEquals(name, events.get(0).getName());
        assertNull(events.get(0).getOldValue());
        assertEquals(client.getPartitionService().getPartition("a").getOwner(), events.get(0).getMember());
    }

    @Test
    void aPartitionLostListenerIsAccepted() {
        UUID registration = map.addPartitionLostListener((MapPartitionLostListener) event -> { });
        assertTrue(map.removePartitionLostListener(registration));
    }

    @Test
    void manyChangesAllArrive() throws Exception {
        List<Object> keys = new CopyOnWriteArrayList<>();
        map.addEntryListener((com.hazelcast.map.listener.EntryAddedListener<Object, Object>) event -> keys.add(event.getKey()), false);
        fill(2_000);
        eventually(() -> keys.size() == 2_000);
        assertEquals(2_000, java.util.Set.copyOf(keys).size());
    }
}
