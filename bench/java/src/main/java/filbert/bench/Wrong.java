package filbert.bench;

/** An answer that is not the one that the loaded data gives. Unlike other failures it ends the experiment. */
final class Wrong extends RuntimeException {
    private static final long serialVersionUID = 1;

    Wrong(String what) {
        super(what);
    }
}
