package filbert.bench;

/** The values of experiment S: texts that begin with their key. */
final class Values {
    private Values() {
    }

    static String[] all(int entries, int characters) {
        String[] values = new String[entries];
        for (int key = 0; key < entries; key++) {
            StringBuilder text = new StringBuilder(Integer.toString(key));
            while (text.length() < characters) {
                text.append((char) ('a' + (key + text.length()) % 26));
            }
            values[key] = text.substring(0, characters);
        }
        return values;
    }
}
