package filbert.bench;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Makes calls in a closed loop or at a fixed rate and keeps the latency of each. */
final class Pace {
    /** Call number n of a measurement; it checks its answer. */
    interface Call {
        void run(long number) throws Exception;
    }

    /** Below this time before a call is due a thread spins: a sleep ends some 60 us late. */
    private static final long SPIN_NANOS = 100_000;

    private Pace() {
    }

    /** One call after the other for this long, at least {@code callsMin}. */
    static Commands.Result closed(Call call, long nanosMin, int callsMin, int callsMax) throws Exception {
        long[] latencies = new long[Math.min(callsMax, 1024)];
        int calls = 0;
        long begun = System.nanoTime();
        long before = begun;
        while (calls < callsMax && (calls < callsMin || before - begun < nanosMin)) {
            call.run(calls);
            long after = System.nanoTime();
            if (calls == latencies.length) {
                latencies = Arrays.copyOf(latencies, 2 * calls);
            }
            latencies[calls++] = after - before;
            before = after;
        }
        return new Commands.Result(calls, before - begun, Arrays.copyOf(latencies, calls));
    }

    /**
     * Call n is due at {@code begin + n / rate}, whatever the server does, and its latency runs from then. At most
     * {@code threads} are in flight. A server that cannot keep up is given twice the time; what it has not answered then
     * counts as lasting until then, which flatters it.
     */
    static Commands.Result fixed(Call call, double rate, double seconds, int threads) throws Exception {
        int calls = (int) Math.max(1, Math.round(rate * seconds));
        long[] latencies = new long[calls];
        AtomicInteger next = new AtomicInteger();
        AtomicLong answered = new AtomicLong();
        AtomicReference<Exception> failure = new AtomicReference<>();
        long begun = System.nanoTime() + 10_000_000;
        long end = begun + (long) (2e9 * seconds);
        Thread[] running = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            running[index] = new Thread(() -> {
                for (int number = next.getAndIncrement(); number < calls; number = next.getAndIncrement()) {
                    long due = begun + (long) (number * 1e9 / rate);
                    if (failure.get() != null || System.nanoTime() > end) {
                        latencies[number] = end - due;
                        continue;
                    }
                    await(due);
                    try {
                        call.run(number);
                    } catch (Exception problem) {
                        failure.compareAndSet(null, problem);
                    }
                    latencies[number] = System.nanoTime() - due;
                    answered.incrementAndGet();
                }
            });
            running[index].start();
        }
        for (Thread thread : running) {
            thread.join();
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        return new Commands.Result(answered.get(), System.nanoTime() - begun, latencies);
    }

    private static void await(long due) {
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            if (left > SPIN_NANOS) {
                LockSupport.parkNanos(left - SPIN_NANOS);
            } else {
                Thread.onSpinWait();
            }
        }
    }
}
