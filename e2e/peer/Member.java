import com.hazelcast.config.Config;
import com.hazelcast.config.JoinConfig;
import com.hazelcast.config.YamlConfigBuilder;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import java.util.Map;
import java.util.TreeMap;

/**
 * A real Hazelcast member that takes the same arguments as the filbert program and prints the same ready line, so that
 * every expectation of the end-to-end tests can be checked against the original. It binds to loopback only, joins
 * nobody and does not phone home.
 */
public final class Member {
    private Member() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new TreeMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            options.put(args[i], args[i + 1]);
        }
        System.setProperty("hazelcast.logging.type", options.getOrDefault("--log", "none"));
        Config config = options.containsKey("--config")
                ? new YamlConfigBuilder(options.get("--config")).build()
                : new Config();
        if (options.containsKey("--cluster-name")) {
            config.setClusterName(options.get("--cluster-name"));
        }
        String listen = options.getOrDefault("--listen", "127.0.0.1:0");
        int colon = listen.lastIndexOf(':');
        config.getNetworkConfig().setPort(Integer.parseInt(listen.substring(colon + 1))).setPortAutoIncrement(false);
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface(listen.substring(0, colon));
        JoinConfig join = config.getNetworkConfig().getJoin();
        join.getAutoDetectionConfig().setEnabled(false);
        join.getMulticastConfig().setEnabled(false);
        join.getTcpIpConfig().setEnabled(false);
        config.getJetConfig().setEnabled(true);
        config.setProperty("hazelcast.phone.home.enabled", "false");
        // An update that makes an entry enter or leave a listener's predicate is told as such.
        config.setProperty("hazelcast.map.entry.filtering.natural.event.types", "true");
        config.setProperty("hazelcast.map.invalidation.batchfrequency.seconds", "1");
        config.setProperty("hazelcast.socket.bind.any", "false");
        config.setProperty("hazelcast.shutdownhook.policy", "TERMINATE");
        HazelcastInstance member = Hazelcast.newHazelcastInstance(config);
        System.out.println("ready: Hazelcast clients on 127.0.0.1:"
                + member.getCluster().getLocalMember().getAddress().getPort());
        System.out.flush();
    }
}
