package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.hazelcast.core.EntryEvent;
import com.hazelcast.map.IMap;
import com.hazelcast.map.listener.EntryAddedListener;
import com.hazelcast.map.listener.EntryExpiredListener;
import com.hazelcast.map.listener.EntryRemovedListener;
import com.hazelcast.map.listener.EntryUpdatedListener;
import com.hazelcast.query.Predicates;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Entry listeners with a predicate: they hear of what is, enters and leaves the result. */
class PredicateListenerTest extends Suite {
    private static final class Recorder implements EntryAddedListener<Object, Object>,
            EntryUpdatedListener<Object, Object>, EntryRemovedListener<Object, Object>,
            EntryExpiredListener<Object, Object> {
        final List<String> events = new CopyOnWriteArrayList<>();

        private void keep(EntryEvent<Object, Object> event) {
            events.add(event.getEventType() + " " + event.getKey() + " " + event.getValue());
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
            events.add("REMOVED " + event.getKey() + " " + event.getOldValue());
        }

        @Override
        public void entryExpired(EntryEvent<Object, Object> event) {
            events.add("EXPIRED " + event.getKey() + " " + event.getOldValue());
        }
    }

    private final Recorder recorder = new Recorder();

    @Test
    void entriesEnterAndLeaveTheResult() throws Exception {
        UUID id = map.addEntryListener(recorder, Predicates.greaterThan("this", 10), true);
        map.put("a", 1);
        map.put("a", 11);
        map.put("a", 12);
        map.put("a", 2);
        map.put("a", 3);
        map.put("a", 20);
        map.remove("a");
        recorder.expect("ADDED a 11", "UPDATED a 12", "REMOVED a 12", "ADDED a 20", "REMOVED a 20");
        map.removeEntryListener(id);
    }

    @Test
    void aKeyAndAPredicateTogether() throws Exception {
        map.addEntryListener(recorder, Predicates.greaterThan("this", 10), "mine", true);
        map.put("other", 11);
        map.put("mine", 11);
        map.remove("mine");
        recorder.expect("ADDED mine 11", "REMOVED mine 11");
    }

    @Test
    void valuesStayAwayWhenNotAskedFor() throws Exception {
        map.addEntryListener(recorder, Predicates.greaterThan("this", 10), false);
        map.put("a", 1);
        map.put("b", 11);
        recorder.expect("ADDED b null");
    }

    @Test
    void expiryInTheResultIsTold() throws Exception {
        map.addEntryListener(recorder, Predicates.greaterThan("this", 10), true);
        map.put("a", 1, 1, TimeUnit.SECONDS);
        map.put("b", 11, 1, TimeUnit.SECONDS);
        recorder.expect("ADDED b 11", "EXPIRED b 11");
    }

    @Test
    void fieldsOfEveryFormatAreLookedAt() throws Exception {
        for (String format : People.FORMATS.keySet()) {
            IMap<Object, Object> people = client.getMap(name + format);
            // Events of different keys come in any order.
            Set<String> events = new ConcurrentSkipListSet<>();
            people.addEntryListener(
                    (EntryAddedListener<Object, Object>) event -> events.add(People.nameOf(event.getValue())),
                    Predicates.and(Predicates.equal("active", true), Predicates.equal("tags[any]", "blue")),
                    true);
            for (int key = 1; key <= 5; key++) {
                people.put(key, People.FORMATS.get(format).apply(People.ALL.get(key)));
            }
            eventually(() -> events.size() >= 2);
            assertEquals(Set.of("Ada", "Grace"), events, format);
        }
    }
}
