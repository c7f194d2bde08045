package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.hazelcast.map.EntryProcessor;
import com.hazelcast.map.IMap;
import com.hazelcast.map.MapInterceptor;
import com.hazelcast.query.Predicates;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What is not served is refused by name, as the exception the user knows, and the connection lives on. */
@DisabledIfEnvironmentVariable(named = "FILBERT_E2E_TARGET", matches = "hazelcast", disabledReason = "Hazelcast serves these")
class UnsupportedTest extends Suite {
    private static final class Increment implements EntryProcessor<Object, Object, Object> {
        @Override
        public Object process(Map.Entry<Object, Object> entry) {
            return entry.setValue((Integer) entry.getValue() + 1);
        }
    }

    private static final class Interceptor implements MapInterceptor {
        @Override
        public Object interceptGet(Object value) {
            return value;
        }

        @Override
        public void afterGet(Object value) {
        }

        @Override
        public Object interceptPut(Object oldValue, Object newValue) {
            return newValue;
        }

        @Override
        public void afterPut(Object value) {
        }

        @Override
        public Object interceptRemove(Object removedValue) {
            return removedValue;
        }

        @Override
        public void afterRemove(Object oldValue) {
        }
    }

    static Stream<Arguments> refused() {
        return Stream.of(
                refused("Map.executeOnKey", map -> map.executeOnKey("k", new Increment())),
                refused("Map.executeOnKeys", map -> map.executeOnKeys(Set.of("k"), new Increment())),
                refused("Map.executeOnAllKeys", map -> map.executeOnEntries(new Increment())),
                refused("Map.executeWithPredicate",
                        map -> map.executeOnEntries(new Increment(), Predicates.equal("a", 1))),
                refused("Map.addInterceptor", map -> map.addInterceptor(new Interceptor())));
    }

    private static Arguments refused(String message, Consumer<IMap<Object, Object>> call) {
        return Arguments.of(message, call);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("refused")
    void aMessageThatIsNotServedIsRefusedByName(String message, Consumer<IMap<Object, Object>> call) {
        map.set("k", 1);
        UnsupportedOperationException refusal =
                assertThrows(UnsupportedOperationException.class, () -> call.accept(map));
        assertTrue(refusal.getMessage().contains(message), refusal.getMessage());
        assertEquals(1, map.get("k"));
    }

    @org.junit.jupiter.api.Test
    void otherStructuresAreRefusedWhenUsed() {
        assertThrows(UnsupportedOperationException.class, () -> client.getQueue(name).offer(1));
        map.set("k", 1);
        assertEquals(1, map.get("k"));
    }
}
