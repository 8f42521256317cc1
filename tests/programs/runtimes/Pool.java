/** A fixed pool of Java's platform threads, all awake at once. */
import java.util.concurrent.*;

public class Pool {
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 4; i++) pool.submit(() -> { Thread.sleep(300); return null; });
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
        System.out.println(Runtime.getRuntime().availableProcessors());
    }
}
