package filbert.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;

/** Reads a command per line, has it run, and answers with a line of JSON. Ends when its input ends. */
final class Commands {
    /** Runs one command, given as its words. */
    interface Handler {
        Result run(String[] words) throws Exception;
    }

    /** How many calls took how long. */
    static final class Result {
        final long calls;
        final long nanos;
        /** Nanoseconds of each call, or null where only the whole was measured. */
        final long[] latencies;

        Result(long calls, long nanos, long[] latencies) {
            this.calls = calls;
            this.nanos = nanos;
            this.latencies = latencies;
        }

        String json() {
            String latency = "null";
            if (latencies != null && latencies.length > 0) {
                Arrays.sort(latencies);
                double mean = Arrays.stream(latencies).average().orElse(0);
                latency = String.format(Locale.ROOT,
                        "{\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f}",
                        mean / 1e3, at(0.5), at(0.99), at(0.999), latencies[latencies.length - 1] / 1e3);
            }
            return String.format(Locale.ROOT, "{\"calls\":%d,\"nanos\":%d,\"latency\":%s}", calls, nanos, latency);
        }

        private double at(double quantile) {
            int index = (int) Math.ceil(quantile * latencies.length) - 1;
            return latencies[Math.max(0, index)] / 1e3;
        }
    }

    private Commands() {
    }

    static void serve(Handler handler) throws Exception {
        // Whatever else prints must not get between the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                String[] words = line.trim().split("\\s+");
                answer = words[0].equals("hello") ? "{}" : handler.run(words).json();
            } catch (Exception failure) {
                failure.printStackTrace();
                String text = failure.toString().replace('\\', '/').replace('"', '\'').replaceAll("\\p{Cntrl}", " ");
                answer = "{\"error\":\"" + text + "\",\"wrong\":" + (failure instanceof Wrong) + "}";
            }
            answers.println(answer);
            answers.flush();
        }
    }
}
