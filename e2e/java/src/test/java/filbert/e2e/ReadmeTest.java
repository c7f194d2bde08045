package filbert.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The first session in the README works as it stands there, but for the address. */
class ReadmeTest {
    @Test
    void theFirstSessionOfTheReadmeWorks(@TempDir Path directory) throws Exception {
        Matcher snippet = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(Path.of("..", "..", "README.md")));
        assertTrue(snippet.find());
        Path program = directory.resolve("FirstSession.java");
        Files.writeString(program, snippet.group(1).replace("127.0.0.1:5701", Member.shared().address()));
        Process session = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Dhazelcast.logging.type=none", "-cp", System.getProperty("java.class.path"), program.toString())
                .redirectErrorStream(true).start();
        String said = new String(session.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, session.waitFor(), said);
        assertTrue(said.lines().anyMatch("Paris"::equals), said);
    }
}
