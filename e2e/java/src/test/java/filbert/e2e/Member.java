package filbert.e2e;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The member under test: the real program in a process of its own, on an ephemeral loopback port unless told which. With
 * FILBERT_E2E_MEMBERS=3 the member that most tests use is the first of a cluster of three.
 */
final class Member implements AutoCloseable {
    static final boolean REAL_HAZELCAST = "hazelcast".equals(System.getenv("FILBERT_E2E_TARGET"));
    /** Members of the cluster that most tests use. */
    static final int MEMBERS = Integer.parseInt(System.getenv().getOrDefault("FILBERT_E2E_MEMBERS", "1"));
    static final Path SHARED_FILES = Path.of("..", "shared");

    private static final Pattern READY = Pattern.compile("^ready: .*127\\.0\\.0\\.1:(\\d+)");
    private static final Pattern SERVES_POSTGRES = Pattern.compile("^serves: PostgreSQL on 127\\.0\\.0\\.1:(\\d+)");
    private static Member shared;

    final int port;
    /** The port for PostgreSQL's drivers. */
    final int postgresPort;
    private final Process process;

    Member(int port, String config) throws Exception {
        this(launch(port, config, List.of(), Map.of()));
    }

    /** Waits until a process serves. */
    private Member(Process started) throws Exception {
        process = started;
        BufferedReader output =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        StringBuilder said = new StringBuilder();
        int postgres = 0;
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            Matcher serves = SERVES_POSTGRES.matcher(line);
            if (serves.find()) {
                postgres = Integer.parseInt(serves.group(1));
            }
            Matcher ready = READY.matcher(line);
            if (ready.find()) {
                this.port = Integer.parseInt(ready.group(1));
                this.postgresPort = postgres;
                Thread drain = new Thread(() -> output.lines().forEach(ignored -> { }));
                drain.setDaemon(true);
                drain.start();
                return;
            }
            said.append(line).append('\n');
        }
        throw new IllegalStateException("the member did not become ready: " + said);
    }

    /** The member that most tests use; it ends with this virtual machine, and so do the others of its cluster. */
    static synchronized Member shared() throws Exception {
        if (shared == null) {
            shared = MEMBERS == 1 ? new Member(0, "member.yaml") : cluster(MEMBERS, Map.of()).get(0);
        }
        return shared;
    }

    /** Starts the members of a cluster, with variables of their own. */
    static List<Member> cluster(int count, Map<String, String> variables) throws Exception {
        List<String> addresses = freeAddresses(count);
        String join = String.join(",", addresses);
        List<Process> started = new ArrayList<>();
        for (String address : addresses) {
            started.add(launch(0, "member.yaml", List.of("--join", join, "--member-listen", address), variables));
        }
        List<Member> members = new ArrayList<>();
        for (Process each : started) {
            members.add(new Member(each));
        }
        return members;
    }

    /**
     * Addresses that are free now, one for each member. Their ports are below the ones that the operating system gives to
     * connections: such a port could be taken by any connection before its member listens.
     */
    private static List<String> freeAddresses(int count) {
        Set<String> addresses = new LinkedHashSet<>();
        while (addresses.size() < count) {
            int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                addresses.add("127.0.0.1:" + socket.getLocalPort());
            } catch (IOException taken) {
                // Another port may be free.
            }
        }
        return List.copyOf(addresses);
    }

    private static Process launch(int port, String config, List<String> more, Map<String, String> variables)
            throws Exception {
        List<String> command = new ArrayList<>(command());
        command.addAll(List.of("--listen", "127.0.0.1:" + port));
        command.addAll(List.of("--config", SHARED_FILES.resolve(config).toString()));
        command.addAll(more);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(variables);
        Process process = builder.start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        return process;
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    /** Ends the member as a machine does that fails. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Ends the member as an operator does. */
    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }

    private static List<String> command() {
        String command = System.getenv("FILBERT_E2E_MEMBER");
        if (command == null) {
            throw new IllegalStateException("FILBERT_E2E_MEMBER is not set; run `cargo xtask e2e java`");
        }
        return com.hazelcast.internal.json.Json.parse(command).asArray().values().stream()
                .map(com.hazelcast.internal.json.JsonValue::asString)
                .toList();
    }
}
