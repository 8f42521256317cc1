/** A fixed pool of Java's platform threads, all at once, until the input ends. */
import java.util.concurrent.*;

public class Pool {
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 4; i++) pool.submit(() -> { System.in.read(); return null; });
        pool.shutdown();
        pool.awaitTermination(1000, TimeUnit.SECONDS);
        System.out.println(Runtime.getRuntime().availableProcessors());
    }
}
