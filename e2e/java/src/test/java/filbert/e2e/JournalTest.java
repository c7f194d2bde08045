package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.internal.journal.EventJournalInitialSubscriberState;
import com.hazelcast.internal.journal.EventJournalReader;
import com.hazelcast.map.EventJournalMapEvent;
import com.hazelcast.map.IMap;
import com.hazelcast.ringbuffer.ReadResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** The event journal, read as stream processors read it through the client. */
class JournalTest extends Suite {
    private IMap<Object, Object> journaled;
    private int partition;

    @SuppressWarnings("unchecked")
    private EventJournalReader<EventJournalMapEvent<Object, Object>> reader(String mapName) {
        journaled = client.getMap(mapName);
        partition = client.getPartitionService().getPartition("k").getPartitionId();
        return (EventJournalReader<EventJournalMapEvent<Object, Object>>) (Object) journaled;
    }

    private static <T> ReadResultSet<T> get(CompletionStage<ReadResultSet<T>> stage) throws Exception {
        return stage.toCompletableFuture().get();
    }

    @Test
    void changesAreReadInOrder() throws Exception {
        var reader = reader("journal-" + name);
        journaled.put("k", 1);
        journaled.put("k", 2);
        journaled.remove("k");
        EventJournalInitialSubscriberState state = reader.subscribeToEventJournal(partition).toCompletableFuture().get();
        assertEquals(0, state.getOldestSequence());
        assertEquals(2, state.getNewestSequence());
        ReadResultSet<EventJournalMapEvent<Object, Object>> events =
                get(reader.readFromEventJournal(0, 1, 10, partition, null, null));
        List<String> seen = new ArrayList<>();
        for (EventJournalMapEvent<Object, Object> event : events) {
            seen.add(event.getType() + " " + event.getKey() + " " + event.getOldValue() + " " + event.getNewValue());
        }
        assertEquals(List.of("ADDED k null 1", "UPDATED k 1 2", "REMOVED k 2 null"), seen);
        assertEquals(3, events.getNextSequenceToReadFrom());
        assertEquals(3, events.readCount());
    }

    @Test
    void pagesFollowOneAnother() throws Exception {
        var reader = reader("journal-" + name);
        for (int i = 0; i < 20; i++) {
            journaled.set("k", i);
        }
        long sequence = 0;
        List<Object> values = new ArrayList<>();
        while (values.size() < 20) {
            ReadResultSet<EventJournalMapEvent<Object, Object>> page =
                    get(reader.readFromEventJournal(sequence, 1, 7, partition, null, null));
            assertTrue(page.size() <= 7);
            page.forEach(event -> values.add(event.getNewValue()));
            sequence = page.getNextSequenceToReadFrom();
        }
        assertEquals(java.util.stream.IntStream.range(0, 20).boxed().toList(), values);
    }

    @Test
    void readingAheadWaitsForAnEvent() throws Exception {
        var reader = reader("journal-" + name);
        journaled.set("k", 1);
        var waiting = reader.readFromEventJournal(1, 1, 10, partition, null, null).toCompletableFuture();
        journaled.get("k");
        journaled.set("k", 2);
        assertEquals(1, waiting.get().size());
    }

    @Test
    void aMapWithoutAJournalSaysSo() {
        var reader = reader(name);
        ExecutionException refused = assertThrows(ExecutionException.class,
                () -> reader.subscribeToEventJournal(partition).toCompletableFuture().get());
        assertTrue(refused.getCause() instanceof UnsupportedOperationException, refused.toString());
    }
}
